"""Every metric, on one screen: name, help, labels, buckets. No label ever carries a user, a session or content."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.5)
SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
COUNTS = (0, 1, 2, 3, 5, 10, 20, 50)
LAGS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    """The ``llm_memory_*`` names are the vLLM Semantic Router's, without its user label; ``semmem_*`` are ours."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = r = registry or CollectorRegistry()

        # request phase
        self.outcomes = Counter("semmem_requests", "Requests by outcome word.", ["outcome"], registry=r)
        self.request_seconds = Histogram(
            "semmem_request_seconds",
            "Body received to answer given, by outcome word.",
            ["outcome"],
            buckets=FAST,
            registry=r,
        )
        self.requests_switched = Counter(
            "semmem_requests_switched",
            "Requests that a switch kept something from (reading, storing, both).",
            ["what"],
            registry=r,
        )
        self.injected_memories = Counter("semmem_injected_memories", "Memories put into prompts.", registry=r)
        self.injected_tokens = Counter("semmem_injected_tokens", "Estimated tokens put into prompts.", registry=r)
        self.retrievals = Counter(
            "llm_memory_retrieval", "Searches by result (hit, miss, error).", ["backend", "status"], registry=r
        )
        self.retrieval_seconds = Histogram(
            "llm_memory_retrieval_latency_seconds", "Store calls on the request path.", ["backend", "operation"],
            buckets=FAST, registry=r,
        )  # fmt: skip
        self.retrieval_results = Histogram(
            "llm_memory_retrieval_results", "Memories found per search.", ["backend"], buckets=COUNTS, registry=r
        )
        self.prompt_prefixes = Counter(
            "semmem_prompt_prefixes",
            "What became of a session's earlier blocks in a request: kept, edited, or why none is there.",
            ["result"],
            registry=r,
        )
        self.rewrites = Counter(
            "semmem_query_rewrites", "Queries a model was wanted for, by result.", ["result"], registry=r
        )
        self.reranks = Counter("semmem_reranks", "Searches reranked, by result.", ["result"], registry=r)

        self.long_requests = Counter(
            "semmem_long_requests", "Requests long enough to be compressed, by what came of it.", ["result"], registry=r
        )
        self.compressed_tokens = Counter(
            "semmem_compressed_tokens",
            "Estimated tokens of the messages of compressed requests, before and after.",
            ["when"],
            registry=r,
        )
        self.session_states = Counter(
            "semmem_session_states", "States of long sessions that were to be made, by result.", ["result"], registry=r
        )
        self.session_states_waiting = Gauge(
            "semmem_session_states_waiting", "Long sessions whose state is to be made.", registry=r
        )

        # response phase and journal
        self.turns = Counter("llm_memory_turns", "Observed turns by how their answer ended.", ["status"], registry=r)
        self.prompt_tokens = Counter(
            "semmem_prompt_tokens",
            "Tokens of prompts, of answers whose provider reported how many of them its prompt cache had.",
            registry=r,
        )
        self.cached_prompt_tokens = Counter(
            "semmem_cached_prompt_tokens", "Those of them that the provider's prompt cache had.", registry=r
        )
        self.journal_turns = Gauge("semmem_journal_turns", "Turns in the journal by state.", ["state"], registry=r)
        self.journal_queue = Gauge("semmem_journal_queue", "Halves of turns waiting to be committed.", registry=r)
        self.journal_dropped = Counter("semmem_journal_dropped", "Halves lost to a full queue.", registry=r)
        self.history_messages = Counter(
            "semmem_history_messages",
            "Messages of requests that were recovered from a history, or are not learnt from, by the reason.",
            ["result"],
            registry=r,
        )
        self.journal_commit_seconds = Histogram(
            "semmem_journal_commit_seconds", "One group commit.", ["status"], buckets=FAST, registry=r
        )

        # learning
        self.batches = Counter(
            "semmem_batches",
            "Batches by what made them due (size, idle, end, drift).",
            ["trigger"],
            registry=r,
        )
        self.extractions = Counter("llm_memory_extraction", "Batches by terminal status.", ["status"], registry=r)
        self.extraction_seconds = Histogram(
            "llm_memory_extraction_latency_seconds", "One batch, whole.", ["status"], buckets=SLOW, registry=r
        )
        self.at_once_turns = Counter(
            "semmem_at_once_turns", "Turns that were to be learnt from at once, by result.", ["result"], registry=r
        )
        self.at_once_facts = Counter("semmem_at_once_facts", "Their facts, by action.", ["action"], registry=r)
        self.at_once_seconds = Histogram(
            "semmem_at_once_seconds", "End of an answer to what its turn said being stored.", buckets=SLOW, registry=r
        )
        self.turns_unread = Counter(
            "semmem_turns_unread", "Turns that rules gave up reading, by reason.", ["reason"], registry=r
        )
        self.facts = Counter("llm_memory_extraction_facts", "Facts stored, by type.", ["type"], registry=r)
        self.fact_actions = Counter("semmem_fact_actions", "Facts, by action.", ["action"], registry=r)
        self.facts_quarantined = Counter(
            "semmem_facts_quarantined", "Facts kept from every search, by reason.", ["reason"], registry=r
        )
        self.facts_rejected = Counter("semmem_facts_rejected", "Facts screened out, by reason.", ["reason"], registry=r)

        # life of memories
        self.memories_removed = Counter(
            "semmem_memories_removed",
            "Memories and versions of them that went, by reason.",
            ["reason"],
            registry=r,
        )
        self.erasures = Counter(
            "llm_memory_erasures", "Erasures by result (done, pending, finished).", ["result"], registry=r
        )
        self.erasures_pending = Gauge(
            "semmem_erasures_pending", "Erasures that are begun and not finished.", registry=r
        )
        self.erased_halves = Counter(
            "semmem_erased_halves", "Halves of erased turns that came late, by where they were met.", ["where"],
            registry=r,
        )  # fmt: skip
        self.erased_sentences = Counter(
            "semmem_erased_sentences", "Pieces taken out of waiting turns: they said again what was erased.", registry=r
        )
        self.facts_dropped = Counter(
            "semmem_facts_dropped", "New facts not stored because a memory says the same, by reason.", ["reason"],
            registry=r,
        )  # fmt: skip
        self.passages = Counter(
            "semmem_passages", "Pieces of what was said and answered: kept, or left out by reason.", ["result"],
            registry=r,
        )  # fmt: skip
        self.drops_ignored = Counter(
            "semmem_model_drops_ignored", "Memories that a model named as wrong in vain, by reason.", ["reason"],
            registry=r,
        )  # fmt: skip
        self.unsettled_pairs = Counter(
            "semmem_unsettled_pairs",
            "Pairs of memories that may contradict each other: found, and settled by word.",
            ["result"],
            registry=r,
        )
        self.uses_dropped = Counter("semmem_memory_uses_dropped", "Uses of memories that were not counted.", registry=r)

        # statistics of use
        self.usage_queue = Gauge("semmem_usage_queue", "Answered requests waiting to be written.", registry=r)
        self.usage_written = Counter(
            "semmem_usage_written", "Answered requests written to the statistics of use.", registry=r
        )
        self.usage_dropped = Counter(
            "semmem_usage_dropped",
            "Answered requests that the statistics of use miss, since too many waited.",
            registry=r,
        )

        # conversations
        self.conversations_queue = Gauge(
            "semmem_conversations_queue", "Requests and answers waiting to be written to conversations.", registry=r
        )
        self.conversations_written = Counter(
            "semmem_conversations_written", "Messages written to conversations.", registry=r
        )
        self.conversations_missed = Counter(
            "semmem_conversations_missed", "Requests and answers that conversations miss, by reason.", ["reason"],
            registry=r,
        )  # fmt: skip
        self.conversations_removed = Counter(
            "semmem_conversations_removed",
            "Messages (per_user_max: conversations) that were removed since there was no room, or no time, for them.",
            ["reason"],
            registry=r,
        )

        self.chained_requests = Counter(
            "semmem_chained_requests",
            "Requests of the Responses API that go on from an answer or with a conversation, by what became of their"
            " history.",
            ["result"],
            registry=r,
        )

        # other replicas
        self.change_news = Counter(
            "semmem_change_news",
            "Users whose memories changed, told to other replicas or heard of from them, by result; everybody counts"
            " as one.",
            ["result"],
            registry=r,
        )
        self.news_outages = Counter(
            "semmem_change_news_outages",
            "Times in which other replicas are not told or not heard, begun and ended.",
            ["result"],
            registry=r,
        )

        # stores, embedder, models
        self.store_operations = Counter(
            "llm_memory_store_operations", "Store calls.", ["backend", "operation", "status"], registry=r
        )
        self.store_seconds = Histogram(
            "semmem_store_seconds", "Store calls, all of them.", ["backend", "operation"], buckets=FAST, registry=r
        )
        self.hot_users = Gauge("semmem_hot_users", "Users whose memories are in process.", registry=r)
        self.hot_memories = Gauge("semmem_hot_memories", "Memories in process, of all users.", registry=r)
        self.hot_bytes = Gauge("semmem_hot_bytes", "What memories in process take, estimated.", registry=r)
        self.warmed_users = Counter(
            "semmem_warmed_users", "Users loaded after the start for whom nobody waited, by result.", ["result"],
            registry=r,
        )  # fmt: skip
        self.embedder_seconds = Histogram(
            "semmem_embedder_seconds",
            "One text to its vector, cache included: ok, error, busy, late.",
            ["status"],
            buckets=FAST,
            registry=r,
        )
        self.model_seconds = Histogram(
            "semmem_model_seconds", "Calls to language models.", ["role", "status"], buckets=SLOW, registry=r
        )

        # reindex
        self.reindex_state = Gauge(
            "semmem_reindex_state", "1 for the state that a reindex is in, if there is one.", ["state"], registry=r
        )
        self.reindex_users = Gauge("semmem_reindex_users", "Users to be reindexed.", registry=r)
        self.reindex_users_done = Gauge("semmem_reindex_users_done", "Users that are reindexed.", registry=r)
        self.reindex_memories_done = Gauge(
            "semmem_reindex_memories_done",
            "Memories that the new collection has in common with the former.",
            registry=r,
        )
        self.reindex_embedded = Gauge("semmem_reindex_embedded", "Memories embedded for it.", registry=r)

        # traces
        self.trace_spans = Counter(
            "semmem_trace_spans",
            "Spans by what became of them: exported, failed (the collector), dropped (a full queue).",
            ["result"],
            registry=r,
        )

        # the process
        self.loop_lag_seconds = Histogram(
            "semmem_loop_lag_seconds",
            "How late the event loop comes to what is due, looked at ten times a second while requests come.",
            buckets=LAGS,
            registry=r,
        )

        self.config_reloads = Counter(
            "semmem_config_reloads", "Times the configuration was read again, by outcome.", ["outcome"], registry=r
        )

        # doors
        self.streams = Gauge("semmem_extproc_streams", "Open ext_proc streams.", ["role"], registry=r)
        self.streams_shed = Counter("semmem_extproc_streams_shed", "Streams closed at the limit.", ["role"], registry=r)
        self.door_errors = Counter("semmem_extproc_errors", "Failures nobody expected.", ["role"], registry=r)
        self.api_screened = Counter(
            "semmem_api_screened",
            "Texts told through the API that the write screen did not simply keep, by result.",
            ["result", "reason"],
            registry=r,
        )
        self.feedback = Counter(
            "semmem_feedback", "Memories that users called helpful, or unhelpful.", ["result"], registry=r
        )
        self.api_requests = Counter("semmem_api_requests", "Management calls.", ["route", "status"], registry=r)
        self.api_limited = Counter(
            "semmem_api_limited", "Management calls that came too soon, by whose limit it was.", ["who"], registry=r
        )
        self.api_audited = Counter(
            "semmem_api_audited", "Lines of the audit log, written or failed to be.", ["result"], registry=r
        )
        self.component_up = Gauge("semmem_component_up", "1 when the component answers.", ["component"], registry=r)
