"""Who is asking: the user, and the project, agent and session around them.

The user comes from the first source that has one: Envoy's dynamic metadata, which no client can forge; a header that
the operator declared trusted; the API key itself; and, only where explicitly allowed, the request's body. A source
that is ambiguous (a header sent twice) or unusable (too long) names nobody: no memory is safer than a wrong one.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from semmem.memory import Controls, Conversation, Role, Scope
from semmem.ports import JournalError


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known of a request before its body. Header names are lower-case; a header sent twice has two values.

    ``metadata`` is Envoy's dynamic metadata by namespace.
    """

    method: str
    path: str
    headers: Mapping[str, tuple[str, ...]]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """The value of a header that was sent exactly once and is not empty."""
        values = self.headers.get(name, ())
        return values[0].strip() or None if len(values) == 1 else None

    def first_header(self, names: tuple[str, ...]) -> str | None:
        """The value of the first of these headers that has one."""
        return next((value for name in names if (value := self.header(name))), None)


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """Which sources are believed. Names of headers are lower-case; lengths in characters.

    ``metadata_claim`` is the path of keys below ``metadata_namespace``. ``api_key_secret`` None switches memory per
    API key off.
    """

    metadata_namespace: str = "envoy.filters.http.jwt_authn"
    metadata_claim: tuple[str, ...] = ("jwt_payload", "sub")
    trusted_headers: tuple[str, ...] = ()
    api_key_secret: bytes | None = field(default=None, repr=False)
    allow_untrusted_body: bool = False
    session_headers: tuple[str, ...] = ("x-session-id", "x-conversation-id")
    project_headers: tuple[str, ...] = ("x-project-id",)
    agent_headers: tuple[str, ...] = ("x-agent-id",)
    name_chars_max: int = 256


def identify(rules: IdentityRules, head: RequestHead, controls: Controls) -> Scope | None:
    """The scope of a request, its session still None unless a header named it; None when nobody is known."""
    user = _user(rules, head, controls)
    if user is None:
        return None
    return Scope(
        user=user,
        project=_usable(rules, head.first_header(rules.project_headers) or controls.project),
        agent=_usable(rules, head.first_header(rules.agent_headers)),
        session=_usable(rules, head.first_header(rules.session_headers)),
    )


def _user(rules: IdentityRules, head: RequestHead, controls: Controls) -> str | None:
    claim = _claim(head.metadata.get(rules.metadata_namespace), rules.metadata_claim)
    if claim is not None:
        return _usable(rules, claim)
    for name in rules.trusted_headers:
        if name in head.headers:
            return _usable(rules, head.header(name))
    if rules.api_key_secret is not None and (key := _bearer(head)):
        return "key_" + hmac.new(rules.api_key_secret, key.encode(), hashlib.sha256).hexdigest()[:40]
    return _usable(rules, controls.claimed_user) if rules.allow_untrusted_body else None


def _claim(node: Any, path: tuple[str, ...]) -> str | None:
    for key in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(key)
    return node if isinstance(node, str) and node else None


def _bearer(head: RequestHead) -> str | None:
    scheme, _, token = (head.header("authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _usable(rules: IdentityRules, name: str | None) -> str | None:
    return name if name and len(name) <= rules.name_chars_max else None


def session_key(scope: Scope, conversation: Conversation) -> str:
    """A name for a conversation that has none: its user, project, system prompt and first user message, hashed.

    The same words at another time are another session: see Sessions.
    """
    system = next((m.text for m in conversation.messages if m.role is Role.SYSTEM), "")
    first = next((m.text for m in conversation.messages if m.role is Role.USER), "")
    return "s_" + digest(scope.user, scope.project or "", system, first)


def turn_id(scope: Scope, ordinal: int, user_text: str) -> str:
    """The same for a retry, a regeneration or a tool-call continuation; another for an edited history."""
    return "t_" + digest(scope.user, scope.session or "", str(ordinal), user_text)


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()[:32]


class Sessions:
    """Names derived sessions: ``<key>.<start>``, a new start after ``idle_s`` seconds of silence.

    Remembers the most recent ``sessions_max`` in process; beyond that, after a restart and on another replica
    ``lookup`` (user, key, seen since) asks the journal when the session began. A journal that does not say within
    ``lookup_timeout_s`` makes it a new session: no turn is lost for the want of a name.
    """

    def __init__(
        self,
        lookup: Callable[[str, str, float], Awaitable[float | None]],
        *,
        idle_s: float = 1800.0,
        lookup_timeout_s: float = 0.1,
        sessions_max: int = 10_000,
    ) -> None:
        self._lookup = lookup
        self._lookup_timeout_s = lookup_timeout_s
        self._idle_s = idle_s
        self._sessions_max = sessions_max
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def name(self, scope: Scope, conversation: Conversation, now: float) -> str:
        """The session's name. Never raises."""
        key = session_key(scope, conversation)
        start, last = self._seen.pop(key, (0.0, -math.inf))
        if now - last > self._idle_s:
            start = await self._began(scope.user, key, now)
        self._seen[key] = (start, now)
        while len(self._seen) > self._sessions_max:
            self._seen.popitem(last=False)
        return f"{key}.{int(start)}"

    async def _began(self, user: str, key: str, now: float) -> float:
        try:
            async with asyncio.timeout(self._lookup_timeout_s):
                found = await self._lookup(user, key, now - self._idle_s)
        except (TimeoutError, JournalError):
            return now
        return now if found is None else found
