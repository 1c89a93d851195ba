"""Who is asking, what filters before semmem say of a request, and where semmem listens: ``identity``, ``signals`` and
``listeners``."""

from typing import ClassVar, Literal

from semmem.config.values import (
    Address,
    Header,
    HeaderOrNone,
    HostName,
    Line,
    ListOf,
    MetadataPath,
    NonEmptyLine,
    Origin,
    Seconds,
    Secret,
    Section,
    TrustedHeader,
    UnixSocket,
    VariableName,
    host_and_port,
    in_variable,
    key,
    secret,
)


class ApiKeyIdentitySection(Section):
    """``identity.api_key``: memory per API key, where nothing better names the user."""

    enabled: bool = key(False, "take an HMAC of the bearer token for the user")
    hmac_secret: Secret = secret("key of that HMAC, 16 characters or more; another key, other users")


class IdentitySection(Section):
    """``identity``: who is asking. Nobody is identified by default except by authenticated metadata."""

    restart: ClassVar = {"session_idle_s": "sessions under way are told apart by it"}

    metadata_namespace: Line = key("envoy.filters.http.jwt_authn", "Envoy dynamic metadata to read first; empty: none")
    metadata_claim: ListOf[NonEmptyLine] = key(("jwt_payload", "sub"), max_length=8)
    """path to the user's id inside that metadata"""
    trusted_headers: ListOf[TrustedHeader] = key((), max_length=16)
    """headers naming the user, in order; only those your gateway sets and strips from clients"""
    group_claim: ListOf[NonEmptyLine] = key((), max_length=8)
    """path inside that metadata to the names of the user's groups, for memory switches; empty: none"""
    trusted_group_headers: ListOf[TrustedHeader] = key((), max_length=16)
    """headers naming groups between commas, all of them; set and stripped as trusted_headers are"""
    api_key: ApiKeyIdentitySection = ApiKeyIdentitySection()
    allow_untrusted_body: bool = key(False, "believe user ids in request bodies: any client may then be anybody")
    session_headers: ListOf[Header] = key(
        ("x-session-id", "x-conversation-id", "x-omniroute-session-id"), max_length=16
    )
    """headers naming the session, in order"""
    project_headers: ListOf[Header] = key(("x-project-id",), "headers naming the project, in order", max_length=16)
    agent_headers: ListOf[Header] = key(("x-agent-id",), "headers naming the agent, in order", max_length=16)
    session_idle_s: Seconds = key(1800.0, "silence after which the same opening words start another session")
    user_chars_max: int = key(256, "longest user id; a longer one counts as no user", ge=16, le=256)

    @property
    def places(self) -> list[str]:
        """Where the user's id is looked for, in words and in order; empty: nobody is ever known."""
        claim = f"{'.'.join(self.metadata_claim)} of Envoy's metadata {self.metadata_namespace}"
        return [
            *([claim] if self.metadata_namespace else []),
            *(f"header {header}" for header in self.trusted_headers),
            *(["the API key"] if self.api_key.enabled else []),
            *(["the request's body"] if self.allow_untrusted_body else []),
        ]


_METADATA = "namespace, then keys, of the same in Envoy's dynamic metadata; what stands there beats {}"


class SignalsSection(Section):
    """``signals``: how semmem decides whether a request needs memories, and what earlier filters say of it."""

    engine: Literal["rules", "classifier"] = key("classifier")
    """classifier: the calibrated decision over all evidence; rules: by nearness alone"""
    weights: Line = key("")
    """file that `semmem calibrate` wrote for another embedding model; empty: what is shipped, for multilingual and
    all-MiniLM-L6-v2"""
    fact_header: HeaderOrNone = key("", "header in which an earlier filter says whether this is a general question")
    fact_metadata: MetadataPath = key((), _METADATA.format("fact_header"), max_length=8)
    tool_header: HeaderOrNone = key("", "header in which an earlier filter says whether this is a tool turn")
    tool_metadata: MetadataPath = key((), _METADATA.format("tool_header"), max_length=8)
    blocked_header: HeaderOrNone = key("")
    """header in which an earlier filter says that it refuses: neither read nor store"""
    blocked_metadata: MetadataPath = key((), max_length=8)
    """the same in Envoy's dynamic metadata; true in one of the two is enough"""
    pii_header: HeaderOrNone = key("", "header in which an earlier filter says: personal data; neither read nor store")
    pii_metadata: MetadataPath = key((), max_length=8)
    """the same in Envoy's dynamic metadata; true in one of the two is enough"""


_LISTENER = "the listener is bound with it"


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

    restart = f"{_LISTENER} (what stands in the files is read again whenever they change)"

    cert_file: Line = key("", "PEM file of semmem's certificate chain; empty: plain text")
    key_file: Line = key("", "PEM file of that certificate's key")
    client_ca_file: Line = key("")
    """PEM file of the authorities that Envoy's certificate must come from; empty: any client"""


class GrpcListenerSection(Listener):
    """``listeners.grpc``: where Envoy speaks ext_proc."""

    restart = _LISTENER

    address: Address = key("127.0.0.1:50051", "host:port for Envoy")
    unix_socket: UnixSocket = key("", "path of a Unix socket for Envoy, instead of address")
    tls: GrpcTlsSection = GrpcTlsSection()


