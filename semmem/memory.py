"""The nouns of semmem: who, what was said, what was learnt, what was found.

Frozen values without behaviour beyond what follows from their own fields. No I/O, no JSON, no policy. Those that every
request makes are msgspec's structs, which are made in a tenth of the time of a frozen dataclass
(``msgspec.structs.replace`` makes one with other values).
All times are seconds since the Unix epoch, UTC, as float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
"""One embedding: shape (dimension,), float32, L2-normalised, finite."""


class MemoryType(StrEnum):
    """What kind of knowledge a memory is.

    Passages are none: what a user said, as it was said, and the gist of what was answered. They are kept apart from
    memories, and are among what a call means only where they are named: no types mean all types but these.
    """

    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    EPISODIC = "episodic"
    REFLECTIVE = "reflective"
    PASSAGE = "passage"
    GIST = "gist"


PASSAGES = (MemoryType.PASSAGE, MemoryType.GIST)
MEMORY_TYPES = tuple(kind for kind in MemoryType if kind not in PASSAGES)
Types = Sequence[MemoryType]
"""Those that a call means; none: all but passages."""


def are_passages(types: Types) -> bool:
    """Whether a call that names these types means passages. None names both those and memories."""
    return bool(types) and types[0] in PASSAGES


class MemoryStatus(StrEnum):
    """Only ``active`` memories are ever retrieved."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"


class Standing(StrEnum):
    """Why a memory matters whenever its topic is touched, or always, though no word be shared with it."""

    MUST = "must"
    """What the user must or must not: allergy, illness, diet, disability, pregnancy, faith."""
    PROFILE = "profile"
    """Who the user is: name, home, work, household."""
    STYLE = "style"
    """How the user wants answers: language, units, length, form."""


_STANDINGS: dict[str, Standing] = {standing.value: standing for standing in Standing}

QUARANTINED = "quarantined"
RELEASED = "released"
SUPERSEDED_BY = "superseded_by"
SUPERSEDED_WHY = "superseded_why"
MERGED = "merged"
SUMMARY_OF = "summary_of"
REFLECTION_OF = "reflection_of"
STANDING = "standing"
PROVISIONAL = "provisional"
UNSETTLED = "unsettled"
STANDS_FOR = "stands_for"
TOPIC = "topic"
BESIDE = "beside"
CHANGES_STANDING = "changes_standing"
OWN_METADATA = frozenset(
    {
        QUARANTINED,
        RELEASED,
        SUPERSEDED_BY,
        SUPERSEDED_WHY,
        MERGED,
        SUMMARY_OF,
        REFLECTION_OF,
        STANDING,
        PROVISIONAL,
        UNSETTLED,
        STANDS_FOR,
        TOPIC,
        BESIDE,
        CHANGES_STANDING,
    }
)
"""Names in a memory's metadata that semmem itself writes: why it was quarantined (a word), that somebody released it
(true), the id of what took its place and a reason word, the ids of what it took the place of, what it rests on (by id
with a digest of what each says); a word of Standing; that no batch has learnt from its turn yet (true); the ids of
memories that it may contradict, which nobody has settled; the ids of those in whose place a passage is shown; the area
of life it belongs to, a word or two that a model chose; that it was said in a message in which others speak too, so
that it stands beside what it contradicts (true); that a standing memory ended or changed with it (true)."""

CONTRADICTED, UPDATED, REPEATED, SUMMARISED = "contradicted", "updated", "repeated", "summarised"
"""Why a statement is no longer retrieved, beside MERGED: another memory says otherwise, or a new version of this one;
another one says the same, word for word; a summary took its place."""
UNFOUNDED = "unfounded"
"""Why a reflection is no longer retrieved: a memory that it rests on is gone, or says something else."""
REWRITTEN, MODEL_DROPPED, REFUSED = "rewritten", "model_dropped", "refused"
"""Why a provisional memory is no longer retrieved: the batch of its turn says it in other words; the model that read
the turn named it as wrong; its turn was refused in the end."""
UNDONE = "undone"
"""Why a memory with which a standing memory ended or changed is no longer retrieved: the user took that back."""

