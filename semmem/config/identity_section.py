"""Who is asking, and what filters before semmem say of a request: the ``identity:`` and ``signals:`` sections."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import (
    Header,
    HeaderOrNone,
    Line,
    ListOf,
    MetadataPath,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
    TrustedHeader,
)


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
    group_claim: ListOf[NonEmptyLine] = Field(
        default=(),
        max_length=8,
        description="path inside that metadata to the names of the user's groups, for memory switches; empty: none",
    )
    trusted_group_headers: ListOf[TrustedHeader] = Field(
        default=(),
        max_length=16,
        description="headers naming groups between commas, all of them; set and stripped as trusted_headers are",
    )
    api_key: ApiKeyIdentitySection = ApiKeyIdentitySection()
    allow_untrusted_body: bool = Field(
        default=False, description="believe user ids in request bodies: any client may then be anybody"
    )
    session_headers: ListOf[Header] = Field(
        default=("x-session-id", "x-conversation-id", "x-omniroute-session-id"),
        max_length=16,
        description="headers naming the session, in order",
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
        description="classifier: the calibrated decision over all evidence; rules: by nearness alone",
    )
    weights: Line = Field(
        default="",
        description="file that `semmem calibrate` wrote for another embedding model; empty: what is shipped, for"
        " all-MiniLM-L6-v2",
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