class HttpListenerSection(Listener):
    """A listener that speaks HTTP/1.1."""

    connections_max: int = key(256, "connections at a time; more are closed", ge=1, le=65_536)
    head_timeout_s: Seconds = key(10.0)
    """a connection that sends no request's head is closed after this, at most twice this"""


class JwtSection(Section):
    """``listeners.api.jwt``: callers known by a JSON Web Token, of the gateway's or an identity provider's. Each may
    touch their own memories."""

    keys: Line = key("", "JWK set that tokens are verified with: a file or a URL, read again; empty: no tokens")
    issuer: Line = key("", "what iss must say; empty: anything")
    audience: Line = key("", "what aud must name; empty: anything")
    user_claim: ListOf[NonEmptyLine] = key(("sub",), min_length=1, max_length=8)
    """path to the user's id, as in identity.metadata_claim"""
    refresh_s: Seconds = key(300.0, "keys are read again after this, or for one that is unknown")


class RateLimitSection(Section):
    """``listeners.api.rate_limit``: how often a caller may call, in each process. A call too many is answered 429."""

    calls_per_s: float = key(200.0, "calls of one caller; 0: no limit", ge=0, le=1e6)
    burst: int = key(1000, "calls of one caller at once", ge=1, le=1_000_000)
    failures_per_minute: float = key(600.0, ge=0, le=1e6)
    """refused credentials of one address, before only those that were good before are looked at; 0: no limit"""
    callers_max: int = key(10_000, "callers known at a time, about 200 bytes each", ge=1, le=1_000_000)


class IdempotencySection(Section):
    """``listeners.api.idempotency``: calls with an Idempotency-Key, which are done once."""

    restart = "calls under way are known by it"

    keep_s: Seconds = key(3600.0, "how long a call is known by its key")
    lease_s: Seconds = key(900.0, "longest call; after it, or when its process is gone, the key may be used again")
    calls_max: int = key(100_000, "calls known at a time; the oldest go", ge=100, le=10_000_000)
    answer_bytes_max: int = key(64 * 1024, "longest answer that is kept to be given again", ge=0, le=16 * 1024**2)


AUDIT_TO_STDOUT = "stdout"


class AuditSection(Section):
    """``listeners.api.audit``: who did what through the API, a JSON line each. Never what was said."""

    restart = "the audit log is written by it"

    to: Line = key("", "a file, relative to data_dir; stdout; empty: nothing is written")
    reading: bool = key(True, "also calls that show memories of somebody else than the caller")
    file_bytes_max: int = key(10 * 1024**2, "size at which a file becomes the .1 of the next", ge=4096, le=1024**4)
    files_max: int = key(5, "files kept, the newest", ge=1, le=1000)


class ApiListener(HttpListenerSection):
    """``listeners.api``: REST, MCP and Studio."""

    restart: ClassVar = {"address connections_max head_timeout_s mcp": _LISTENER}

    address: Address = key("127.0.0.1:8080", "host:port of the management API")
    admin_token: Secret = secret("bearer token of the administrator; required beyond this machine")
    admin_token_env: VariableName = in_variable("admin_token")
    jwt: JwtSection = JwtSection()
    studio: bool = key(True, "serve the Studio, pages for people, at /studio/")
    rate_limit: RateLimitSection = RateLimitSection()
    idempotency: IdempotencySection = IdempotencySection()
    audit: AuditSection = AuditSection()
    mcp: bool = key(False, "serve tools for models at /mcp (Model Context Protocol); takes 55 MB more")
    trusted_headers: ListOf[TrustedHeader] = key((), max_length=16)
    """headers naming the caller, in order, set by a proxy on this machine; on loopback only"""
    allowed_hosts: ListOf[HostName] = key((), max_length=64)
    """names that calls may have in Host, beside loopback's and the address they came to; *.name: all below it"""
    allowed_origins: ListOf[Origin] = key((), max_length=64)
    """web pages that may call, beside the API's own, as scheme://host:port"""
    body_bytes_max: int = key(1024**2, "longest body of a call; a longer one is answered 413", ge=1024, le=64 * 1024**2)
    body_values_max: int = key(1000, "values in a body; reading many holds up all requests", ge=100, le=100_000)
    body_timeout_s: Seconds = key(10.0, "time for a body to come, from an authenticated caller")
    metadata_bytes_max: int = key(16_384, "a memory's metadata as JSON", ge=2, le=24_576)
    metadata_depth_max: int = key(8, "objects and lists in each other in metadata", ge=1, le=64)
    metadata_keys_max: int = key(128, "keys in metadata, on all levels together", ge=0, le=10_000)


class HealthListener(HttpListenerSection):
    """``listeners.health``: probes and metrics; says nothing about users."""

    restart = _LISTENER

    address: Address = key("127.0.0.1:9090", "host:port of health checks and Prometheus metrics")


class ListenersSection(Section):
    """``listeners``: where semmem is reached."""

    grpc: GrpcListenerSection = GrpcListenerSection()
    api: ApiListener = ApiListener()
    health: HealthListener = HealthListener()
