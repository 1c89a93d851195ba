"""The one listener of a running semmem: counts every event, and writes the log line of those that have one."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from prometheus_client import Counter

from semmem.extraction.result import BatchLearnt, BatchResult, TurnLearnt
from semmem.lifecycle.erasure import ERASED, PENDING
from semmem.memory import REPEATED
from semmem.ports import events
from semmem.ports.events import Event, MemoriesRemoved
from semmem.ports.spans import current
from semmem.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


class Counting:
    """An ``Announce``. ``backend`` names the store in the labels of searches, ``retention_days`` is how long the
    journal keeps turns that were not learnt from."""

    def __init__(self, metrics: Metrics, *, backend: str, retention_days: float) -> None:
        self._metrics = metrics
        self._backend = backend
        # What every request counts: looking a label up costs as much as counting, so each is looked up once.
        self._outcome, self._request_seconds = cache(metrics.outcomes.labels), cache(metrics.request_seconds.labels)
        self._retrieval = cache(metrics.retrievals.labels)
        self._retrieval_seconds = cache(partial(metrics.retrieval_seconds.labels, backend, "search"))
        self._retrieval_results = cache(partial(metrics.retrieval_results.labels, backend))
        self._streams = cache(metrics.streams.labels)
        for status in ("hit", "miss", "error"):
            self._retrieval(backend, status)
        self._retention_days = retention_days
        self.requests = 0
        """How many have ended."""
        self._counts: Mapping[type[Event], Callable[[Any], None]] = {
            **{kind: _by_fields(kind, *counted) for kind, counted in metrics.of_events.items()},
            events.StreamOpened: lambda event: self._streams(event.role).inc(),
            events.StreamClosed: lambda event: self._streams(event.role).dec(),
            events.RequestEnded: self._request_ended,
            events.Searched: self._searched,
            events.LongRequest: self._long_request,
            events.PromptReported: self._prompt_reported,
            events.JournalCommitted: lambda event: metrics.journal_commit_seconds.labels(event.status).observe(
                event.seconds
            ),
            events.JournalCounted: self._journal_counted,
            events.TurnsUnread: self._turns_unread,
            BatchLearnt: self._batch_learnt,
            TurnLearnt: self._turn_learnt,
            MemoriesRemoved: self._memories_removed,
            events.ErasureEnded: self._erasure_ended,
            events.NewsLost: self._news_lost,
            events.NewsBack: self._news_back,
        }

    def __call__(self, event: Event) -> None:
        self._counts[type(event)](event)

    def _request_ended(self, event: events.RequestEnded) -> None:
        self.requests += 1
        self._outcome(event.outcome).inc()
        trace_id = current().trace_id
        self._request_seconds(event.outcome).observe(event.seconds, {"trace_id": trace_id} if trace_id else None)
        if event.switched:
            self._metrics.requests_switched.labels(event.switched).inc()
        if event.memories:
            self._metrics.injected_memories.inc(event.memories)
            self._metrics.injected_tokens.inc(event.tokens)

    def _long_request(self, event: events.LongRequest) -> None:
        self._metrics.long_requests.labels(event.result).inc()
        if event.tokens_before:
            self._metrics.compressed_tokens.labels("before").inc(event.tokens_before)
            self._metrics.compressed_tokens.labels("after").inc(event.tokens_after)

    def _prompt_reported(self, event: events.PromptReported) -> None:
        self._metrics.prompt_tokens.inc(event.prompt_tokens)
        self._metrics.cached_prompt_tokens.inc(event.cached_tokens)

    def _searched(self, event: events.Searched) -> None:
        self._retrieval(self._backend, event.status).inc()
        self._retrieval_seconds().observe(event.seconds)
        if event.status != "error":
            self._retrieval_results().observe(event.hits)

    def _journal_counted(self, event: events.JournalCounted) -> None:
        for state, number in event.turns.items():
            self._metrics.journal_turns.labels(state).set(number)

    def _turns_unread(self, event: events.TurnsUnread) -> None:
        self._metrics.turns_unread.labels(event.reason).inc(event.turns)
        what = (event.batch_id, event.turns, event.reason, self._retention_days)
        log.warning("batch %s: %d turns not learnt from (%s), kept %d days", *what)

    def _memories_removed(self, event: MemoriesRemoved) -> None:
        self._metrics.memories_removed.labels(event.reason).inc(event.number)
        if event.number:
            log.info("memories removed: %d (%s)", event.number, event.reason)

    def _erasure_ended(self, event: events.ErasureEnded) -> None:
        self._metrics.erasures.labels(event.result).inc()
        if event.result == PENDING:
            log.error("an erasure could not be completed; what it covers is hidden, and it is tried again")
            return
        self._memories_removed(MemoriesRemoved(ERASED, event.memories))
        self._metrics.erased_halves.labels("queue").inc(event.halves)
        self._metrics.erased_sentences.inc(event.sentences)
        log.info("an erasure is %s: %d turns, %d memories", event.result, event.turns, event.memories)

    def _news_lost(self, event: events.NewsLost) -> None:
        self._metrics.news_outages.labels("begun").inc()
        log.warning(
            "other replicas are not told of changes, or not heard (%s): until that is so again, changes show when hot"
            " memories reach their staleness",
            event.why,
        )

    def _news_back(self, event: events.NewsBack) -> None:
        self._metrics.news_outages.labels("ended").inc()
        log.info("other replicas are told of changes, and heard, again")

    def _batch_learnt(self, event: BatchLearnt) -> None:
        batch_id, result, metrics = event.batch_id, event.result, self._metrics
        metrics.batches.labels(event.trigger).inc()
        metrics.batch_turns.labels(result.status).inc(event.turns)
        metrics.extractions.labels(result.status).inc()
        metrics.extraction_seconds.labels(result.status).observe(event.seconds)
        _add(metrics.facts, result.stored)
        _add(metrics.fact_actions, result.actions)
        _add(metrics.facts_rejected, result.rejected)
        _add(metrics.facts_quarantined, result.quarantined)
        _add(metrics.passages, result.passages)
        for reason, number in result.ignored.items():
            metrics.drops_ignored.labels(reason).inc(number)
            log.info("batch %s: %d memories named as wrong in vain (%s)", batch_id, number, reason)
        self._replaced(f"batch {batch_id}", result)
        stored = sum(result.stored.values())
        if result.cause:
            log.warning("batch %s: %s (%s), %d facts stored", batch_id, result.status, result.cause, stored)
        else:
            log.info("batch %s: %s, %d facts stored", batch_id, result.status, stored)

    def _turn_learnt(self, event: TurnLearnt) -> None:
        """What of a turn is screened out is counted with its batch, which screens it again."""
        result, metrics = event.result, self._metrics
        metrics.at_once_turns.labels(result.status).inc()
        _add(metrics.at_once_facts, result.actions)
        if rejected := sum(result.rejected.values()):
            metrics.at_once_facts.labels("rejected").inc(rejected)
        if result.stored:
            metrics.at_once_seconds.observe(event.seconds)
        self._replaced("at once", result)
        if result.cause:
            log.warning("a turn was not learnt from at once: %s, its batch does", result.cause)

    def _replaced(self, where: str, result: BatchResult) -> None:
        """Nothing that a user told goes in silence: each removal is counted and logged, by ids and reason alone. What
        nobody can tell yet is counted as well."""
        for removal in result.removals:
            if removal.reason == REPEATED:
                self._metrics.facts_dropped.labels(removal.reason).inc()
            else:
                self._metrics.memories_removed.labels(removal.reason).inc()
            log.info("%s: %s %s, in favour of %s", where, removal.reason, removal.id, removal.by or "nothing")
        _add(self._metrics.unsettled_pairs, result.pairs)
        for reason, number in result.rejected.items():
            log.info("%s: %d facts rejected (%s)", where, number, reason)


def _add(counter: Counter, numbers: Mapping[str, int]) -> None:
    for label, number in numbers.items():
        counter.labels(label).inc(number)


def _by_fields(kind: type[Event], counter: Counter, labels: Sequence[str]) -> Callable[[Event], None]:
    """Counts events of this kind. A label is the field of its name; another field says how many, else it is one."""
    number = next((name for name in kind.__struct_fields__ if name not in labels), None)
    labelled = cache(counter.labels)

    def count(event: Event) -> None:
        labelled(*(getattr(event, name) for name in labels)).inc(1 if number is None else getattr(event, number))

    return count