ASKED_TO_FORGET = "asked_to_forget"
"""Why a memory is no longer retrieved: the user asked to forget it. They can have it back."""


class Role(StrEnum):
    """Who speaks. A dialect maps its own role names onto these four."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Scope(msgspec.Struct, frozen=True):
    """Whose memories a call may touch. The user is never optional and never a wildcard.

    On read an absent project, agent or session means all of the user's; on write it means none. ``reads_common``: how
    requests read in a project: also what belongs to none, and what the user must or must not, wherever it was told.
    """

    user: str
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    reads_common: bool = False

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("a scope needs a user")

    @property
    def projects(self) -> tuple[str, ...] | None:
        """Those whose memories are read, "" for none; None: all."""
        if self.project is None:
            return None
        return (self.project, "") if self.reads_common and self.project else (self.project,)

    def contains(self, other: Scope) -> bool:
        """Whether what was written in ``other`` is read in this scope."""
        narrowed = ((self.project, other.project), (self.agent, other.agent), (self.session, other.session))
        return self.user == other.user and all(wanted in (None, present or "") for wanted, present in narrowed)


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation, reduced to its text. Images and other parts are not text. ``answers``: for a
    tool's result the id of the call that it answers. ``name``: of who speaks, where the API's client says so."""

    role: Role
    text: str
    answers: str = ""
    name: str = ""

    def is_own(self, user: str) -> bool:
        """Whether this user speaks, rather than somebody else in the user's role. Where nobody is identified (empty)
        no name is anybody else's."""
        return self.role is Role.USER and (not self.name or not user or self.name.casefold() == user.casefold())


class ToolCall(msgspec.Struct, frozen=True):
    """What a model asks its client to do. ``id`` is the API's; ``arguments`` are as the model wrote them, most often
    JSON, and their beginning where they were longer than is kept."""

    id: str
    name: str
    arguments: str


class Past(msgspec.Struct, frozen=True):
    """One message of a history that is kept here: a Message, and the calls of tools that it made."""

    role: Role
    text: str
    answers: str = ""
    calls: tuple[ToolCall, ...] = ()


class Controls(msgspec.Struct, frozen=True):
    """What a request asks of memory in its own body. None means it did not say. ``limit`` is a count of memories,
    ``threshold`` a cosine. ``claimed_user`` is unverified: believed only where the operator said so."""

    enabled: bool | None = None
    auto_store: bool | None = None
    types: tuple[MemoryType, ...] | None = None
    limit: int | None = None
    threshold: float | None = None
    project: str | None = None
    claimed_user: str | None = None


class Conversation(msgspec.Struct, frozen=True):
    """A request, whatever its dialect: every message in order, oldest first.

    ``tool_turn``: the model is asked to go on from a tool's result, or told to call one named tool. The mere presence
    of tools is not a tool turn. ``conversation_id`` is the API's own name for the conversation, ``previous_id`` the
    name of the answer that this request goes on from, where the API keeps the history itself.
    """

    messages: tuple[Message, ...]
    model: str = ""
    stream: bool = False
    tool_turn: bool = False
    controls: Controls = Controls()
    conversation_id: str | None = None
    previous_id: str | None = None


@dataclass(frozen=True, slots=True)
class Injection:
    """Text to add to a request: as whom (system, developer, user) and where.

    ``turn``: at the beginning of a message in the user's role, of which ``at`` is the number among these, from 0.
    ``system``: at the end of the first system or developer message, or of one of its own where there is none; as the
    user at the beginning of the user's last message. The others are messages of their own, where the API has room for
    them: ``first``, ``after_system``, ``before_last_user``. ``input_item`` is what a dialect makes of ``system`` where
    the instructions stand among the input.
    """

    text: str
    role: str = "system"
    position: str = "system"
    at: int = 0


