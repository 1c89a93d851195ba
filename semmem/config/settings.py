"""The whole configuration as frozen values. The schema is the code below; docs/configuration.md is made from it."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from semmem.config.backends_section import ExternalModel, JournalSection
from semmem.config.listeners_section import AUDIT_TO_STDOUT, IdentitySection, ListenersSection, SignalsSection
from semmem.config.memory_section import MemorySection
from semmem.config.values import (
    ERASING,
    STORE,
    ApiPath,
    Days,
    Fraction,
    HeaderName,
    HttpUrl,
    Line,
    ListOf,
    Milliseconds,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
    VariableName,
    in_variable,
    key,
    secret,
)


class CaptureSection(Section):
    """``capture``: how answers are learnt of, and messages that semmem missed. What users say is journalled in every
    mode."""

    restart: ClassVar = {
        "mode": "Envoy's filters must be configured for it at the same moment",
        "seen_messages_max": "messages that are known already are kept by it",
    }

    mode: Literal["observe", "single_filter", "history", "off"] = key("observe")
    """observe: a second filter listens; single_filter: one filter does both, at a cost per token; history: from the
    next request, which resends it; off: not at all"""
    recover_history: Literal["known_sessions", "always", "never"] = key("known_sessions")
    """messages that semmem never saw are learnt from the history of a later request: known_sessions: those behind
    messages that it saw; always: the beginning too, with what applications put in front of their prompts; never:
    none"""
    recover_beginnings_s: float = key(1800.0, ge=0, le=86_400.0)
    """for so long after a start known_sessions learns beginnings too, except what several users' histories hold; 0
    where applications put changing examples in front of their prompts"""
    history_turns_max: int = key(50, "messages recovered from one request's history, the newest", ge=1, le=1000)
    new_turns_max: int = key(32, "new messages of one request, the newest", ge=1, le=256)
    seen_messages_max: int = key(20_000, ge=1, le=10_000_000)
    """messages that are known again without asking the journal, about 400 bytes each"""


class PathsSection(Section):
    """``paths``: where each API is found, on the routes of Envoy's that switch semmem on; a query is not looked at.
    ``*`` stands for any one part between slashes."""

    chat: ListOf[ApiPath] = key(("/v1/chat/completions",), "OpenAI's chat completions", max_length=100)
    responses: ListOf[ApiPath] = key(("/v1/responses",), "OpenAI's Responses", max_length=100)
    messages: ListOf[ApiPath] = key(("/v1/messages",), "Anthropic's Messages", max_length=100)

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The paths of each API, by its dialect's name."""
        return {"chat": self.chat, "responses": self.responses, "messages": self.messages}


class ErasureSection(Section):
    """``erasure``: what happens when memories are deleted by somebody who asks for it."""

    restart = ERASING

    wait_s: Seconds = key(2.0, "longest wait for writes under way")
    replicas_wait_s: Seconds = key(5.0)
    """longest wait until every other replica on the same journal hides it; then it is pending"""
    answer_s: Seconds = key(15.0, "how long a caller waits; then the answer is 503 and the rest is done behind it")
    retry_s: Seconds = key(5.0, "pause before what is pending is tried again")
    hidden_s: Seconds = key(300.0, "how long what is gone stays hidden from reads and writes that come late")
    marks_days: Days = key(30)
    """how long an erasure is known (as a digest); older halves of turns that come later are learnt"""
    pending_max: int = key(1000, "erasures remembered that are not finished", ge=1, le=100_000)


class DeadlinesSection(Section):
    """``deadlines``: each one longer than the next, so that the inner one is always heard of."""

    restart: ClassVar = {"store_ms": STORE}

    message_timeout_ms: Milliseconds = key(500, "Envoy's message_timeout for semmem; repeat here what envoy.yaml says")
    max_message_timeout_ms: int = key(0, ge=0, le=60_000)
    """Envoy's max_message_timeout, if envoy.yaml sets one: up to this, semmem may ask for more time"""
    phase_ms: Milliseconds = key(350, "all work on one request, but for rewriting and reranking")
    rewrite_ms: Milliseconds = key(300)
    """one call of the memory_rewrite model; only where memory.query.mode asks for it"""
    store_ms: Milliseconds = key(200, "one search of the store")


