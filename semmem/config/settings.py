"""The whole configuration as frozen values. The schema is the code below; docs/configuration.md is made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.memory_section import MemorySection
from semmem.config.values import (
    Address,
    Days,
    Header,
    HeaderOrNone,
    HostName,
    HttpUrl,
    Line,
    ListOf,
    MetadataPath,
    Milliseconds,
    NonEmptyLine,
    Origin,
    Port,
    Seconds,
    Secret,
    Section,
    TrustedHeader,
    UnixSocket,
    UrlPath,
    VariableName,
    host_and_port,
)

OUTPUT_TOKENS = {"memory_rewrite": 100, "memory_extraction": 500}


class ApiKeyIdentitySection(Section):
    """``identity.api_key``: memory per API key, where nothing better names the user."""

    enabled: bool = Field(default=False, description="take an HMAC of the bearer token for the user")
    hmac_secret: Secret = Field(
        default=SecretStr(""), description="key of that HMAC, 16 characters or more; another key, other users"
    )


class IdentitySection(Section):
    """``identity``: who is asking. Nobody is identified by default except by authenticated metadata."""

    metadata_namespace: Line = Field(
        default="envoy.filters.http.jwt_authn", description="Envoy dynamic metadata to read first; empty: none"
    )
    metadata_claim: ListOf[NonEmptyLine] = Field(
        default=("jwt_payload", "sub"), max_length=8, description="path to the user's id inside that metadata"
    )
    trusted_headers: ListOf[TrustedHeader] = Field(
        default=(),
        max_length=16,
        description="headers naming the user, in order; only those your gateway sets and strips from clients",
    )
    api_key: ApiKeyIdentitySection = ApiKeyIdentitySection()
    allow_untrusted_body: bool = Field(
        default=False, description="believe user ids in request bodies: any client may then be anybody"
    )
    session_headers: ListOf[Header] = Field(
        default=("x-session-id", "x-conversation-id"), max_length=16, description="headers naming the session, in order"
    )
    project_headers: ListOf[Header] = Field(
        default=("x-project-id",), max_length=16, description="headers naming the project, in order"
    )
    agent_headers: ListOf[Header] = Field(
        default=("x-agent-id",), max_length=16, description="headers naming the agent, in order"
    )
    session_idle_s: Seconds = Field(
        default=1800.0, description="silence after which the same opening words start another session"
    )
    user_chars_max: int = Field(
        default=256, ge=16, le=256, description="longest user id; a longer one counts as no user"
    )


_METADATA = "namespace, then keys, of the same in Envoy's dynamic metadata; what stands there beats {}"


class SignalsSection(Section):
    """``signals``: how semmem decides whether a request needs memories, and what earlier filters say of it."""

    engine: Literal["rules", "classifier"] = Field(
        default="classifier",
        description="rules: the words alone; classifier: the rules, then the question's vector, for all-MiniLM-L6-v2",
    )
    fact_header: HeaderOrNone = Field(
        default="", description="header in which an earlier filter says whether this is a general question"
    )
    fact_metadata: MetadataPath = Field(default=(), max_length=8, description=_METADATA.format("fact_header"))
    tool_header: HeaderOrNone = Field(
        default="", description="header in which an earlier filter says whether this is a tool turn"
    )
    tool_metadata: MetadataPath = Field(default=(), max_length=8, description=_METADATA.format("tool_header"))
    blocked_header: HeaderOrNone = Field(
        default="", description="header in which an earlier filter says that it refuses: neither read nor store"
    )
    blocked_metadata: MetadataPath = Field(
        default=(), max_length=8, description="the same in Envoy's dynamic metadata; true in one of the two is enough"
    )
    pii_header: HeaderOrNone = Field(
        default="", description="header in which an earlier filter says: personal data; neither read nor store"
    )
    pii_metadata: MetadataPath = Field(
        default=(), max_length=8, description="the same in Envoy's dynamic metadata; true in one of the two is enough"
    )


class CaptureSection(Section):
    """``capture``: how answers are learnt of, and messages that semmem missed. What users say is journalled in every
    mode."""

    mode: Literal["observe", "single_filter", "history", "off"] = Field(
        default="observe",
        description="observe: a second filter listens; single_filter: one filter does both, at a cost per token;"
        " history: from the next request, which resends it; off: not at all",
    )
    recover_history: Literal["known_sessions", "always", "never"] = Field(
        default="known_sessions",
        description="messages that semmem never saw are learnt from the history that a later request resends:"
        " known_sessions: what follows messages that it did see; always: the beginning too, with whatever an"
        " application puts in front of its prompts; never: not at all",
    )
    recover_beginnings_s: float = Field(
        default=1800.0,
        ge=0,
        le=86_400.0,
        description="known_sessions: for so long after a start the beginning of a conversation that began unseen is"
        " learnt from too, since semmem was away, except what several users' histories hold; 0 where applications put"
        " examples in front of their prompts that change",
    )
    history_turns_max: int = Field(
        default=50, ge=1, le=1000, description="messages recovered from one request's history, the newest"
    )
    new_turns_max: int = Field(default=32, ge=1, le=256, description="new messages of one request, the newest")
    seen_messages_max: int = Field(
        default=20_000,
        ge=1,
        le=10_000_000,
        description="messages that are known again without asking the journal, about 400 bytes each",
    )


class ModelEndpointSection(Section):
    """``external_models.N.llm_endpoint``: give a url, or an address and what differs from the defaults."""

    address: Line = Field(default="", description="host name or IP address")
    port: Port = Field(default=8000, description="TCP port")
    scheme: Literal["http", "https"] = Field(default="http", description="protocol")
    path: UrlPath = Field(default="/v1", description="base path, without /chat/completions")
    url: HttpUrl = Field(default="", description="base URL, instead of address, port, scheme and path")

    @property
    def base_url(self) -> str:
        """Where ``/chat/completions`` is appended; no slash at the end."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (self.url or f"{self.scheme}://{host}:{self.port}{self.path}").rstrip("/")


