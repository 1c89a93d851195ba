"""The whole configuration as frozen values. The schema is the code below; docs/configuration.md is made from it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from semmem.config.features_section import (
    CompressionSection,
    ConversationsSection,
    PassagesSection,
    TracingSection,
    UsageSection,
)
from semmem.config.listeners_section import AUDIT_TO_STDOUT, IdentitySection, ListenersSection, SignalsSection
from semmem.config.memory_section import MemorySection
from semmem.config.models_section import ExternalModel
from semmem.config.stores_section import JournalSection
from semmem.config.values import (
    ERASING,
    STORE,
    ApiPath,
    Days,
    ListOf,
    Milliseconds,
    NonEmptyLine,
    Seconds,
    Section,
    key,
)


class CaptureSection(Section):
    """``capture``: how answers are learnt of, and messages that semmem missed. What users say is journalled in every
    mode."""

    restart: ClassVar = {
        "mode": "Envoy's filters must be configured for it at the same moment",
        "seen_messages_max": "messages that are known already are kept by it",
    }

    mode: Literal["observe", "single_filter", "history", "off"] = key(
        "observe",
        "observe: a second filter listens; single_filter: one filter does both, at a cost per token;"
        " history: from the next request, which resends it; off: not at all",
    )
    recover_history: Literal["known_sessions", "always", "never"] = key(
        "known_sessions",
        "messages that semmem never saw are learnt from the history of a later request: known_sessions: those"
        " behind messages that it saw; always: the beginning too, with what applications put in front of their"
        " prompts; never: none",
    )
    recover_beginnings_s: float = key(
        1800.0,
        "for so long after a start known_sessions learns beginnings too, except what several users' histories hold;"
        " 0 where applications put changing examples in front of their prompts",
        ge=0,
        le=86_400.0,
    )
    history_turns_max: int = key(50, "messages recovered from one request's history, the newest", ge=1, le=1000)
    new_turns_max: int = key(32, "new messages of one request, the newest", ge=1, le=256)
    seen_messages_max: int = key(
        20_000, "messages that are known again without asking the journal, about 400 bytes each", ge=1, le=10_000_000
    )


class PathsSection(Section):
    """``paths``: where each API is found, on the routes of Envoy's that switch semmem on; a query is not looked at.
    ``*`` stands for any one part between slashes."""

    chat: ListOf[ApiPath] = key(("/v1/chat/completions",), "OpenAI's chat completions", max_length=100)
    responses: ListOf[ApiPath] = key(("/v1/responses",), "OpenAI's Responses", max_length=100)
    messages: ListOf[ApiPath] = key(("/v1/messages",), "Anthropic's Messages", max_length=100)

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The paths of each API, by its dialect's name."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class ErasureSection(Section):
    """``erasure``: what happens when memories are deleted by somebody who asks for it."""

    restart = ERASING

    wait_s: Seconds = key(2.0, "longest wait for writes under way")
    replicas_wait_s: Seconds = key(
        5.0, "longest wait until every other replica on the same journal hides it; then it is pending"
    )
    answer_s: Seconds = key(15.0, "how long a caller waits; then the answer is 503 and the rest is done behind it")
    retry_s: Seconds = key(5.0, "pause before what is pending is tried again")
    hidden_s: Seconds = key(300.0, "how long what is gone stays hidden from reads and writes that come late")
    marks_days: Days = key(
        30,
        "how long an erasure is known (as a digest); older halves of turns that come later are learnt",
    )
    pending_max: int = key(1000, "erasures remembered that are not finished", ge=1, le=100_000)


class DeadlinesSection(Section):
    """``deadlines``: each one longer than the next, so that the inner one is always heard of."""

    restart: ClassVar = {"store_ms": STORE}

    message_timeout_ms: Milliseconds = key(500, "Envoy's message_timeout for semmem; repeat here what envoy.yaml says")
    max_message_timeout_ms: int = key(
        0,
        "Envoy's max_message_timeout, if envoy.yaml sets one: up to this, semmem may ask for more time",
        ge=0,
        le=60_000,
    )
    phase_ms: Milliseconds = key(350, "all work on one request, but for rewriting and reranking")
    rewrite_ms: Milliseconds = key(
        300, "one call of the memory_rewrite model; only where memory.query.mode asks for it"
    )
    store_ms: Milliseconds = key(200, "one search of the store")


class LimitsSection(Section):
    """``limits``: what one request may cost. Beyond a limit a request passes as it came."""

    restart: ClassVar = {
        "request_body_bytes_max response_body_bytes_max": "the listener's longest message is made of it",
        "requests_remembered": "those that are remembered stay where they are",
    }

    request_body_bytes_max: int = key(16 * 1024**2, "longest request body that is read", ge=1024, le=256 * 1024**2)
    request_messages_max: int = key(5000, "messages (input items) of a request that is read", ge=1, le=1_000_000)
    request_values_max: int = key(
        100_000,
        "JSON values (members and elements) of a request that is read",
        ge=100,
        le=10_000_000,
    )
    inline_body_bytes_max: int = key(
        64 * 1024, "longer request bodies are read and rewritten beside the event loop", ge=1024, le=256 * 1024**2
    )
    response_body_bytes_max: int = key(
        4 * 1024**2, "longest JSON answer or SSE event that is read", ge=1024, le=256 * 1024**2
    )
    answer_bytes_max: int = key(64 * 1024, "text kept of an answer: its tail", ge=256, le=16 * 1024**2)
    decoded_bytes_max: int = key(64 * 1024**2, "what one compressed answer may unpack to", ge=1024, le=1024**3)
    query_chars_max: int = key(2000, "text of a question that is searched for", ge=16, le=32_000)
    mutate_streams_max: int = key(256, "requests worked on at once; more pass without memory", ge=1, le=100_000)
    observe_streams_max: int = key(1024, "answers observed at once; more go unlearnt", ge=1, le=100_000)
    requests_remembered: int = key(
        1000, "requests whose ends GET /v1/requests can tell of, the last ones, in this process", ge=1, le=100_000
    )


class LogSection(Section):
    """``log``: what semmem writes to standard error. Never what users say."""

    restart: ClassVar = {"format": "what else the process prints is wrapped by it"}

    level: Literal["debug", "info", "warning", "error"] = key("info", "least severity written")
    format: Literal["text", "json"] = key("text", "one line of text, or one JSON object")


class DeploymentSection(Section):
    """``deployment``: how semmem is run."""

    restart: ClassVar = {"replicas": "how replicas keep out of each other's way follows from it"}

    replicas: int = key(1, "how many semmem processes share the store", ge=1, le=1000)
    drain_s: Seconds = key(20.0, "time to finish after SIGTERM; less than the pod's grace period")


class Settings(Section):
    """Everything semmem can be told. ``Settings()`` is the default configuration."""

    restart: ClassVar = {"data_dir": "what is kept is bound to it"}

    data_dir: NonEmptyLine = key("./data", "directory of everything semmem keeps on this machine")
    memory: MemorySection = MemorySection()
    identity: IdentitySection = IdentitySection()
    signals: SignalsSection = SignalsSection()
    paths: PathsSection = PathsSection()
    capture: CaptureSection = CaptureSection()
    external_models: ListOf[ExternalModel] = key((), "language models, by role", max_length=3)
    journal: JournalSection = JournalSection()
    erasure: ErasureSection = ErasureSection()
    listeners: ListenersSection = ListenersSection()
    deadlines: DeadlinesSection = DeadlinesSection()
    limits: LimitsSection = LimitsSection()
    log: LogSection = LogSection()
    tracing: TracingSection = TracingSection()
    usage: UsageSection = UsageSection()
    conversations: ConversationsSection = ConversationsSection()
    passages: PassagesSection = PassagesSection()
    compression: CompressionSection = CompressionSection()
    deployment: DeploymentSection = DeploymentSection()

    @property
    def rewrite_ms(self) -> int:
        """How much longer a request may take for a rewritten query; 0 when there is no rewriting."""
        return 0 if self.memory.query.mode == "prepend" else self.deadlines.rewrite_ms

    @property
    def rerank_ms(self) -> int:
        """How much longer a request may take for reranking; 0 when there is none."""
        return self.memory.rerank.timeout_ms if self.memory.rerank.url else 0

    @property
    def milvus_dir(self) -> Path:
        """Directory of the embedded store."""
        return Path(self.data_dir) / self.memory.milvus.data_dir

    @property
    def qdrant_dir(self) -> Path:
        """Directory of Qdrant's local mode."""
        return Path(self.data_dir) / self.memory.qdrant.data_dir

    @property
    def journal_file(self) -> Path:
        """The journal's SQLite file."""
        return Path(self.data_dir) / self.journal.path

    @property
    def audit_file(self) -> Path | None:
        """The file of the audit log; None where it is none, or goes to standard output."""
        to = self.listeners.api.audit.to
        return Path(self.data_dir) / to if to not in ("", AUDIT_TO_STDOUT) else None

    def external_model(self, role: str) -> ExternalModel | None:
        """The model configured for a role, or None."""
        return next((model for model in self.external_models if model.model_role == role), None)
