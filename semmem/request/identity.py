"""Who is asking: the user, and the project, agent and session around them.

The user comes from the first source that has one: Envoy's dynamic metadata, which no client can forge; a header that
the operator declared trusted; the API key itself; and, only where explicitly allowed, the request's body. A source
that is ambiguous (a header sent twice) or unusable (too long, control characters) names nobody: no memory is safer
than a wrong one. A project, agent or session of such a name goes on under a digest of it (``semmem.ports.names``).
"""

import hashlib
import hmac
from dataclasses import dataclass, field

from semmem.memory import Controls, Scope
from semmem.ports.names import bounded, usable
from semmem.request.head import RequestHead

GROUPS_MAX = 256
"""Groups of one user that are looked at."""


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """Which sources are believed. Names of headers are lower-case; ``name_chars_max`` bounds the user's.
    ``metadata_claim`` is the path of keys below ``metadata_namespace``, ``group_claim`` another one there;
    ``group_headers`` are trusted as well. ``api_key_secret`` None switches memory per API key off."""

    metadata_namespace: str = "envoy.filters.http.jwt_authn"
    metadata_claim: tuple[str, ...] = ("jwt_payload", "sub")
    trusted_headers: tuple[str, ...] = ()
    api_key_secret: bytes | None = field(default=None, repr=False)
    allow_untrusted_body: bool = False
    session_headers: tuple[str, ...] = ("x-session-id", "x-conversation-id", "x-omniroute-session-id")
    project_headers: tuple[str, ...] = ("x-project-id",)
    agent_headers: tuple[str, ...] = ("x-agent-id",)
    name_chars_max: int = 256
    group_claim: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()


def groups_of(rules: IdentityRules, head: RequestHead) -> tuple[str, ...] | None:
    """The groups that the claim (a name, or a list of them) and the trusted headers (names between commas) say the user
    is in; None when they are more than GROUPS_MAX."""
    if not (rules.group_claim or rules.group_headers):
        return ()
    claim = head.metadata_at((rules.metadata_namespace, *rules.group_claim)) if rules.group_claim else None
    names = [claim] if isinstance(claim, str) else list(claim[: GROUPS_MAX + 1]) if isinstance(claim, list) else []
    for header in rules.group_headers:
        for value in head.headers.get(header, ()):
            names += value.split(",", GROUPS_MAX)
    found = tuple(name.strip() for name in names if isinstance(name, str) and name.strip())
    return found if len(names) <= GROUPS_MAX else None


def identify(rules: IdentityRules, head: RequestHead, controls: Controls) -> Scope | None:
    """The scope of a request, its session still None unless a header named it; None when nobody is known."""
    user = _user(rules, head, controls)
    if user is None:
        return None
    return Scope(
        user=user,
        project=bounded(head.first_header(rules.project_headers) or controls.project),
        agent=bounded(head.first_header(rules.agent_headers)),
        session=bounded(head.first_header(rules.session_headers)),
    )


def user_in_header(trusted: tuple[str, ...], head: RequestHead, chars_max: int) -> tuple[str | None, bool]:
    """The user named by the first trusted header that was sent, and whether one was sent at all: one that names
    nobody (empty, sent twice, too long) is not made up for by the next."""
    sent = next((name for name in trusted if name in head.headers), None)
    return (None, False) if sent is None else (usable_user(head.header(sent), chars_max), True)


def usable_user(name: str | None, chars_max: int) -> str | None:
    """The name, or None for what is nobody's: too long, or with characters that no name has."""
    return usable(name) if name and len(name) <= chars_max else None


def user_of_key(secret: bytes, key: str) -> str:
    """The user that an API key stands for: ``key_`` and 40 hexadecimal digits of its HMAC-SHA-256."""
    return "key_" + hmac.new(secret, key.encode(), hashlib.sha256).hexdigest()[:40]


def _user(rules: IdentityRules, head: RequestHead, controls: Controls) -> str | None:
    claim = head.metadata_at((rules.metadata_namespace, *rules.metadata_claim))
    if isinstance(claim, str) and claim:
        return usable_user(claim, rules.name_chars_max)
    user, sent = user_in_header(rules.trusted_headers, head, rules.name_chars_max)
    if sent:
        return user
    if rules.api_key_secret is not None and (key := _api_key(head)):
        return user_of_key(rules.api_key_secret, key)
    return usable_user(controls.claimed_user, rules.name_chars_max) if rules.allow_untrusted_body else None


def _api_key(head: RequestHead) -> str | None:
    """The bearer token, or what Anthropic's clients send instead."""
    scheme, _, token = (head.header("authorization") or "").partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else "") or head.header("x-api-key")
