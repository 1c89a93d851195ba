"""What runs -> the page of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from semmem.ports.reindexing import ReindexState
from semmem.reindex.reindexing import Reindexing
from semmem.retrieval.index.kept import Preloaded
from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.wiring.parts import Parts


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
