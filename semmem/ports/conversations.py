"""What is kept of conversations, where that is wanted: who said what, which model answered, what tools were called.

A conversation is what one user said in one session of one project. Its messages belong to turns of the journal, and
are known by turn, step and number, so that each is kept once, however often and in whatever order its halves come.

To go on from an answer of a model that keeps no state: ``chain`` by the API's own name of the answer."""

import hashlib
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import msgspec

from semmem.memory import Role, Scope, ToolCall

TITLE_CHARS_MAX = 80
USER_NUMBER = 0
"""The number of the user's own words in their turn; what a tool said just before them has a smaller one."""
FIRST_ANSWER = 999
"""The number of an answer before which no tool spoke. Each tool's result is followed by an odd one."""
SHOWN_MAX = 256
"""Ids that a step tells of what its request was shown: more than the settings let into a block."""
_PREFIX, _NONCE_CHARS = "conv_", 16
_MADE_CHARS = len(_PREFIX) + _NONCE_CHARS + 32


class Whole(IntEnum):
    """Whether an answer, and all that its request added to a history, is recorded to the letter, so that a later
    request can be given it again; and whether that request began a history or went on from an answer."""

    NO = 0
    BEGINS = 1
    GOES_ON = 2


class Step(msgspec.Struct, frozen=True, array_like=True):
    """Where in its turn an answer stands; it travels in the ticket. ``name`` is empty where the request brings the
    whole history, so that ``number`` alone tells. ``asked_at`` in seconds since 1970. ``whole``: a word of Whole, as
    far as the request goes. ``claim``: of a request that names a conversation of its API, see semmem.ports.continuing.
    ``shown``: the ids of the memories and conversations in the request's block, at most SHOWN_MAX."""

    name: str
    number: int
    asked_at: float
    whole: int = Whole.NO
    claim: str = ""
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """One message on its way to the record: a tool's result, or an answer. ``answers``: for a result, the id of the
    call that it answers. ``cut``: it was longer than is kept. ``model_asked`` stands with the turn. ``whole``: of an
    answer, a word of Whole."""

    number: int
    role: Role
    content: str
    at: float
    cut: bool = False
    answers: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    answer_id: str = ""
    finish_reason: str = ""
    whole: int = Whole.NO


class SaidHalf(msgspec.Struct, frozen=True):
    """What a request, or its answer, adds to the record of a turn; the user's own words the journal has. ``earlier``:
    turns of the same request that stand before it. ``after``: the answer that the request goes on from, where the API
    keeps the history; only the request's half says it. ``failed``: it is known that no answer came of it."""

    turn_id: str
    step: Step
    messages: tuple[Said, ...] = ()
    earlier: tuple[str, ...] = ()
    after: str = ""
    failed: bool = False

    @property
    def size(self) -> int:
        """What it takes in memory, roughly, in bytes."""
        texts = [text for said in self.messages for text in (said.content, *(call.arguments for call in said.calls))]
        shown = sum(100 + len(each) for each in self.step.shown)
        return 500 + 200 * len(self.messages) + sum(len(text) * (1 if text.isascii() else 4) for text in texts) + shown


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """``titled_at``: when somebody gave it another title than its first words, or tags; None when nobody did. Times in
    seconds since 1970; tokens as far as providers counted them. ``progress``, ``last_answer``: see
    semmem.ports.continuing. ``withheld_from``, ``withheld_until``: its answers at this place or behind it, in turns
    begun then or before, are put into no prompt any more; empty where that is so of none."""

    id: str
    scope: Scope
    title: str
    created_at: float
    updated_at: float
    tags: tuple[str, ...] = ()
    messages: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    titled_at: float | None = None
    progress: str = ""
    last_answer: str = ""
    withheld_from: str = ""
    withheld_until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMessage(Said):
    """A recorded one. ``place`` orders the messages of a conversation, and is where a page goes on. ``turn`` is the
    journal's, or one of an import. ``model_asked`` is what the request named, ``model`` what the answer did;
    ``backend``: who served it, where an import says so. ``after``: the answer that the request went on from, where its
    API keeps the history. ``shown``: of an answer, the ids of the memories and conversations that its request was
    shown. ``withheld``: it may say what is erased, and is put into no prompt any more."""

    place: str
    turn: str
    step: str
    model_asked: str = ""
    backend: str = ""
    after: str = ""
    turn_at: float = 0.0
    shown: tuple[str, ...] = ()
    withheld: bool = False

    @property
    def id(self) -> str:
        return message_id(self.turn, self.step, self.number)


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """``messages_max`` of one conversation, ``per_user_max`` conversations of one user (of both the oldest go),
    ``message_chars_max`` of one message, ``search_messages_max``: the newest of a user's that one search reads."""

    messages_max: int = 1000
    per_user_max: int = 1000
    message_chars_max: int = 16_384
    search_messages_max: int = 20_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which conversations of a scope, newest first. ``words``: all of them in the title, or in one message.
    ``before``: go on after this one (when it was last added to, and its id)."""

    limit: int = 20
    tag: str | None = None
    words: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    before: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of halves. ``kept``: messages that are new. ``waiting``: those of turns that the journal does not
    have yet. ``turned_away``: halves of what is erased. ``removed``: messages and conversations that had to make room,
    by reason."""

    kept: int = 0
    waiting: tuple[SaidHalf, ...] = ()
    turned_away: int = 0
    removed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ConversationCounts:
    """Of everybody, or of one user."""

    conversations: int
    messages: int
    users: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Match:
    """A message that a search finds. ``place`` as in KeptMessage; ``at`` in seconds since 1970."""

    id: str
    place: str
    role: Role
    at: float


