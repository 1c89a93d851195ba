"""Settings and what runs -> what an operator is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from semmem import __version__
from semmem.backup.everybody import Everybody
from semmem.config import effective
from semmem.config.settings import Settings
from semmem.management.engine_api import Engine, EngineStatus
from semmem.management.reload_api import ReloadState
from semmem.wiring.backends import Backends, Opened

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
