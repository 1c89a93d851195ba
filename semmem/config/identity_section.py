"""Who is asking, and what filters before semmem say of a request: the ``identity:`` and ``signals:`` sections."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

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
    metadata_claim: ListOf[NonEmptyLine] = key(
        ("jwt_payload", "sub"), "path to the user's id inside that metadata", max_length=8
    )
    trusted_headers: ListOf[TrustedHeader] = key(
        (), "headers naming the user, in order; only those your gateway sets and strips from clients", max_length=16
    )
    group_claim: ListOf[NonEmptyLine] = key(
        (),
        "path inside that metadata to the names of the user's groups, for memory switches; empty: none",
        max_length=8,
    )
    trusted_group_headers: ListOf[TrustedHeader] = key(
        (), "headers naming groups between commas, all of them; set and stripped as trusted_headers are", max_length=16
    )
    api_key: ApiKeyIdentitySection = ApiKeyIdentitySection()
    allow_untrusted_body: bool = key(False, "believe user ids in request bodies: any client may then be anybody")
    session_headers: ListOf[Header] = key(
        ("x-session-id", "x-conversation-id", "x-omniroute-session-id"),
        "headers naming the session, in order",
        max_length=16,
    )
    project_headers: ListOf[Header] = key(("x-project-id",), "headers naming the project, in order", max_length=16)
    agent_headers: ListOf[Header] = key(("x-agent-id",), "headers naming the agent, in order", max_length=16)
    session_idle_s: Seconds = key(1800.0, "silence after which the same opening words start another session")
    user_chars_max: int = key(256, "longest user id; a longer one counts as no user", ge=16, le=256)


_METADATA = "namespace, then keys, of the same in Envoy's dynamic metadata; what stands there beats {}"


class SignalsSection(Section):
    """``signals``: how semmem decides whether a request needs memories, and what earlier filters say of it."""

    engine: Literal["rules", "classifier"] = key(
        "classifier", "classifier: the calibrated decision over all evidence; rules: by nearness alone"
    )
    weights: Line = key(
        "",
        "file that `semmem calibrate` wrote for another embedding model; empty: what is shipped, for all-MiniLM-L6-v2",
    )
    fact_header: HeaderOrNone = key("", "header in which an earlier filter says whether this is a general question")
    fact_metadata: MetadataPath = Field(default=(), max_length=8, description=_METADATA.format("fact_header"))
    tool_header: HeaderOrNone = key("", "header in which an earlier filter says whether this is a tool turn")
    tool_metadata: MetadataPath = Field(default=(), max_length=8, description=_METADATA.format("tool_header"))
    blocked_header: HeaderOrNone = key(
        "", "header in which an earlier filter says that it refuses: neither read nor store"
    )
    blocked_metadata: MetadataPath = key(
        (), "the same in Envoy's dynamic metadata; true in one of the two is enough", max_length=8
    )
    pii_header: HeaderOrNone = key("", "header in which an earlier filter says: personal data; neither read nor store")
    pii_metadata: MetadataPath = key(
        (), "the same in Envoy's dynamic metadata; true in one of the two is enough", max_length=8
    )