class ExternalModel(Section):
    """``external_models.N``: a language model for one role, behind any OpenAI-compatible server."""

    llm_provider: NonEmptyLine = Field(default="openai", description="a label: every provider is spoken to alike")
    model_role: Literal["memory_rewrite", "memory_extraction"] = Field(
        description="what it does: rewrite vague questions, or extract facts; one model each"
    )
    llm_endpoint: ModelEndpointSection = Field(description="where it listens")
    llm_model_name: NonEmptyLine = Field(description="model name sent to the server")
    llm_timeout_seconds: Seconds = Field(default=30.0, description="limit of one call")
    max_tokens: int | None = Field(
        default=None, ge=1, le=32_768, description="most output tokens; null: 100 to rewrite, 500 to extract"
    )
    temperature: float = Field(default=0.1, ge=0, le=2, description="sampling temperature")
    api_key: Secret = Field(default=SecretStr(""), description="bearer token for the server; empty: none")
    api_key_env: VariableName = Field(default="", description="environment variable that holds api_key")

    @property
    def output_tokens_max(self) -> int:
        """``max_tokens``, or the role's own default."""
        return self.max_tokens if self.max_tokens is not None else OUTPUT_TOKENS[self.model_role]


class JournalSection(Section):
    """``journal``: the durable record of turns that are still to be learnt from."""

    path: NonEmptyLine = Field(default="journal.db", description="SQLite file, relative to data_dir")
    commit_interval_ms: Milliseconds = Field(default=50, description="longest wait before a turn is committed")
    queue_max: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="halves of turns waiting to be committed; refusals have as much room again",
    )
    retention_days: Days = Field(default=7, description="how long turns are kept after they were learnt from")
    synchronous: Literal["normal", "full"] = Field(
        default="normal", description="normal survives a crash of semmem; full also a loss of power, slower"
    )
    versions_max: int = Field(default=100, ge=1, le=10_000, description="earlier versions kept of each memory")


