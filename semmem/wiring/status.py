"""What a running semmem says of itself: the page of metrics, and the engine's state for the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from semmem import __version__
from semmem.backup.exporting import Everybody
from semmem.config import effective
from semmem.config.settings import Settings
from semmem.management.engine_api import Engine, EngineStatus, ReloadState
from semmem.ports.reindexing import ReindexState
from semmem.reindex.reindexing import Reindexing
from semmem.retrieval.index.kept import Preloaded
from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.wiring.backends import Backends
from semmem.wiring.parts import Parts

PROBE = "Does the embedder answer?"


def engine(
    settings: Settings,
    backends: Backends,
    parts: Parts,
    up: Mapping[str, Callable[[], bool]],
    reloads: Callable[[], ReloadState],
) -> Engine:
    """``up``: which components answered when they were last asked; ``reloads``: what became of those of the
    configuration."""

    def status() -> EngineStatus:
        memory, embedding = settings.memory, settings.memory.embedding
        store = backends.store
        return {
            "version": __version__,
            "started_at": datetime.fromtimestamp(parts.began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "components": {name: is_up() for name, is_up in up.items()},
            "store": {
                "backend": memory.backend,
                "hot_users": store.users,
                "hot_memories": store.memories,
                "reindex": parts.reindexing.state,
            },
            "embedding": {
                "source": embedding.source,
                "signature": backends.embedder.signature,
                "dimension": embedding.dimension,
            },
            "journal": {"kind": "postgresql" if settings.journal.url else "sqlite", "waiting": len(parts.writer)},
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
        {"store": parts.opened.store_backend.health, "embedder": embed, "journal": journal},
        lambda: {**effective(settings), "reload": reloads()},
        Everybody(parts.opened.store_backend, backends.journal).users,
        backends.journal.users_after,
    )


def metrics_page(metrics: Metrics, parts: Parts, components: Mapping[str, Callable[[], bool]]) -> MetricsPage:
    """The page with what nobody announces: how much waits, is held in memory, or was dropped, and which components are
    up."""
    backends, writer, usage, reindexing = parts.opened.backends, parts.writer, parts.usage.writer, parts.reindexing
    conversations, warming = parts.conversations.writer, parts.warming
    reindex = {metrics.reindex_state.labels(state.value): partial(_is_in, reindexing, state) for state in ReindexState}
    done = {
        metrics.reindex_users: "users",
        metrics.reindex_users_done: "users_done",
        metrics.reindex_memories_done: "memories_done",
        metrics.reindex_embedded: "embedded",
    }
    reindex |= {gauge: partial(_count, reindexing, name) for gauge, name in done.items()}
    up = {metrics.component_up.labels(name): is_up for name, is_up in components.items()}
    return MetricsPage(
        metrics,
        gauges={
            metrics.journal_queue: lambda: len(writer),
            metrics.usage_queue: lambda: len(usage),
            metrics.conversations_queue: lambda: len(conversations),
            metrics.session_states_waiting: lambda: len(parts.compression.maker),
            metrics.hot_users: lambda: backends.store.users,
            metrics.hot_memories: lambda: backends.store.memories,
            metrics.hot_bytes: lambda: backends.store.bytes,
            metrics.erasures_pending: lambda: parts.erasure.pending,
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
