"""What a running semmem consists of and keeps as long as it lives, whatever its settings become; and what it says of
itself, for the page of metrics and the API."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

from semmem import __version__
from semmem.background.in_process import RecordWatch, Warming
from semmem.backup.exporting import Everybody
from semmem.config import effective
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.management.api import Purging
from semmem.management.engine_api import Engine, EngineStatus, ReloadState
from semmem.management.shown import at
from semmem.ports.embedder import cache_use
from semmem.ports.events import Announce
from semmem.ports.reindexing import ReindexState
from semmem.ports.spans import Tracer
from semmem.reindex.reindexing import Reindexing
from semmem.request.switches import Switches
from semmem.retrieval.index.kept import Preloaded
from semmem.retrieval.ledger.ledger import Ledger
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.turns.seen import SeenMessages
from semmem.turns.sessions import Sessions
from semmem.wiring import backup, learning, models, request, stores
from semmem.wiring import erasure as erasing
from semmem.wiring.backends import Backends, Opened
from semmem.wiring.features import Compression, ConversationRecord, Recording, request_log_writer
from semmem.wiring.maintenance import HousekeepingLoop, StoreWatch
from semmem.wiring.replicas import Replicas

WARM_SHARE = 0.5
"""Of the time that a request gives the store, a read and a search of nothing take no more in a store that is warm."""


class Parts:
    """What works beside the requests, or is shared by the doors. ``shown``: what sessions were. ``patient``: the
    backends as learning uses them; ``first``: what is learnt by until a reload; ``began``: when the process did."""

    def __init__(
        self,
        settings: Settings,
        opened: Opened,
        announce: Announce,
        *,
        shown: Ledger,
        embedder_tried: asyncio.Event,
        tracer: Tracer,
    ) -> None:
        backends, memory, hidden = opened.backends, settings.memory, opened.hidden
        journal = backends.journal
        self.opened, self.embedder_tried, self.shown, self.began = opened, embedder_tried, shown, time.time()
        self.store = StoreWatch(
            backends.store,
            opened.store_backend,
            dimension=backends.embedder.dimension,
            quick_s=WARM_SHARE * settings.deadlines.store_ms / 1000,
        )
        self.patient = learning.patient(settings, backends)
        self.first = learning.learning_side(  # made before what erases, which makes use of it
            settings,
            self.patient,
            opened,
            announce,
            lambda scope, memory_id: self.erasure.forget_memory(scope, memory_id),
        )
        self.at_once = learning.at_once(settings, self.patient, announce, self.first.batches, self.can_learn, tracer)
        self.learner = learning.learner(settings, backends, announce, self.first.batches, tracer)
        self.writer = request.journal_writer(settings, backends, announce, self.at_once, tracer)
        self.uses = AccessRecorder(journal)
        self.sessions = Sessions(journal, idle_s=settings.identity.session_idle_s, shared=bool(settings.journal.url))
        self.seen = SeenMessages(journal, messages_max=settings.capture.seen_messages_max)
        self.compression = Compression(settings, self.patient, announce, is_erased=hidden.marks.any_of)
        here = erasing.Here(
            self.writer,
            backends.store,
            hidden,
            shown,
            self.sessions,
            self.uses,
            backends.votes,
            forget_states=self.compression.maker.forget,
        )
        self.unread = here.unread
        waiting = learning.waiting_words(settings, self.patient)
        self.erasure = erasing.erasure(settings, backends, hidden, here, waiting, self.patient.embedder, announce)
        self.purging = Purging([journal, opened.store_backend])
        self.snapshots = backup.snapshots(settings, opened)
        marks_s = settings.erasure.marks_days * DAY_S
        self.housekeeping = settings.journal.fill(HousekeepingLoop, journal, self.store, announce, marks_s=marks_s)
        self.warming = Warming(backends.store, journal, users_max=memory.hot_cache.warm_users)
        self.reindexing = stores.reindexing(
            settings, opened.store_backend, backends.embedder, journal, moved=backends.store.forget_user
        )
        self.switches = Switches()
        self.switch_watch = RecordWatch(
            journal.switches_since,
            self.switches,
            what="for whom memory is switched off",
            refresh_s=memory.switches.refresh_s,
        )
        self.vote_watch = RecordWatch(
            journal.votes_since, backends.votes, what="what was said of memories", refresh_s=memory.feedback.refresh_s
        )
        self.usage = Recording(settings, journal)
        self.conversations = ConversationRecord(settings, journal)
        self.request_log = request_log_writer(settings, journal)
        self.replicas: Replicas | None = None
        if (elsewhere := self.erasure.elsewhere) is not None:  # else nobody can share the journal
            self.replicas = Replicas(
                journal,
                self.erasure,
                elsewhere,
                self.learner.nudge,
                self.switch_watch.look,
                opened.news,
                lost_s=settings.journal.postgres.replica_lost_s,
                lost=(lambda: None) if opened.news is None else opened.news.changes.everything,
            )

    def can_learn(self) -> bool:
        """Not while the embedder is being opened: after a restart the store is often there seconds before it."""
        return self.embedder_tried.is_set() and self.store.answers and self.store.has_room


Up = Mapping[str, Callable[[], bool]]
"""Which components answered when they were last asked."""


def engine(settings: Settings, backends: Backends, parts: Parts, up: Up, reloads: Callable[[], ReloadState]) -> Engine:
    """``reloads``: what became of those of the configuration."""

    def status() -> EngineStatus:
        memory, embedding = settings.memory, settings.memory.embedding
        store, cache = backends.store, cache_use(backends.embedder)
        return {
            "version": __version__,
            "started_at": at(parts.began, to="seconds"),
            "components": {name: is_up() for name, is_up in up.items()},
            "store": {
                "backend": memory.backend,
                "hot_users": int(store.taken.users),
                "hot_memories": int(store.taken.memories),
                "reindex": parts.reindexing.state,
            },
            "embedding": {
                "source": embedding.source,
                "signature": backends.embedder.signature,
                "dimension": embedding.dimension,
                "cache": None
                if cache is None
                else {"hits": cache.hits, "misses": cache.misses, "entries": cache.entries},
            },
            "journal": {"kind": "postgresql" if settings.journal.url else "sqlite", "waiting": len(parts.writer)},
            "models": sorted(backends.models),
            "rerank": backends.reranker is not None,
            "deployment": {"replicas": settings.deployment.replicas},
            "configuration": reloads(),
        }

    async def embed() -> None:
        # another text each time: that a vector was kept says nothing of the embedder
        await backends.embedder.embed(f"Does the embedder answer at {time.time()}?")

    async def journal() -> None:
        await backends.journal.token("")
        await backends.journal.check_room()

    return Engine(
        status,
        {"store": parts.opened.store_backend.health, "embedder": embed, "journal": journal},
        lambda: {**effective(settings), "reload": reloads()},
        Everybody(parts.opened.store_backend, backends.journal).users,
        backends.journal,
        partial(asyncio.to_thread, models.providers, settings.memory.embedding, backends.embedder.signature),
    )


def metrics_page(metrics: Metrics, parts: Parts, components: Up) -> MetricsPage:
    """The page with what nobody announces: how much waits, is held in memory, or was dropped, and which components are
    up."""
    backends, writer, usage, reindexing = parts.opened.backends, parts.writer, parts.usage.writer, parts.reindexing
    conversations, warming, logged = parts.conversations.writer, parts.warming, parts.request_log
    reindex = {metrics.reindex_state.labels(state.value): partial(_is_in, reindexing, state) for state in ReindexState}
    up = {metrics.component_up.labels(name): is_up for name, is_up in components.items()}
    return MetricsPage(
        metrics,
        gauges={
            metrics.journal_queue: lambda: len(writer),
            metrics.usage_queue: lambda: len(usage),
            metrics.conversations_queue: lambda: len(conversations),
            metrics.request_log_queue: lambda: len(logged),
            metrics.session_states_waiting: lambda: len(parts.compression.maker),
            metrics.hot_users: lambda: backends.store.taken.users,
            metrics.hot_memories: lambda: backends.store.taken.memories,
            metrics.hot_bytes: lambda: backends.store.taken.bytes,
            metrics.erasures_pending: lambda: parts.erasure.pending,
            metrics.reindex_users: partial(_count, reindexing, "users"),
            metrics.reindex_users_done: partial(_count, reindexing, "users_done"),
            metrics.reindex_memories_done: partial(_count, reindexing, "memories_done"),
            metrics.reindex_embedded: partial(_count, reindexing, "embedded"),
            **up,
            **reindex,
        },
        totals={
            metrics.journal_dropped: lambda: writer.dropped,
            metrics.uses_dropped: lambda: parts.uses.dropped,
            metrics.usage_written: lambda: usage.written,
            metrics.usage_dropped: lambda: usage.dropped,
            metrics.conversations_written: lambda: conversations.written,
            **{
                counter.labels(word): partial(counts.__getitem__, word)
                for counter, counts in (
                    (metrics.conversations_missed, conversations.missed),
                    (metrics.conversations_removed, conversations.removed),
                    (metrics.request_log, logged.counts),
                    (metrics.chained_requests, parts.conversations.chained),
                )
                for word in counts
            },
            metrics.erased_halves.labels("journal"): lambda: backends.journal.turned_away,
            **{metrics.warmed_users.labels(word): partial(warming.counts.__getitem__, word) for word in Preloaded},
        },
    )


def _is_in(reindexing: Reindexing, state: ReindexState) -> float:
    return float(reindexing.known is not None and reindexing.known.state is state)


def _count(reindexing: Reindexing, name: str) -> float:
    return 0.0 if reindexing.known is None else float(getattr(reindexing.known, name))