class ErasureSection(Section):
    """``erasure``: what happens when memories are deleted by somebody who asks for it."""

    wait_s: Seconds = Field(default=2.0, description="longest wait for writes under way")
    answer_s: Seconds = Field(
        default=15.0, description="how long a caller waits; then the answer is 503 and the rest is done behind it"
    )
    retry_s: Seconds = Field(default=5.0, description="pause before what is pending is tried again")
    hidden_s: Seconds = Field(
        default=300.0, description="how long what is gone stays hidden from reads and writes that come late"
    )
    marks_days: Days = Field(
        default=30,
        description="how long it is known (as a digest) that a user was erased; halves of turns that come later than"
        " this are learnt",
    )
    pending_max: int = Field(default=1000, ge=1, le=100_000, description="erasures remembered that are not finished")


class Listener(Section):
    """A TCP listener."""

    address: Address

    @property
    def host(self) -> str:
        return host_and_port(self.address)[0]

    @property
    def port(self) -> int:
        """0 means any free port."""
        return host_and_port(self.address)[1]


class GrpcTlsSection(Section):
    """``listeners.grpc.tls``: encryption between Envoy and semmem. The files are read again when they change."""

    cert_file: Line = Field(default="", description="PEM file of semmem's certificate chain; empty: plain text")
    key_file: Line = Field(default="", description="PEM file of that certificate's key")
    client_ca_file: Line = Field(
        default="", description="PEM file of the authorities that Envoy's certificate must come from; empty: any client"
    )


class GrpcListenerSection(Listener):
    """``listeners.grpc``: where Envoy speaks ext_proc."""

    address: Address = Field(default="127.0.0.1:50051", description="host:port for Envoy")
    unix_socket: UnixSocket = Field(default="", description="path of a Unix socket for Envoy, instead of address")
    tls: GrpcTlsSection = GrpcTlsSection()


class HttpListenerSection(Listener):
    """A listener that speaks HTTP/1.1."""

    connections_max: int = Field(default=256, ge=1, le=65_536, description="connections at a time; more are closed")
    head_timeout_s: Seconds = Field(
        default=10.0, description="a connection that sends no request's head is closed after this, at most twice this"
    )


class ApiListener(HttpListenerSection):
    """``listeners.api``: REST, MCP and Studio."""

    address: Address = Field(default="127.0.0.1:8080", description="host:port of the management API")
    admin_token: Secret = Field(
        default=SecretStr(""), description="bearer token of the administrator; required beyond this machine"
    )
    admin_token_env: VariableName = Field(default="", description="environment variable that holds admin_token")
    trusted_headers: ListOf[TrustedHeader] = Field(
        default=(),
        max_length=16,
        description="headers naming the caller, in order, set by a proxy on this machine; on loopback only",
    )
    allowed_hosts: ListOf[HostName] = Field(
        default=(),
        max_length=64,
        description="names that calls may have in Host, beside loopback's and the address they came to;"
        " *.name: all below it",
    )
    allowed_origins: ListOf[Origin] = Field(
        default=(), max_length=64, description="web pages that may call, beside the API's own, as scheme://host:port"
    )
    body_bytes_max: int = Field(
        default=1024**2, ge=1024, le=64 * 1024**2, description="longest body of a call; a longer one is answered 413"
    )
    body_values_max: int = Field(
        default=1000,
        ge=100,
        le=100_000,
        description="values in a body; reading many holds up all requests",
    )
    body_timeout_s: Seconds = Field(default=10.0, description="time for a body to come, from an authenticated caller")
    metadata_bytes_max: int = Field(default=16_384, ge=2, le=24_576, description="a memory's metadata as JSON")
    metadata_depth_max: int = Field(default=8, ge=1, le=64, description="objects and lists in each other in metadata")
    metadata_keys_max: int = Field(default=128, ge=0, le=10_000, description="keys in metadata, on all levels together")


class HealthListener(HttpListenerSection):
    """``listeners.health``: probes and metrics; says nothing about users."""

    address: Address = Field(default="127.0.0.1:9090", description="host:port of health checks and Prometheus metrics")


class ListenersSection(Section):
    """``listeners``: where semmem is reached."""

    grpc: GrpcListenerSection = GrpcListenerSection()
    api: ApiListener = ApiListener()
    health: HealthListener = HealthListener()


