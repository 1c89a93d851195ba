"""Which session a conversation is, and which turn an answer belongs to; and the names of sessions, turns and messages,
which every replica derives alike from the same words.

A session that nobody named is called ``<key>.<start>``: a digest of its words, and when it began, in whole seconds."""

import asyncio
import math
import re
from collections.abc import Awaitable
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, TypeVar

from semmem.memory import Conversation, Role, Scope
from semmem.ports.errors import JournalError
from semmem.text.digest import digest, known_digest
from semmem.turns.recent import Recent

_USER, _SYSTEM = Role.USER, Role.SYSTEM  # looked up once: each look costs more than comparing
_DERIVED_SESSION = re.compile(r"(s_[0-9a-f]{32})\.[0-9]+")


def session_key(scope: Scope, conversation: Conversation) -> str:
    """A name for a conversation that has none: its user, project, system prompt and first user message, hashed. The
    same words at another time are another session: see Sessions."""
    messages = conversation.messages
    system = next((text for m in messages if m.role is _SYSTEM and (text := m.text.strip())), "")
    first = next((m.text for m in messages if m.role is _USER), "")
    return "s_" + known_digest(scope.user, scope.project or "", system, first)


def session_without_start(session: str) -> str:
    """The key of a session whose name is derived; the name of any other."""
    if not session.startswith("s_"):
        return session
    derived = _DERIVED_SESSION.fullmatch(session)
    return derived[1] if derived else session


def session_start(session: str) -> float:
    """When a session whose name is derived began, in whole seconds; -inf for any other: it is not known."""
    return float(session.rpartition(".")[2]) if _DERIVED_SESSION.fullmatch(session) else -math.inf


def turn_id(scope: Scope, ordinal: int, user_text: str, after: str = "") -> str:
    """The same for a retry, a regeneration or a tool-call continuation; another for an edited history. ``after`` is the
    answer that this request goes on from, where the API keeps the history and ``ordinal`` says little."""
    return "t_" + known_digest(scope.user, scope.session or "", str(ordinal), user_text, *([after] if after else []))


def message_id(user: str, session: str, text: str) -> str:
    """The bare id of a message. Nothing of it can be read from that."""
    return "m_" + known_digest(user, session, text)


T = TypeVar("T")


class SessionRecords(Protocol):
    """What is known of sessions when their turns are written. Raises JournalError."""

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        """When the session with this derived key began, if one of its turns was opened at or after ``seen_since``.
        Sessions derived from words are named ``<session_key>.<start as integer seconds>``."""

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        """Turn id and session of the user's turn that was answered under this name."""

    async def latest_answer(self, user: str, session: str) -> tuple[str, str, float] | None:
        """Of the session's newest answer that has a name: its turn's id, the name, and when it ended. Turns that many
        others followed may be passed over."""


@dataclass(frozen=True, slots=True)
class AnsweredTurn:
    """A turn that was answered, the API's name for the answer, and when it ended (seconds since the epoch)."""

    turn_id: str
    session: str
    answer_id: str
    user: str = ""
    at: float = 0.0


@dataclass(eq=False)
class Sessions:
    """Names the session of a conversation. A header names it; else the API's own conversation; else the answer that the
    request goes on from leads to it; else it is derived from its words, as ``<key>.<start>`` with a new start after
    ``idle_s`` seconds of silence. The most recent ``sessions_max`` of each kind are remembered in process; beyond that,
    after a restart and on another replica the journal is asked. A journal that does not say within ``lookup_timeout_s``
    makes it a new session: no turn is lost for the want of a name. ``shared``: other replicas write the same journal,
    so that what is the newest of anything is asked there."""

    records: SessionRecords
    _: KW_ONLY
    idle_s: float = 1800.0
    lookup_timeout_s: float = 0.1
    sessions_max: int = 10_000
    shared: bool = False

    def __post_init__(self) -> None:
        self._seen = Recent[str, tuple[float, float, str]](self.sessions_max)
        self._turns = Recent[str, tuple[str, str]](self.sessions_max)
        self._answers = Recent[str, AnsweredTurn](self.sessions_max)
        self._latest = Recent[str, AnsweredTurn](self.sessions_max)

    async def name(self, scope: Scope, conversation: Conversation, now: float) -> str:
        """The session's name. Never raises."""
        named = await self._named(scope, conversation)
        if named is not None:
            return named
        key = session_key(scope, conversation)
        start, last, _ = self._seen.get(key) or (0.0, -math.inf, "")
        if now - last > self.idle_s:
            lookup = self.records.session_start(scope.user, key, seen_since=now - self.idle_s)
            found = await self._within(lookup)
            start = now if found is None else found
        self._seen.put(key, (start, now, scope.user))
        return f"{key}.{int(start)}"

    async def name_without_start(self, scope: Scope, conversation: Conversation) -> str:
        """The session's name less the time at which it began, which nobody has to be asked for. Never raises."""
        named = await self._named(scope, conversation)
        return session_key(scope, conversation) if named is None else named

    async def answered(self, user: str, answer_id: str) -> AnsweredTurn | None:
        """The user's turn that was answered under this name. Never raises."""
        known = self._answers.get(digest(user, answer_id))
        if known is not None:
            return known
        found = await self._within(self.records.turn_of_answer(user, answer_id))
        return AnsweredTurn(*found, answer_id) if found is not None else None

    def opened(self, turn_id: str, scope: Scope) -> None:
        """A turn began; its answer may be asked for before the journal has it."""
        self._turns.put(turn_id, (scope.user, scope.session or ""))

    def closed(self, turn_id: str, answer_id: str, at: float) -> None:
        if (turn := self._turns.get(turn_id)) is not None:
            user, session = turn
            answered = AnsweredTurn(turn_id, session, answer_id, user, at)
            self._answers.put(digest(user, answer_id), answered)
            self._latest.put(digest(user, session), answered)

    async def latest(self, scope: Scope) -> AnsweredTurn | None:
        """The newest answer of a session. Never raises. It decides which turn a tool's result goes on with, and which
        of two equal messages is a new one, where the API keeps the history: an older answer in its place would lose an
        answer or a turn. An answer that another replica saw is known as soon as it is committed there."""
        if not scope.session:
            return None
        here = self._latest.get(digest(scope.user, scope.session))
        if here is not None and not self.shared:
            return here
        found = await self._within(self.records.latest_answer(scope.user, scope.session))
        if found is None or (here is not None and here.at >= found[2]):
            return here
        turn_id, answer_id, at = found
        return AnsweredTurn(turn_id, scope.session, answer_id, scope.user, at)

    def forget(self, user: str) -> None:
        """Forget the user's sessions and answers: no later request continues one of them."""
        self._seen.drop(lambda entry: entry[2] == user)
        self._turns.drop(lambda entry: entry[0] == user)
        for answers in (self._answers, self._latest):
            answers.drop(lambda entry: entry.user == user)

    async def _named(self, scope: Scope, conversation: Conversation) -> str | None:
        """The session's name where it is not derived from its words."""
        if named := scope.session or conversation.conversation_id:
            return named
        if not conversation.previous_id:
            return None
        before = await self.answered(scope.user, conversation.previous_id)
        return before.session if before else "r_" + known_digest(scope.user, conversation.previous_id)

    async def _within(self, lookup: Awaitable[T | None]) -> T | None:
        try:
            async with asyncio.timeout(self.lookup_timeout_s):
                return await lookup
        except (TimeoutError, JournalError):
            return None