class Element(msgspec.Struct, frozen=True):
    """One element of a request's list of messages, as whoever parts that list sees it.

    ``text``: of all ``messages`` of the Conversation that it makes, which may be none. ``digest`` stands for all of it,
    however it is spelled. ``speaks``: the user's own words are in it. ``concludes``: the assistant answers and calls no
    tool. ``seam``: nothing behind this place belongs to anything before it (a tool's result to its call).
    ``beside_chars``: characters of calls, which are not text.
    """

    role: Role
    text: str
    digest: str
    messages: int = 1
    speaks: bool = False
    concludes: bool = False
    seam: bool = True
    beside_chars: int = 0


@dataclass(frozen=True, slots=True)
class Replacement:
    """``text``, as a message of the user's in the place of the first of these elements; the others go with it."""

    elements: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class PromptCache:
    """How many tokens a prompt has, and how many of them the provider read from its prompt cache, as it reports them:
    0 <= ``cached_tokens`` <= ``prompt_tokens``."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered. ``complete`` only when it was seen to its proper end.

    ``text`` is the visible text of the first choice, or only its tail when it was longer than the reader's limit.
    ``filtered``: the provider withheld the answer. ``calls_tool``: the model waits for a tool; this is not yet the
    answer, whatever it said on the way. Token counts are None when the provider did not say. ``prompt_cache`` is None
    when it did not say how much of the prompt was cached, or said what cannot be. ``answer_id`` is the API's own name
    for the answer, by which a later request may go on from it. ``model`` is the one that the provider says answered,
    empty where it does not; ``tool_calls`` is how many calls the client is asked to make.
    ``calls`` are those, where somebody wanted them kept. ``whole``: text and calls are all that the model answered,
    but for its reasoning, and all of them is here. ``broke``: nothing of it was missed, and it did not come to its
    proper end, or said that it failed. None of these makes it another answer.
    """

    text: str
    complete: bool
    finish_reason: str | None = None
    filtered: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    answer_id: str | None = None
    calls_tool: bool = False
    prompt_cache: PromptCache | None = None
    model: str = field(default="", compare=False)
    tool_calls: int = field(default=0, compare=False)
    calls: tuple[ToolCall, ...] = field(default=(), compare=False)
    whole: bool = field(default=False, compare=False)
    broke: bool = field(default=False, compare=False)


class Turn(msgspec.Struct, frozen=True):
    """One new user-authored message and what follows until the next one.

    ``answer`` is None until it was observed whole, and stays None when it was lost. ``resumed``: the request that
    opened it only repeats these words (a tool spoke since), so they were said at some time before ``opened_at``.
    ``message_id`` is the bare id by which the message is known again in a later request's history. ``model`` is the
    name of the model that the request asked for, as the client wrote it. ``trace`` is the place of the request in a
    trace (``traceparent``), empty where none is recorded.
    """

    id: str
    scope: Scope
    ordinal: int
    user_text: str
    opened_at: float
    request_id: str = ""
    answer: str | None = None
    resumed: bool = False
    message_id: str = ""
    model: str = ""
    trace: str = ""


class TurnEnding(StrEnum):
    """How a turn ended: the word in the journal and the metric's label. The last two are of no turn: they are said of a
    message of the user's, by its place in the conversation."""

    ANSWERED = "answered"
    ANSWER_LOST = "answer_lost"  # incomplete, not 2xx, or unreadable
    REFUSED = "refused"  # 4xx or filtered: nothing may be learnt from this turn
    CONTINUES = "continues"  # the answer only calls a tool: the turn stays open
    UNKNOWN_ENCODING = "unknown_encoding"  # a content-encoding that is not read; in the journal: ANSWER_LOST
    DECLINED = "declined"  # seen, and not to be kept
    ERASED = "erased"  # said, and its turn erased before it was written