class DeadlinesSection(Section):
    """``deadlines``: each one longer than the next, so that the inner one is always heard of."""

    message_timeout_ms: Milliseconds = Field(
        default=500, description="Envoy's message_timeout for semmem; repeat here what envoy.yaml says"
    )
    max_message_timeout_ms: int = Field(
        default=0,
        ge=0,
        le=60_000,
        description="Envoy's max_message_timeout, if envoy.yaml sets one: up to this, semmem may ask for more time",
    )
    phase_ms: Milliseconds = Field(default=350, description="all work on one request, but for rewriting and reranking")
    rewrite_ms: Milliseconds = Field(
        default=300, description="one call of the memory_rewrite model; only where memory.query.mode asks for it"
    )
    store_ms: Milliseconds = Field(default=200, description="one search of the store")


class LimitsSection(Section):
    """``limits``: what one request may cost. Beyond a limit a request passes as it came."""

    request_body_bytes_max: int = Field(
        default=16 * 1024**2, ge=1024, le=256 * 1024**2, description="longest request body that is read"
    )
    request_messages_max: int = Field(
        default=5000, ge=1, le=1_000_000, description="messages (input items) of a request that is read"
    )
    request_values_max: int = Field(
        default=100_000,
        ge=100,
        le=10_000_000,
        description="values in the JSON of a request that is read: members of objects and elements of lists, parts of"
        " messages among them",
    )
    inline_body_bytes_max: int = Field(
        default=64 * 1024,
        ge=1024,
        le=256 * 1024**2,
        description="longer request bodies are read and rewritten beside the event loop",
    )
    response_body_bytes_max: int = Field(
        default=4 * 1024**2, ge=1024, le=256 * 1024**2, description="longest JSON answer or SSE event that is read"
    )
    answer_bytes_max: int = Field(
        default=64 * 1024, ge=256, le=16 * 1024**2, description="text kept of an answer: its tail"
    )
    decoded_bytes_max: int = Field(
        default=64 * 1024**2, ge=1024, le=1024**3, description="what one compressed answer may unpack to"
    )
    query_chars_max: int = Field(default=2000, ge=16, le=32_000, description="text of a question that is searched for")
    mutate_streams_max: int = Field(
        default=256, ge=1, le=100_000, description="requests worked on at once; more pass without memory"
    )
    observe_streams_max: int = Field(
        default=1024, ge=1, le=100_000, description="answers observed at once; more go unlearnt"
    )


class LogSection(Section):
    """``log``: what semmem writes to standard error. Never what users say."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="least severity written")
    format: Literal["text", "json"] = Field(default="text", description="one line of text, or one JSON object")


class DeploymentSection(Section):
    """``deployment``: how semmem is run."""

    replicas: int = Field(default=1, ge=1, le=1000, description="how many semmem processes share the store")
    drain_s: Seconds = Field(default=20.0, description="time to finish after SIGTERM; less than the pod's grace period")


class Settings(Section):
    """Everything semmem can be told. ``Settings()`` is the default configuration."""

    data_dir: NonEmptyLine = Field(default="./data", description="directory of everything semmem keeps on this machine")
    memory: MemorySection = MemorySection()
    identity: IdentitySection = IdentitySection()
    signals: SignalsSection = SignalsSection()
    capture: CaptureSection = CaptureSection()
    external_models: ListOf[ExternalModel] = Field(default=(), max_length=2, description="language models, by role")
    journal: JournalSection = JournalSection()
    erasure: ErasureSection = ErasureSection()
    listeners: ListenersSection = ListenersSection()
    deadlines: DeadlinesSection = DeadlinesSection()
    limits: LimitsSection = LimitsSection()
    log: LogSection = LogSection()
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
    def journal_file(self) -> Path:
        """The journal's SQLite file."""
        return Path(self.data_dir) / self.journal.path

    def external_model(self, role: str) -> ExternalModel | None:
        """The model configured for a role, or None."""
        return next((model for model in self.external_models if model.model_role == role), None)
