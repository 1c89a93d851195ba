"""Settings -> the doors: Envoy's, the API's, health and metrics, and the listeners they are served by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from semmem import __version__
from semmem.backup.everybody import Everybody
from semmem.config import effective
from semmem.config.listeners_section import HttpListenerSection
from semmem.config.settings import Settings
from semmem.envoy.server import ExtProcServer
from semmem.envoy.service import DoorLimits, ExternalProcessor, MessageTimeouts
from semmem.envoy.tls import TlsFiles, server_credentials
from semmem.extraction.screen import Ruling, screen_text
from semmem.extraction.storing import Storing
from semmem.extraction.undoing import Undoing
from semmem.lifecycle.holds import Holds
from semmem.management.access import AccessRules, KnownTokens
from semmem.management.curation import Curation
from semmem.management.door import DoorRules
from semmem.management.engine_api import Engine, EngineStatus
from semmem.management.fields import MetadataLimits
from semmem.management.reload_api import ReloadState
from semmem.management.server import HttpListener
from semmem.management.web_tokens import VerifiedWebTokens, WebTokenRules, keys_at
from semmem.management.write_screen import WriteScreen
from semmem.ports.events import Announce
from semmem.retrieval.context import FENCE_MARKERS
from semmem.retrieval.index.hot_memories import Spawn
from semmem.upkeep.reflections import ReflectionRules, Reflector
from semmem.upkeep.summaries import Summariser, SummaryRules
from semmem.wiring.backends import Backends, Opened
from semmem.wiring.learning import dedup
from semmem.wiring.maintenance import consolidator

GRPC_OVERHEAD_BYTES = 1024 * 1024
"""Headers and metadata around a body in one gRPC message."""
LISTENER_END_S = 5.0


def envoy_door(settings: Settings, processor: ExternalProcessor) -> ExtProcServer:
    """The ext_proc server, not started. Raises OSError naming a file that cannot be read."""
    return ExtProcServer(
        processor,
        address=grpc_address(settings),
        message_bytes_max=door_limits(settings).message_bytes_max,
        credentials=grpc_credentials(settings),
    )


def door_limits(settings: Settings) -> DoorLimits:
    limits = settings.limits
    body_bytes_max = max(limits.request_body_bytes_max, limits.response_body_bytes_max)
    return limits.fill(DoorLimits, message_bytes_max=body_bytes_max + GRPC_OVERHEAD_BYTES)


def message_timeouts(settings: Settings) -> MessageTimeouts:
    return settings.deadlines.fill(MessageTimeouts)


def grpc_address(settings: Settings) -> str:
    grpc = settings.listeners.grpc
    return f"unix:{grpc.unix_socket}" if grpc.unix_socket else grpc.address


def grpc_credentials(settings: Settings) -> Any:
    """None for plain text. Raises OSError naming a file that cannot be read."""
    tls = settings.listeners.grpc.tls
    if not tls.cert_file:
        return None
    client_ca = Path(tls.client_ca_file) if tls.client_ca_file else None
    return server_credentials(TlsFiles(Path(tls.cert_file), Path(tls.key_file), client_ca))


def access(
    settings: Settings, tokens: KnownTokens | None = None, web_tokens: VerifiedWebTokens | None = None
) -> AccessRules:
    return AccessRules(
        admin_token=settings.listeners.api.admin_token.get_secret_value(),
        trusted_headers=settings.listeners.api.trusted_headers,
        user_chars_max=settings.identity.user_chars_max,
        tokens=tokens or KnownTokens(),
        web_tokens=web_tokens,
    )


def web_tokens(settings: Settings) -> VerifiedWebTokens | None:
    """None where no keys are configured."""
    rules = settings.listeners.api.jwt
    if not rules.keys:
        return None
    return VerifiedWebTokens(keys_at(rules.keys), rules.fill(WebTokenRules))


def door(settings: Settings) -> DoorRules:
    rules = settings.listeners.api
    return rules.fill(DoorRules, allowed_hosts=(rules.host, *rules.allowed_hosts))


def metadata_limits(settings: Settings) -> MetadataLimits:
    return settings.listeners.api.fill(MetadataLimits, prefix="metadata_")


def write_screen(settings: Settings, announce: Announce) -> WriteScreen:
    """What the API is told is as long as the API says; otherwise as what is learnt."""
    rules = settings.memory.write_screen
    screening = partial(
        screen_text,
        on_secret=Ruling(rules.secrets),
        on_instruction=Ruling(rules.instructions),
        own_markers=FENCE_MARKERS,
    )
    return WriteScreen(screening, announce=announce)


def curation(settings: Settings, backends: Backends, announce: Announce, *, holds: Holds) -> Curation:
    """What the API does with versions, quarantine, duplicates and summaries."""
    model = settings.external_model("memory_extraction")
    timeout_s = model.llm_timeout_seconds if model is not None else 30.0
    summariser = Summariser(
        backends.store,
        backends.journal,
        backends.embedder,
        backends.models.get("memory_extraction"),
        SummaryRules(
            chars_max=settings.memory.write_screen.fact_chars_max,
            timeout_s=timeout_s,
        ),
    )
    reflector = Reflector(
        backends.store,
        backends.journal,
        backends.embedder,
        backends.models.get("memory_extraction"),
        ReflectionRules(chars_max=settings.memory.write_screen.fact_chars_max, timeout_s=timeout_s),
    )
    compared = dedup(settings, backends)
    return Curation(
        backends.store,
        backends.journal,
        compared,
        Undoing(backends.store, backends.journal, Storing(backends.embedder, compared)),
        consolidator(settings, backends),
        summariser,
        reflector,
        clock=time.time,
        holds=holds,
        announce=announce,
    )


def http_listener(application: object, where: HttpListenerSection) -> HttpListener:
    return HttpListener(
        application, where.address, connections_max=where.connections_max, head_timeout_s=where.head_timeout_s
    )


async def serve(
    name: str, application: object, where: HttpListenerSection, *, spawn: Spawn, stack: AsyncExitStack
) -> str:
    """Listen until ``stack`` is closed; the address with its port. Raises OSError naming one that is in use."""
    listener = http_listener(application, where)
    bound = listener.bind()
    task = spawn(name, listener.serve())

    async def stop() -> None:
        listener.stop()
        await asyncio.wait({task}, timeout=LISTENER_END_S)
        listener.close()

    stack.push_async_callback(stop)
    return bound


PROBE = "Does the embedder answer?"


def engine(
    settings: Settings,
    opened: Opened,
    backends: Backends,
    up: Mapping[str, Callable[[], bool]],
    *,
    waiting: Callable[[], int],
    reindexing: Callable[[], str],
    reloads: Callable[[], ReloadState],
    began: float,
) -> Engine:
    """``up``: which components answered when they were last asked; ``waiting``: halves of turns not yet written;
    ``reindexing``: the word for how far that is; ``reloads``: what became of those of the configuration; ``began``:
    when the process did."""

    def status() -> EngineStatus:
        memory, embedding = settings.memory, settings.memory.embedding
        store = backends.store
        return {
            "version": __version__,
            "started_at": datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "components": {name: is_up() for name, is_up in up.items()},
            "store": {
                "backend": memory.backend,
                "hot_users": store.users,
                "hot_memories": store.memories,
                "reindex": reindexing(),
            },
            "embedding": {
                "source": embedding.source,
                "signature": backends.embedder.signature,
                "dimension": embedding.dimension,
            },
            "journal": {"kind": "postgresql" if settings.journal.url else "sqlite", "waiting": waiting()},
            "models": sorted(backends.models),
            "rerank": backends.reranker is not None,
            "deployment": {"replicas": settings.deployment.replicas},
            "configuration": reloads(),
        }

    async def embed() -> None:
        await backends.embedder.embed(PROBE)

    async def journal() -> None:
        await backends.journal.token("")
        await backends.journal.check_room()

    return Engine(
        status,
        {"store": opened.store_backend.health, "embedder": embed, "journal": journal},
        lambda: {**effective(settings), "reload": reloads()},
        Everybody(opened.store_backend, backends.journal).users,
        backends.journal.users_after,
    )
