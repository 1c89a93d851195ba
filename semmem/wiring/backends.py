"""Settings -> the third parties, behind their ports: journal, embedder, store, models, and who is sent traces."""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from semmem import __version__
from semmem.backends import key_file
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.worker_process import WorkerProcess
from semmem.background import OffloadThreads
from semmem.backup import BackupError
from semmem.backup.restoring import is_unfinished
from semmem.config.settings import Settings
from semmem.lifecycle.change_news import AttentiveStore
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.lifecycle.write_gate import WriteGate
from semmem.ports.embedder import Embedder
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.models import Reranker, ServedModel
from semmem.ports.spans import NO_TRACER, Tracer
from semmem.ports.store import Store
from semmem.ports.text_work import Offload, TextWork
from semmem.reindex.movable_store import MovableStore
from semmem.retrieval.feedback import Votes
from semmem.retrieval.fence import Fence
from semmem.retrieval.index.hot_memories import HotMemories, Spawn
from semmem.retrieval.ledger.truth import Changes
from semmem.telemetry.metering import Listener, ObservedStore
from semmem.telemetry.metrics import Metrics
from semmem.wiring import models, stores
from semmem.wiring.models import ModelClients
from semmem.wiring.replicas import News, news
from semmem.wiring.stores import ROWS_PER_MEMORY

if TYPE_CHECKING:
    from semmem.telemetry.tracing import SpanExport

log = logging.getLogger(__name__)

REPLICA_STALENESS_S = 5.0
"""How long what another replica wrote may stay unseen, unless the configuration says otherwise."""
FENCE_KEY_FILE = "fence.key"


@dataclass(frozen=True, slots=True)
class Backends:
    """The third parties of one semmem, behind their ports, and what it has in common with its replicas: the key of its
    blocks, the votes of its users, which changes it has said back, and whether something of a user is being erased."""

    store: HotMemories
    embedder: Embedder
    journal: SqlJournal
    models: Mapping[str, ServedModel]
    reranker: Reranker | None = None
    fence: Fence | None = None
    worker: TextWork | None = None
    votes: Votes = field(default_factory=Votes)
    changes: Changes = field(default_factory=Changes)
    is_erasing: Callable[[str], bool] = lambda _user: False


@dataclass(frozen=True, slots=True)
class Opened:
    """The backends of a running semmem. ``store_backend`` is the store itself, ``hidden`` what erasures need of it,
    ``gate`` what backups do, ``clients`` whoever else asks models."""

    backends: Backends
    store_backend: MovableStore
    hidden: HidingStore
    gate: WriteGate
    clients: ModelClients
    news: News | None = None


async def open_backends(
    settings: Settings, metrics: Metrics, stack: AsyncExitStack, *, spawn: Spawn, announce: Announce = nobody_listens
) -> Opened:
    """Every backend, to be closed with ``stack``. The journal is open; store and embedder are opened while requests
    pass already. Raises OSError, SemmemError and BackupError."""
    if is_unfinished(Path(settings.data_dir)):
        raise BackupError(f"a restore into {settings.data_dir} was not finished: run `semmem restore` again")
    turns = await stores.opened_journal(settings, stack)
    vectors = await asyncio.to_thread(models.embedder, settings)
    stack.push_async_callback(vectors.close)
    store_backend = stores.movable(settings, vectors, turns, may_move=stores.may_begin(settings, vectors))
    clients, worker, indexing = ModelClients(metrics), WorkerProcess(), OffloadThreads()
    served, ranker = clients.of(settings)
    for part in (store_backend, clients, worker, indexing):
        stack.push_async_callback(part.close)
    mark = await asyncio.to_thread(fence, settings)
    others = news(settings, turns, mark, announce, stack)
    watched: Store = store_backend
    listeners: list[Listener] = []  # are told of every write
    if others is not None:
        watched, listeners = AttentiveStore(store_backend, others.changes), [others.changes.changed]
    # Below the hot memories: nothing runs between what listeners are told and what changes there.
    gate = WriteGate(ObservedStore(watched, metrics, settings.memory.backend, listeners))
    hiding = HidingStore(gate, Marks())
    backends = Backends(
        store=hot_memories(settings, hiding, spawn, indexing),
        embedder=models.metered(settings, vectors, metrics),
        journal=turns,
        models=served,
        reranker=ranker,
        fence=mark,
        worker=worker,
        is_erasing=hiding.marks.lately,
    )
    return Opened(backends, store_backend, hiding, gate, clients, others)