class LimitsSection(Section):
    """``limits``: what one request may cost. Beyond a limit a request passes as it came."""

    restart: ClassVar = {
        "request_body_bytes_max response_body_bytes_max": "the listener's longest message is made of it",
    }

    request_body_bytes_max: int = key(16 * 1024**2, "longest request body that is read", ge=1024, le=256 * 1024**2)
    request_messages_max: int = key(5000, "messages (input items) of a request that is read", ge=1, le=1_000_000)
    request_values_max: int = key(100_000, ge=100, le=10_000_000)
    """JSON values (members and elements) of a request that is read"""
    inline_body_bytes_max: int = key(64 * 1024, ge=1024, le=256 * 1024**2)
    """longer request bodies are read and rewritten beside the event loop"""
    response_body_bytes_max: int = key(4 * 1024**2, ge=1024, le=256 * 1024**2)
    """longest JSON answer or SSE event that is read"""
    answer_bytes_max: int = key(64 * 1024, "text kept of an answer: its tail", ge=256, le=16 * 1024**2)
    decoded_bytes_max: int = key(64 * 1024**2, "what one compressed answer may unpack to", ge=1024, le=1024**3)
    query_chars_max: int = key(2000, "text of a question that is searched for", ge=16, le=32_000)
    mutate_streams_max: int = key(256, "requests worked on at once; more pass without memory", ge=1, le=100_000)
    observe_streams_max: int = key(1024, "answers observed at once; more go unlearnt", ge=1, le=100_000)


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


YEARS_10_S = 315_360_000


class ConversationsSection(Section):
    """``conversations``: what users, models and tools said, word for word; off unless enabled."""

    restart: ClassVar = {
        "enabled retention_s per_user_max messages_max message_chars_max queue_bytes_max flush_s"
        " search_messages_max": "what waits to be written is kept by it",
        "recall": "what has vectors of conversations made follows from it",
    }

    enabled: bool = key(False, "record the conversations of users whose words may be stored")
    retention_s: Annotated[float, Field(gt=0, le=YEARS_10_S)] = key(2_592_000.0)
    """how long messages are kept, in seconds (30 days)"""
    per_user_max: int = key(1000, "conversations of one user; beyond them the oldest go", ge=1, le=100_000)
    messages_max: int = key(1000, "messages of one conversation; beyond them the oldest go", ge=10, le=100_000)
    message_chars_max: int = key(16_384, "characters kept of one message: its beginning", ge=100, le=1_048_576)
    queue_bytes_max: int = key(64 * 1024**2, ge=1024**2, le=4 * 1024**3)
    """what waits to be written; more is dropped and counted"""
    flush_s: Seconds = key(1.0, "longest wait before it is written; a crash loses what waits")
    search_messages_max: int = key(20_000, "the newest messages of a user that one search reads", ge=100, le=1_000_000)
    recall: bool = key(True, "show former conversations to questions that ask for them, where they are recorded")
    recall_ms: int = key(100, "longest wait for them; a question goes on without them then", ge=1, le=10_000)
    chains: bool = key(False)
    """add the history to requests with `previous_response_id` or `conversation`, where models keep none"""
    begin_unknown: bool = key(False)
    """a `conversation` of which nothing is recorded begins here: no model behind Envoy keeps any itself"""
    chain_messages_max: int = key(200, "messages of a history that is added; longer ones are not", ge=2, le=1000)
    chain_ms: int = key(100, "longest wait for a history; a request passes as it came then", ge=1, le=10_000)


class PassagesSection(Section):
    """``passages``: users' own messages and the gist of what was answered, found where memories do not answer."""

    retention_days: Days = key(365, "how long what was said is kept; 0: nothing is kept or shown")
    per_user_max: int = key(10_000, "passages of one user; beyond them the oldest go, once a day", ge=1, le=15_000)


class CompressionSection(Section):
    """``compression``: of a long session's requests the older messages are replaced by the state of the conversation;
    off unless enabled."""

    restart: ClassVar = {"renew_turns refresh_s known_sessions_max queue_max": "states of sessions are known by it"}

    enabled: bool = key(False, "compress; x-semmem-compression: off takes a request out of it")
    from_tokens: int = key(8000, ge=1000, le=10_000_000)
    """estimated tokens of a request's messages from which it is compressed"""
    turns_kept: int = key(5, "messages of the user's that stay as they are, with all behind them", ge=1, le=100)
    renew_turns: int = key(10, ge=1, le=1000)
    """turns until the next state; as long the beginning of a prompt stays the same"""
    state_tokens_max: int = key(650, "estimated tokens of a state", ge=150, le=4000)
    ttl_days: int = key(7, "how long a state is kept; no longer than journal.retention_days", ge=1, le=3650)
    lookup_ms: Milliseconds = key(50)
    """how long the journal may take to say which state there is; then the request is whole"""
    refresh_s: Seconds = key(30.0, "how long it is believed which states there are, which another replica may change")
    known_sessions_max: int = key(1000, ge=1, le=1_000_000)
    """sessions whose states are kept in process, about 10 KB each"""
    queue_max: int = key(100, ge=1, le=10_000)
    """sessions whose state is to be made, each with its text in memory; more are tried again later"""
    source_chars_max: int = key(400_000, ge=10_000, le=10_000_000)
    """longest text that a state is made of; of a longer session, what came since the last state"""
    budget_s: Seconds = key(5.0, "processor time for reading a session by rules")