@dataclass(frozen=True, slots=True)
class Matches:
    """In one conversation: how many, and the newest of them, newest first."""

    total: int
    newest: Sequence[Match]


@dataclass(frozen=True, slots=True)
class ConversationFacets:
    """The projects and tags of conversations, each with the number of those that have it, the most frequent first."""

    projects: Sequence[tuple[str, int]]
    tags: Sequence[tuple[str, int]]


class ConversationRecords(Protocol):
    """What was recorded, for whoever may see it. Every call is bound to a scope. Raises JournalError."""

    async def conversations(self, scope: Scope, wanted: Wanted, limits: ConversationLimits) -> list[KeptConversation]:
        """Newest first."""

    async def conversation(self, scope: Scope, conversation_id: str) -> KeptConversation | None: ...

    async def messages(
        self, scope: Scope, conversation_id: str, *, after: str = "", before: str | None = None, limit: int = 100
    ) -> list[KeptMessage]:
        """In the order in which they were said, the first ones behind the place ``after``; or, where ``before`` is
        given, the last ones before that place."""

    async def chain(self, scope: Scope, answer_id: str, *, messages_max: int) -> list[KeptMessage]:
        """What led to the answer that its API calls so, and the answer itself, oldest first: step by step back along
        the answers that requests went on from. At most so many, the newest; empty when nothing of it is known, or
        several of the user's answers are called so."""

    async def matches(
        self, scope: Scope, conversation_id: str, words: Sequence[str], limits: ConversationLimits, *, limit: int
    ) -> Matches:
        """Messages of this conversation with all of these words, of its newest ``search_messages_max``."""

    async def conversation_facets(self, scope: Scope, *, read_max: int, limit: int) -> ConversationFacets:
        """At most ``limit`` of each, over the ``read_max`` conversations last added to."""

    async def put_conversation(
        self, kept: KeptConversation, messages: Sequence[KeptMessage], limits: ConversationLimits
    ) -> KeptConversation | None:
        """A whole conversation, as it comes from elsewhere, or one in which nothing is said yet. What of it is erased
        is left out; None when all is."""

    async def change_conversation(
        self, scope: Scope, conversation_id: str, *, title: str | None, tags: Sequence[str] | None, now: float
    ) -> KeptConversation | None:
        """None leaves it as it is."""

    async def forget_conversation(self, scope: Scope, conversation_id: str, *, now: float) -> int | None:
        """Remove it with its messages, and turn away what is still under way of it; how many messages went. None when
        there is no such conversation."""

    async def conversation_counts(self, user: str | None) -> ConversationCounts: ...


def conversation_id(scope: Scope) -> str:
    """The same on every replica, for what is said in one session of one project. A session that ``new_conversation_id``
    has named for it is called like its conversation."""
    session = scope.session or ""
    if len(session) == _MADE_CHARS and session == _made(scope, session[len(_PREFIX) :][:_NONCE_CHARS]):
        return session
    return _PREFIX + _digest(scope.user, scope.project or "", scope.agent or "", session)


def new_conversation_id(scope: Scope) -> str:
    """A name for a conversation of this user, project and agent, and for its session: what a client then names leads
    to the conversation without anything being looked up, and for nobody else."""
    return _made(scope, secrets.token_hex(_NONCE_CHARS // 2))


def _made(scope: Scope, nonce: str) -> str:
    return _PREFIX + nonce + _digest("made", scope.user, scope.project or "", scope.agent or "", nonce)


def message_id(turn: str, step: str, number: int) -> str:
    return "msg_" + _digest(turn, step, str(number))


def step_name(previous: str, texts: Sequence[str]) -> str:
    """Of a request that brings results of tools alone: of the answer that it goes on from, and what they said."""
    return _digest(previous, *texts)[:16]


def place_of(turn_at: float, turn: str, step: Step) -> str:
    """Turns by time, in a turn steps by time where they have names, in a step by number."""
    step_at = step.asked_at if step.name else 0.0
    return f"{max(turn_at, 0.0):018.6f} {turn} {max(step_at, 0.0):018.6f} {step.number + 1_000_000:07d}"


def title_of(first_words: str) -> str:
    """A conversation's title until somebody gives it another: the first line of the user's first words."""
    line = next((line for text in first_words[:4000].splitlines() if (line := " ".join(text.split()))), "")
    if len(line) <= TITLE_CHARS_MAX:
        return line
    head = line[: TITLE_CHARS_MAX - 1]
    whole, space, _ = head.rpartition(" ")
    return (whole if space and len(whole) > TITLE_CHARS_MAX // 2 else head).rstrip(" ,;:") + "…"


def _digest(*parts: str) -> str:
    told = b"".join(len(data).to_bytes(8) + data for data in (part.encode("utf-8", "surrogatepass") for part in parts))
    return hashlib.sha256(told).hexdigest()[:32]
