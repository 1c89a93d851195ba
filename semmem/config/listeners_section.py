"""The ``listeners:`` section: where semmem listens, and whom it lets in."""

from __future__ import annotations

from pydantic import Field, SecretStr

from semmem.config.values import (
    Address,
    HostName,
    Line,
    ListOf,
    NonEmptyLine,
    Origin,
    Seconds,
    Secret,
    Section,
    TrustedHeader,
    UnixSocket,
    VariableName,
    host_and_port,
)


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


class JwtSection(Section):
    """``listeners.api.jwt``: callers known by a JSON Web Token, of the gateway's or an identity provider's. Each may
    touch their own memories."""

    keys: Line = Field(
        default="", description="JWK set that tokens are verified with: a file or a URL, read again; empty: no tokens"
    )
    issuer: Line = Field(default="", description="what iss must say; empty: anything")
    audience: Line = Field(default="", description="what aud must name; empty: anything")
    user_claim: ListOf[NonEmptyLine] = Field(
        default=("sub",), min_length=1, max_length=8, description="path to the user's id, as in identity.metadata_claim"
    )
    refresh_s: Seconds = Field(default=300.0, description="keys are read again after this, or for one that is unknown")


class RateLimitSection(Section):
    """``listeners.api.rate_limit``: how often a caller may call, in each process. A call too many is answered 429."""

    calls_per_s: float = Field(default=200.0, ge=0, le=1e6, description="calls of one caller; 0: no limit")
    burst: int = Field(default=1000, ge=1, le=1_000_000, description="calls of one caller at once")
    failures_per_minute: float = Field(
        default=600.0,
        ge=0,
        le=1e6,
        description="credentials of one address that are refused, before it is heard only with those that were good"
        " before; 0: no limit",
    )
    callers_max: int = Field(
        default=10_000, ge=1, le=1_000_000, description="callers known at a time, about 200 bytes each"
    )


class IdempotencySection(Section):
    """``listeners.api.idempotency``: calls with an Idempotency-Key, which are done once."""

    keep_s: Seconds = Field(default=3600.0, description="how long a call is known by its key")
    lease_s: Seconds = Field(
        default=900.0, description="longest call; after it, or when its process is gone, the key may be used again"
    )
    calls_max: int = Field(default=100_000, ge=100, le=10_000_000, description="calls known at a time; the oldest go")
    answer_bytes_max: int = Field(
        default=64 * 1024, ge=0, le=16 * 1024**2, description="longest answer that is kept to be given again"
    )


AUDIT_TO_STDOUT = "stdout"


class AuditSection(Section):
    """``listeners.api.audit``: who did what through the API, a JSON line each. Never what was said."""

    to: Line = Field(default="", description="a file, relative to data_dir; stdout; empty: nothing is written")
    reading: bool = Field(default=True, description="also calls that show memories of somebody else than the caller")
    file_bytes_max: int = Field(
        default=10 * 1024**2, ge=4096, le=1024**4, description="size at which a file becomes the .1 of the next"
    )
    files_max: int = Field(default=5, ge=1, le=1000, description="files kept, the newest")


class ApiListener(HttpListenerSection):
    """``listeners.api``: REST, MCP and Studio."""

    address: Address = Field(default="127.0.0.1:8080", description="host:port of the management API")
    admin_token: Secret = Field(
        default=SecretStr(""), description="bearer token of the administrator; required beyond this machine"
    )
    admin_token_env: VariableName = Field(default="", description="environment variable that holds admin_token")
    jwt: JwtSection = JwtSection()
    studio: bool = Field(default=True, description="serve the Studio, pages for people, at /studio/")
    rate_limit: RateLimitSection = RateLimitSection()
    idempotency: IdempotencySection = IdempotencySection()
    audit: AuditSection = AuditSection()
    mcp: bool = Field(
        default=False, description="serve tools for models at /mcp (Model Context Protocol); takes 55 MB more"
    )
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