@dataclass(frozen=True, slots=True)
class Fact:
    """What an extractor learnt from one turn, before it is screened, deduplicated and stored.

    ``turn_id`` names the turn whose user text grounds it; ``occurred_at`` is when the thing happened, if that was said.
    With a ``key`` it replaces what the user has under that key, and is compared with nothing else. ``expires_at`` is
    when it ceases to be true, if the user said so. ``topic`` is a word or two, empty where nobody named it.
    ``beside``: others speak in the turn's message as well, so that it ends and changes nothing that is known; never
    saved, but seen again.
    """

    type: MemoryType
    content: str
    turn_id: str
    importance: float = 0.5
    occurred_at: float | None = None
    key: str | None = None
    standing: Standing | None = None
    expires_at: float | None = None
    topic: str = ""
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from. ``role`` is the author: only ``user`` (or ``api``) is ever a source of facts."""

    role: str = "user"
    session: str = ""
    turn: str = ""
    request_id: str = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Memory:
    """One thing known about a user.

    ``id`` is public and stable across versions; ``version`` counts from 1. ``expires_at`` None means never.
    ``embedding`` may be None when no embedder was available; such a memory is not found by vector search.
    """

    id: str
    version: int
    type: MemoryType
    content: str
    user: str
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    source: Source = Source()
    key: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    created_at: float = 0.0
    updated_at: float = 0.0
    occurred_at: float | None = None
    expires_at: float | None = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    embedding: Vector | None = field(default=None, compare=False, repr=False)

    @property
    def said_at(self) -> float:
        """When its words were said."""
        return self.source.time or self.created_at

    def is_retrievable(self, now: float) -> bool:
        """Whether a search can find it: active, in time, with a vector."""
        lives = self.expires_at is None or self.expires_at > now
        return lives and self.status is MemoryStatus.ACTIVE and self.embedding is not None

    @property
    def standing(self) -> Standing | None:
        """Why it matters whenever its topic is touched, as far as whoever wrote it said so."""
        word = self.metadata.get(STANDING)
        return _STANDINGS.get(word) if isinstance(word, str) else None

    @property
    def is_provisional(self) -> bool:
        """Whether it is what a turn said, and no batch has learnt from that turn yet."""
        return self.metadata.get(PROVISIONAL) is True

    @property
    def unsettled(self) -> list[str]:
        """The ids of memories that it may contradict."""
        return self.ids(UNSETTLED)

    def ids(self, name: str) -> list[str]:
        """Those that its metadata has under this name."""
        ids = self.metadata.get(name)
        return [one for one in ids if isinstance(one, str)] if isinstance(ids, list | tuple) else []

    @property
    def changes_standing(self) -> bool:
        """Whether a standing memory ended or changed with it."""
        return self.metadata.get(CHANGES_STANDING) is True


SKEW_S = 60.0
"""What is dated less than this in the future is by a clock like any other."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What shall be gone: everything in a scope that was said at ``at`` or before. ``types`` narrows it to memories of
    these kinds, ``memory_id`` to one memory, whenever that was said; turns are then not touched."""

    scope: Scope
    at: float
    types: tuple[MemoryType, ...] = ()
    memory_id: str | None = None

    @property
    def takes_turns(self) -> bool:
        """Whether also what is not yet learnt goes."""
        return not self.types and self.memory_id is None

    @property
    def takes_user(self) -> bool:
        """Whether nothing of the user may be left."""
        return self.takes_turns and self.scope == Scope(self.scope.user)

    def covers(self, memory: Memory) -> bool:
        """Whether the memory is among it."""
        return (
            (memory.said_at <= self.at or self.memory_id is not None)
            and self.scope.contains(Scope(memory.user, memory.project, memory.agent, memory.session))
            and (not self.types or memory.type in self.types)
            and self.memory_id in (None, memory.id)
        )

    def covers_turn(self, turn: Turn) -> bool:
        """Whether the turn is among it."""
        return self.takes_turns and turn.opened_at <= self.at and self.scope.contains(turn.scope)


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory found for a query. ``cosine`` is in [-1, 1]; ``score`` orders hits, higher is better.

    ``keyword`` is the BM25 score of the query's words, 0 or more, and 0 where no words were compared. ``logit``: the
    log-odds that the request needs it, where they were calibrated.
    """

    memory: Memory
    cosine: float
    score: float
    keyword: float = 0.0
    logit: float | None = None