class PriceSection(Section):
    """``usage.prices.N``: what tokens of some models cost, in units of usage.currency per million."""

    model: NonEmptyLine = key(..., "name of the models, * for anything; the first row that fits counts")
    provider: Line = key("", "who serves them; empty: what stands before a slash in the name")
    input_per_million: float = key(..., "of tokens that are sent", ge=0, le=1_000_000)
    output_per_million: float = key(..., "of tokens that are answered", ge=0, le=1_000_000)


class UsageSection(Section):
    """``usage``: statistics of answered requests, in figures and with digests in the place of users; off unless
    enabled."""

    restart: ClassVar = {
        "enabled flush_rows flush_s queue_max names_max requests_days hours_days days_days": "what waits to be written"
        " is kept by it"
    }

    enabled: bool = key(False, "record endpoint, models, tokens, duration and outcome of each")
    flush_rows: int = key(100, "requests that are written together", ge=1, le=10_000)
    flush_s: Seconds = key(3600.0, "longest wait before they are written; a crash loses them")
    queue_max: int = key(10_000, "requests that wait; more are dropped and counted", ge=1, le=1_000_000)
    names_max: int = key(1000, ge=1, le=100_000)
    """different models, and different projects, told apart on one day; others are (other)"""
    requests_days: Days = key(30, "how long single requests are kept")
    hours_days: Days = key(90, "how long sums by hour are kept")
    days_days: Days = key(1100, "how long sums by day are kept")
    prices: ListOf[PriceSection] = key((), "what tokens cost, by model", max_length=1000)
    currency: Line = key("USD", "of the prices: a label")
    compared_with: Line = key("", "model whose price says what the others saved; empty: nothing is compared")


class RequestLogSection(Section):
    """``request_log``: how each request went, in names and figures: which memories were in its prompt and why, times,
    tokens. Nothing that was said."""

    restart: ClassVar = {"days requests_max flush_s queue_max": "what waits to be written is kept by it"}

    enabled: bool = key(True, "keep it, for GET /v1/requests and the Studio")
    days: int = key(7, "how long it is kept", ge=1, le=3650)
    requests_max: int = key(100_000, "requests of all users; beyond them the oldest go", ge=100, le=10_000_000)
    flush_s: Seconds = key(2.0, "longest wait before they are written; a crash loses what waits")
    queue_max: int = key(10_000, "halves that wait; more are dropped and counted", ge=1, le=1_000_000)


class TracingSection(Section):
    """``tracing``: OpenTelemetry traces of requests, answers and what is learnt from them, sent by OTLP over HTTP. They
    need the package ``semmem[otel]``, and are off without an endpoint."""

    restart = "spans under way are recorded and sent by it"

    endpoint: HttpUrl = key("", "whole URL of the collector, such as http://collector:4318/v1/traces; empty: no traces")
    header: HeaderName = key("authorization", "header that carries credential")
    credential: Secret = secret("what the collector knows semmem by, if it asks")
    credential_env: VariableName = in_variable("credential")
    ca_file: Line = key("", "PEM file of the authorities to believe (https://); empty: system's")
    service_name: NonEmptyLine = key("semmem", "service.name in every trace")
    sample_ratio: Fraction = key(1.0)
    """share that is recorded of requests and API calls whose caller has not decided (traceparent)"""
    content: bool = key(False, "also record what users say: questions and memories shown")
    user_hmac_secret: Secret = secret("key of the digests that tell users and sessions apart; empty: no ids of users")
    user_hmac_secret_env: VariableName = in_variable("it")
    timeout_s: Seconds = key(3.0, "limit of sending one batch, repetitions included")
    interval_s: Seconds = key(1.0, "longest wait before spans are sent")
    batch_max: int = key(128, "spans sent at a time", ge=1, le=10_000)
    queue_max: int = key(4096, "spans that wait; more are dropped and counted", ge=1, le=1_000_000)


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
    request_log: RequestLogSection = RequestLogSection()
    usage: UsageSection = UsageSection()
    conversations: ConversationsSection = ConversationsSection()
    passages: PassagesSection = PassagesSection()
    compression: CompressionSection = CompressionSection()
    deployment: DeploymentSection = DeploymentSection()

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