def hot_memories(settings: Settings, store: Store, spawn: Spawn, offload: Offload) -> HotMemories:
    """The store with active users' memories in front of it. ``offload`` builds their indexes, best one at a time:
    each thread that computes delays the event loop by some milliseconds."""
    rules, memory = settings.memory.hot_cache, settings.memory
    server = memory.qdrant if memory.backend == "qdrant" else memory.milvus
    staleness_s, told_staleness_s = rules.staleness_s, None
    if staleness_s is None:
        staleness_s = math.inf
        if settings.deployment.replicas > 1:
            staleness_s, told_staleness_s = REPLICA_STALENESS_S, rules.told_staleness_s
    return rules.fill(
        HotMemories,
        store,
        spawn=spawn,
        offload=offload,
        users_max=math.inf if rules.users_max is None else rules.users_max,
        memories_max=math.inf if rules.memories_max is None else rules.memories_max,
        rows_max=ROWS_PER_MEMORY * settings.memory.max_memories_per_user,
        staleness_s=staleness_s,
        told_staleness_s=told_staleness_s,
        load_timeout_s=server.call_timeout_s,
    )


def fence(settings: Settings) -> Fence:
    """Blocking: may make the key file. Raises OSError naming it."""
    rules = settings.memory.injection
    key, former = rules.fence_key.get_secret_value().encode(), rules.fence_key_former.get_secret_value().encode()
    if not key and settings.deployment.replicas > 1:
        log.warning(
            "memory.injection.fence_key is not set: each replica has a key of its own, and a request that passes two"
            " of them gets its memories twice"
        )
    if not key:  # as it is spelled in the file, so that it can be copied into a configuration
        key = key_file.read_or_make(Path(settings.data_dir) / FENCE_KEY_FILE).hex().encode()
    return Fence(key, former) if former else Fence(key)


class TracingError(SemmemError):
    """Traces are wanted and cannot be made."""


def tracing(settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> tuple[Tracer, SpanExport | None]:
    """What records spans, and what sends them until it is cancelled (None: there are none), which ends with ``stack``.
    Raises TracingError naming a package or a file that is missing."""
    rules = settings.tracing
    if not rules.endpoint:
        return NO_TRACER, None
    try:  # optional packages, which take a fifth of a second to import
        from semmem.telemetry.tracing import OtelTracer, SpanExport, Telling, otlp_exporter
    except ModuleNotFoundError:
        raise TracingError("tracing.endpoint needs packages: pip install 'semmem[otel]'") from None
    value = rules.credential.get_secret_value()
    exporter = rules.fill(otlp_exporter, rules.endpoint, headers={rules.header: value} if value else {})
    threads = OffloadThreads()
    export = rules.fill(SpanExport, exporter, metrics.trace_spans, offload=threads)
    stack.push_async_callback(threads.close)
    stack.callback(export.close)  # before the threads: it ends what they wait for
    user_hmac_secret = rules.user_hmac_secret.get_secret_value().encode()
    memory = settings.memory
    names = {"milvus": memory.milvus.collection, "qdrant": memory.qdrant.collection}
    store_id = names.get(memory.backend, memory.backend)
    telling = rules.fill(Telling, user_hmac_secret=user_hmac_secret, store_id=store_id)
    resource = {  # what every trace says of this process; the id tells replicas apart, and means nothing beyond
        "service.name": rules.service_name,
        "service.version": __version__,
        "service.instance.id": str(uuid.uuid4()),
    }
    tracer = OtelTracer(export, ratio=rules.sample_ratio, telling=telling, resource=resource)
    return tracer, export
