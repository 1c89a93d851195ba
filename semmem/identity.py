"""Who is asking: the user, and the project, agent and session around them.

The user comes from the first source that has one: Envoy's dynamic metadata, which no client can forge; a header that
the operator declared trusted; the API key itself; and, only where explicitly allowed, the request's body. A source
that is ambiguous (a header sent twice) or unusable (too long, control characters) names nobody: no memory is safer
than a wrong one. A project, agent or session of such a name goes on under a digest of it (``semmem.names``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from semmem.memory import Controls, Conversation, Role, Scope
from semmem.names import bounded, usable
from semmem.ports import JournalError

T = TypeVar("T")


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

    def metadata_at(self, path: tuple[str, ...]) -> Any:
        """The value at a namespace and the keys below it; None for an empty path and where there is none."""
        node: Any = self.metadata if path else None
        for key in path:
            if not isinstance(node, Mapping):
                return None
            node = node.get(key)
        return node


def read_headers(pairs: Iterable[tuple[str, bytes]]) -> dict[str, tuple[str, ...]]:
    """Header values by lower-case name, in the order they came. The same for every door, so that a user is the same.

    Bytes that are not UTF-8 are read as Latin-1, as HTTP once had it.
    """
    values: dict[str, list[str]] = {}
    for key, raw in pairs:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("latin-1")
        values.setdefault(key.lower(), []).append(text)
    return {name: tuple(texts) for name, texts in values.items()}


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """Which sources are believed. Names of headers are lower-case; ``name_chars_max`` bounds the user's.

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


def _user(rules: IdentityRules, head: RequestHead, controls: Controls) -> str | None:
    claim = head.metadata_at((rules.metadata_namespace, *rules.metadata_claim))
    if isinstance(claim, str) and claim:
        return usable_user(claim, rules.name_chars_max)
    user, sent = user_in_header(rules.trusted_headers, head, rules.name_chars_max)
    if sent:
        return user
    if rules.api_key_secret is not None and (key := _api_key(head)):
        return "key_" + hmac.new(rules.api_key_secret, key.encode(), hashlib.sha256).hexdigest()[:40]
    return usable_user(controls.claimed_user, rules.name_chars_max) if rules.allow_untrusted_body else None


def _api_key(head: RequestHead) -> str | None:
    """The bearer token, or what Anthropic's clients send instead."""
    scheme, _, token = (head.header("authorization") or "").partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else "") or head.header("x-api-key")


def session_key(scope: Scope, conversation: Conversation) -> str:
    """A name for a conversation that has none: its user, project, system prompt and first user message, hashed.

    The same words at another time are another session: see Sessions.
    """
    system = next((m.text.strip() for m in conversation.messages if m.role is Role.SYSTEM and m.text.strip()), "")
    first = next((m.text for m in conversation.messages if m.role is Role.USER), "")
    return "s_" + digest(scope.user, scope.project or "", system, first)


def turn_id(scope: Scope, ordinal: int, user_text: str, after: str = "") -> str:
    """The same for a retry, a regeneration or a tool-call continuation; another for an edited history.

    ``after`` is the answer that this request goes on from, where the API keeps the history and ``ordinal`` says little.
    """
    return "t_" + digest(scope.user, scope.session or "", str(ordinal), user_text, *([after] if after else []))


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn that an answer belongs to, and the API's name for the answer."""

    turn_id: str
    session: str
    answer_id: str
    user: str = ""


class SessionRecords(Protocol):
    """What the journal knows of sessions."""

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None: ...

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None: ...


class Sessions:
    """Names the session of a conversation.

    A header names it; else the API's own conversation; else the answer that the request goes on from leads to it; else
    it is derived from its words, as ``<key>.<start>`` with a new start after ``idle_s`` seconds of silence.

    The most recent ``sessions_max`` of each kind are remembered in process; beyond that, after a restart and on another
    replica the journal is asked. A journal that does not say within ``lookup_timeout_s`` makes it a new session: no
    turn is lost for the want of a name.
    """

    def __init__(
        self,
        records: SessionRecords,
        *,
        idle_s: float = 1800.0,
        lookup_timeout_s: float = 0.1,
        sessions_max: int = 10_000,
    ) -> None:
        self._records = records
        self._idle_s = idle_s
        self._lookup_timeout_s = lookup_timeout_s
        self._seen = Recent[tuple[float, float, str]](sessions_max)
        self._turns = Recent[tuple[str, str]](sessions_max)
        self._answers = Recent[Answered](sessions_max)
        self._latest = Recent[Answered](sessions_max)

    async def name(self, scope: Scope, conversation: Conversation, now: float) -> str:
        """The session's name. Never raises."""
        if named := scope.session or conversation.conversation_id:
            return named
        if conversation.previous_id:
            before = await self.answered(scope.user, conversation.previous_id)
            return before.session if before else "r_" + digest(scope.user, conversation.previous_id)
        key = session_key(scope, conversation)
        start, last, _ = self._seen.get(key) or (0.0, -math.inf, "")
        if now - last > self._idle_s:
            lookup = self._records.session_start(scope.user, key, seen_since=now - self._idle_s)
            found = await self._within(lookup)
            start = now if found is None else found
        self._seen.put(key, (start, now, scope.user))
        return f"{key}.{int(start)}"

    async def answered(self, user: str, answer_id: str) -> Answered | None:
        """The user's turn that was answered under this name. Never raises."""
        known = self._answers.get(digest(user, answer_id))
        if known is not None:
            return known
        found = await self._within(self._records.turn_of_answer(user, answer_id))
        return Answered(*found, answer_id) if found is not None else None

    def opened(self, turn_id: str, scope: Scope) -> None:
        """A turn began; its answer may be asked for before the journal has it."""
        self._turns.put(turn_id, (scope.user, scope.session or ""))

    def closed(self, turn_id: str, answer_id: str) -> None:
        """A turn was answered under this name."""
        if (turn := self._turns.get(turn_id)) is not None:
            user, session = turn
            answered = Answered(turn_id, session, answer_id, user)
            self._answers.put(digest(user, answer_id), answered)
            self._latest.put(digest(user, session), answered)

    def latest(self, scope: Scope) -> Answered | None:
        """The newest answer of a session, as far as this process saw it."""
        return self._latest.get(digest(scope.user, scope.session)) if scope.session else None

    def forget(self, user: str) -> None:
        """Nothing of what the user said until now is gone on from."""
        self._seen.drop(lambda entry: entry[2] == user)
        self._turns.drop(lambda entry: entry[0] == user)
        for answers in (self._answers, self._latest):
            answers.drop(lambda entry: entry.user == user)

    async def _within(self, lookup: Awaitable[T | None]) -> T | None:
        try:
            async with asyncio.timeout(self._lookup_timeout_s):
                return await lookup
        except (TimeoutError, JournalError):
            return None


class Recent(Generic[T]):
    """The ``entries_max`` values that were last put or got, by name."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[str, T] = OrderedDict()

    def get(self, name: str) -> T | None:
        if name not in self._entries:
            return None
        self._entries.move_to_end(name)
        return self._entries[name]

    def drop(self, unwanted: Callable[[T], bool]) -> None:
        for name in [name for name, value in self._entries.items() if unwanted(value)]:
            del self._entries[name]

    def put(self, name: str, value: T) -> None:
        self._entries[name] = value
        self._entries.move_to_end(name)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
