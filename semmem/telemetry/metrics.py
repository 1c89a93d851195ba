"""Every metric, on one screen: name, help, labels, buckets. No label ever carries a user, a session or content."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from platform import python_version
from typing import get_type_hints

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics

from semmem import __version__
from semmem.ports import events
from semmem.ports.events import Event
from semmem.telemetry.words import WORDS

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.5)
SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
COUNTS = (0, 1, 2, 3, 5, 10, 20, 50)
LAGS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # twice as many series, which nobody asks for


class Metrics:
    """The ``llm_memory_*`` names are the vLLM Semantic Router's, without its user label; ``semmem_*`` are ours."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build = Info("semmem_build", "The version that runs.", registry=self.registry)
        build.info({"version": __version__, "python": python_version()})
        self.of_events: dict[type[Event], tuple[Counter, Sequence[str]]] = {}
        """What is counted by the fields of an event alone: by which labels."""
        count, gauge, times = self._count, self._gauge, self._times

        # request phase
        self.outcomes = count(
            "semmem_requests", "Requests by outcome word; docs/operations.md#requests says what each means.", "outcome"
        )
        self.request_seconds = times(
            "semmem_request_seconds", "Body received to answer given, by outcome word.", "outcome"
        )
        self.requests_switched = count(
            "semmem_requests_switched", "Requests that a switch kept something from (reading, storing, both).", "what"
        )
        self.injected_memories = count("semmem_injected_memories", "Memories put into prompts.")
        self.injected_tokens = count("semmem_injected_tokens", "Estimated tokens put into prompts.")
        self.retrievals = count("llm_memory_retrieval", "Searches by result (hit, miss, error).", "backend", "status")
        self.retrieval_seconds = times(
            "llm_memory_retrieval_latency_seconds", "Store calls on the request path.", "backend", "operation"
        )
        self.retrieval_results = times(
            "llm_memory_retrieval_results", "Memories found per search.", "backend", buckets=COUNTS
        )
        count(
            "semmem_prompt_prefixes",
            "What became of a session's earlier blocks in a request: kept, edited, or why none is there.",
            of=events.PromptPrefix,
        )
        count("semmem_query_rewrites", "Queries a model was wanted for, by result.", of=events.Rewritten)
        count("semmem_reranks", "Searches reranked, by result.", of=events.Reranked)

        self.long_requests = count(
            "semmem_long_requests", "Requests long enough to be compressed, by what came of it.", "result"
        )
        self.compressed_tokens = count(
            "semmem_compressed_tokens",
            "Estimated tokens of the messages of compressed requests, before and after.",
            "when",
        )
        count("semmem_session_states", "States of long sessions that were to be made, by result.", of=events.StateMade)
        self.session_states_waiting = gauge("semmem_session_states_waiting", "Long sessions whose state is to be made.")

        # response phase and journal
        count("llm_memory_turns", "Observed turns by how their answer ended.", of=events.TurnEnded)
        self.prompt_tokens = count(
            "semmem_prompt_tokens",
            "Tokens of prompts, of answers whose provider reported how many of them its prompt cache had.",
        )
        self.cached_prompt_tokens = count(
            "semmem_cached_prompt_tokens", "Those of them that the provider's prompt cache had."
        )
        self.journal_turns = gauge("semmem_journal_turns", "Turns in the journal by state.", "state")
        self.journal_queue = gauge("semmem_journal_queue", "Halves of turns waiting to be committed.")
        self.journal_dropped = count("semmem_journal_dropped", "Halves lost to a full queue: mend the journal at once.")
        count(
            "semmem_history_messages",
            "Messages of requests that were recovered from a history, or are not learnt from, by the reason.",
            of=events.HistoryRead,
        )
        self.journal_commit_seconds = times(
            "semmem_journal_commit_seconds", "One group commit; error: the log says why.", "status"
        )

        # learning
        self.batches = count("semmem_batches", "Batches by what made them due (size, idle, end, drift).", "trigger")
        self.batch_turns = count(
            "semmem_batch_turns", "Turns of batches, by the status that their batch ended with.", "status"
        )
        self.extractions = count(
            "llm_memory_extraction",
            "Batches by terminal status; gave_up, extraction_failed: look at the model.",
            "status",
        )
        self.extraction_seconds = times(
            "llm_memory_extraction_latency_seconds", "One batch, whole.", "status", buckets=SLOW
        )
        self.at_once_turns = count(
            "semmem_at_once_turns", "Turns that were to be learnt from at once, by result.", "result"
        )
        self.at_once_facts = count("semmem_at_once_facts", "Their facts, by action.", "action")
        self.at_once_seconds = times(
            "semmem_at_once_seconds", "End of an answer to what its turn said being stored.", buckets=SLOW
        )
        self.turns_unread = count("semmem_turns_unread", "Turns that rules gave up reading, by reason.", "reason")
        self.facts = count("llm_memory_extraction_facts", "Facts stored, by type.", "type")
        self.fact_actions = count("semmem_fact_actions", "Facts, by action.", "action")
        self.facts_quarantined = count("semmem_facts_quarantined", "Facts kept from every search, by reason.", "reason")
        self.facts_rejected = count("semmem_facts_rejected", "Facts screened out, by reason.", "reason")

        # life of memories
        self.memories_removed = count(
            "semmem_memories_removed", "Memories and versions of them that went, by reason.", "reason"
        )
        self.erasures = count("llm_memory_erasures", "Erasures by result (done, pending, finished).", "result")
        self.erasures_pending = gauge(
            "semmem_erasures_pending", "Erasures that are begun and not finished: mend store or journal."
        )
        self.erased_halves = count(
            "semmem_erased_halves", "Halves of erased turns that came late, by where they were met.", "where"
        )
        self.erased_sentences = count(
            "semmem_erased_sentences", "Pieces taken out of waiting turns: they said again what was erased."
        )
        self.facts_dropped = count(
            "semmem_facts_dropped", "New facts not stored because a memory says the same, by reason.", "reason"
        )
        self.passages = count(
            "semmem_passages", "Pieces of what was said and answered: kept, or left out by reason.", "result"
        )
        self.drops_ignored = count(
            "semmem_model_drops_ignored", "Memories that a model named as wrong in vain, by reason.", "reason"
        )
        self.unsettled_pairs = count(
            "semmem_unsettled_pairs",
            "Pairs of memories that may contradict each other: found, and settled by word.",
            "result",
        )
        self.uses_dropped = count(
            "semmem_memory_uses_dropped", "Uses of memories that were not counted: the log says why."
        )

        # statistics of use
        self.usage_queue = gauge("semmem_usage_queue", "Answered requests waiting to be written.")
        self.usage_written = count("semmem_usage_written", "Answered requests written to the statistics of use.")
        self.usage_dropped = count(
            "semmem_usage_dropped", "Answered requests that the statistics of use miss, since too many waited."
        )

        # the request log
        self.request_log_queue = gauge("semmem_request_log_queue", "Halves of requests waiting for the request log.")
        self.request_log = count(
            "semmem_request_log", "Halves of requests by what became of them: kept in the request log or not.", "result"
        )

        # conversations
        self.conversations_queue = gauge(
            "semmem_conversations_queue", "Requests and answers waiting to be written to conversations."
        )
        self.conversations_written = count("semmem_conversations_written", "Messages written to conversations.")
        self.conversations_missed = count(
            "semmem_conversations_missed", "Requests and answers that conversations miss, by reason.", "reason"
        )
        self.conversations_removed = count(
            "semmem_conversations_removed",
            "Messages (per_user_max: conversations) that were removed since there was no room, or no time, for them.",
            "reason",
        )

        self.chained_requests = count(
            "semmem_chained_requests",
            "Requests of the Responses API that go on from an answer or with a conversation, by what became of their"
            " history.",
            "result",
        )

        # other replicas
        count(
            "semmem_change_news",
            "Users whose memories changed, told to other replicas or heard of from them, by result; everybody counts"
            " as one.",
            of=events.ChangesTold,
        )
        self.news_outages = count(
            "semmem_change_news_outages",
            "Times in which other replicas are not told or not heard, begun and ended.",
            "result",
        )

        # stores, embedder, models
        self.store_operations = count(
            "llm_memory_store_operations",
            "Store calls; error: look at the store, and at the log.",
            "backend",
            "operation",
            "status",
        )
        self.store_seconds = times("semmem_store_seconds", "Store calls, all of them.", "backend", "operation")
        self.hot_users = gauge("semmem_hot_users", "Users whose memories are in process.")
        self.hot_memories = gauge("semmem_hot_memories", "Memories in process, of all users.")
        self.hot_bytes = gauge("semmem_hot_bytes", "What memories in process take, estimated.")
        self.warmed_users = count(
            "semmem_warmed_users", "Users loaded after the start for whom nobody waited, by result.", "result"
        )
        self.embedder_seconds = times(
            "semmem_embedder_seconds", "One text to its vector, cache included: ok, error, busy, late.", "status"
        )
        self.model_seconds = times("semmem_model_seconds", "Calls to language models.", "role", "status", buckets=SLOW)

        # reindex
        self.reindex_state = gauge(
            "semmem_reindex_state", "1 for the state that a reindex is in, if there is one.", "state"
        )
        self.reindex_users = gauge("semmem_reindex_users", "Users to be reindexed.")
        self.reindex_users_done = gauge("semmem_reindex_users_done", "Users that are reindexed.")
        self.reindex_memories_done = gauge(
            "semmem_reindex_memories_done", "Memories that the new collection has in common with the former."
        )
        self.reindex_embedded = gauge("semmem_reindex_embedded", "Memories embedded for it.")

        # traces
        self.trace_spans = count(
            "semmem_trace_spans",
            "Spans by what became of them: exported, failed (the collector), dropped (a full queue).",
            "result",
        )

        # the process
        self.loop_lag_seconds = times(
            "semmem_loop_lag_seconds",
            "How late the event loop comes to what is due, looked at ten times a second while requests come.",
            buckets=LAGS,
        )

        count(
            "semmem_config_reloads",
            "Times the configuration was read again; refused: the log says why.",
            of=events.ConfigReloaded,
        )

        # doors
        self.streams = gauge("semmem_extproc_streams", "Open ext_proc streams.", "role")
        count(
            "semmem_extproc_streams_shed",
            "Streams closed at the limit: more replicas, or higher limits.",
            of=events.StreamShed,
        )
        count("semmem_extproc_errors", "Failures nobody expected: report what the log says.", of=events.StreamFailed)
        count(
            "semmem_api_screened",
            "Texts told through the API that the write screen did not simply keep, by result.",
            of=events.ApiScreened,
        )
        count("semmem_feedback", "Memories that users called helpful, or unhelpful.", of=events.FeedbackGiven)
        count("semmem_api_requests", "Management calls.", "route", "status", of=events.ApiAnswered)
        count("semmem_api_limited", "Management calls that came too soon, by whose limit it was.", of=events.ApiLimited)
        count(
            "semmem_api_audited",
            "Lines of the audit log, written or failed to be: look at its disk.",
            of=events.ApiAudited,
        )
        self.component_up = gauge(
            "semmem_component_up", "1 when the component answers; 0: docs/operations.md#components.", "component"
        )

    def _count(self, name: str, about: str, *labels: str, of: type[Event] | None = None) -> Counter:
        """``of``: the event that is counted, by its texts where no labels are named."""
        if of is not None:
            labels = labels or tuple(field for field, kind in get_type_hints(of).items() if kind is str)
        counter = Counter(name, about, labels, registry=self.registry)
        for word in WORDS.get(name, ()):
            counter.labels(word)
        if of is not None:
            self.of_events[of] = counter, labels
        return counter

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(name, about, labels, registry=self.registry)

    def _times(self, name: str, about: str, *labels: str, buckets: tuple[float, ...] = FAST) -> Histogram:
        histogram = Histogram(name, about, labels, buckets=buckets, registry=self.registry)
        for word in WORDS.get(name, ()):
            histogram.labels(word)
        return histogram


@dataclass(eq=False)
class MetricsPage:
    """``gauges``: each metric's value now. ``totals``: what each counter has come to since this process began."""

    metrics: Metrics
    _: KW_ONLY
    gauges: Mapping[Gauge, Callable[[], float]] = field(default_factory=dict)
    totals: Mapping[Counter, Callable[[], int]] = field(default_factory=dict)
    _counted: dict[Counter, int] = field(init=False, default_factory=dict)

    def __call__(self, accept: str = "") -> tuple[bytes, str]:
        """The page, and its media type: OpenMetrics, which has exemplars, for whoever accepts it."""
        for gauge, value in self.gauges.items():
            gauge.set(value())
        for counter, total in self.totals.items():
            now = total()
            counter.inc(now - self._counted.get(counter, 0))
            self._counted[counter] = now
        if openmetrics.CONTENT_TYPE_LATEST.partition(";")[0] in accept:
            page: bytes = openmetrics.generate_latest(self.metrics.registry)  # type: ignore[no-untyped-call]
            return page, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self.metrics.registry), CONTENT_TYPE_LATEST
