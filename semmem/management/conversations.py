"""What an operator or a user may do with recorded conversations, without HTTP: the operations behind the REST API."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from semmem.management.listing import cursor_of, moment_cursor, moment_told, place_told
from semmem.management.problems import Denied
from semmem.management.routes import NO_CONTROLS, Body, Count, Moment, Switch
from semmem.management.shown import ATTRIBUTES
from semmem.memory import Role, Scope, ToolCall
from semmem.ports.continuing import IDLE
from semmem.ports.conversations import (
    SHOWN_MAX,
    ConversationFacets,
    ConversationLimits,
    ConversationRecords,
    KeptConversation,
    KeptMessage,
    Match,
    Matches,
    Step,
    Wanted,
    new_conversation_id,
    place_of,
)

WORDS_MAX = 8
"""Words of a search; further ones are not looked for."""
FACETS_READ_MAX = 10_000
"""Conversations whose projects and tags are counted: those last added to."""
BEHIND, BEFORE, AROUND = "", "<", "="
"""How a cursor of messages begins, before the place that it is about; places begin with a digit."""


Name = Annotated[str, Field(max_length=200, pattern=NO_CONTROLS)]
Tokens = Annotated[Count, Field(ge=0, le=10**9)]


class NewCall(Body):
    """A call of a tool; ``arguments`` as the model wrote them."""

    id: Name = ""
    name: Name
    arguments: str = ""


class NewMessage(Body):
    """What somebody said, as an export shows it. ``at``: null for no known time. Its former ``id``, ``cut`` and
    ``in_prompt`` are taken and say nothing."""

    role: Role
    content: str = ""
    at: Moment | None = None
    tool_call_id: Name | None = None
    tool_calls: list[NewCall] = Field(default_factory=list, max_length=100)
    model_asked: Name | None = None
    model: Name | None = None
    backend: Name | None = None
    tokens_in: Tokens | None = None
    tokens_out: Tokens | None = None
    response_id: Name | None = None
    finish_reason: Name | None = None
    id: Name | None = None
    cut: Switch = False
    in_prompt: list[Name] = Field(default_factory=list, max_length=SHOWN_MAX)


_TEXTS = ("tool_call_id", "model_asked", "model", "backend", "response_id", "finish_reason")
"""Members that are empty where nothing is said."""


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """In the order in which they were said; None where there is nothing before, or behind."""

    messages: Sequence[KeptMessage]
    previous_cursor: str | None
    next_cursor: str | None


@dataclass(eq=False)
class Conversations:
    """Operations on one user's conversations. Raises JournalError.

    ``settle`` writes what waits in this process; ``after`` gives a time after the user's last erasure, where the clock
    was set back. ``recording``: whether anything is added but by import. ``forgotten`` is told whose conversation is
    gone, and which.
    """

    records: ConversationRecords
    limits: ConversationLimits
    _: KW_ONLY
    settle: Callable[[], Awaitable[object]]
    clock: Callable[[], float]
    after: Callable[[str, float], float] = lambda _user, now: now
    recording: bool
    forgotten: Callable[[str, str], None] = lambda _user, _conversation_id: None

    async def page(
        self, scope: Scope, wanted: Wanted, *, text: str | None, cursor: str | None
    ) -> tuple[list[KeptConversation], str | None]:
        """One page, newest first, and where the next one begins. Raises Denied."""
        await self.settle()
        before = None if cursor is None else moment_told(cursor)
        asked = replace(wanted, limit=wanted.limit + 1, words=words_of(text), before=before)
        found = await self.records.conversations(scope, asked, self.limits)
        shown = found[: wanted.limit]
        return shown, moment_cursor(shown[-1].updated_at, shown[-1].id) if len(found) > len(shown) else None

    async def get(self, scope: Scope, conversation_id: str) -> KeptConversation | None:
        await self.settle()
        return await self.records.conversation(scope, conversation_id)

    async def messages(
        self, scope: Scope, conversation_id: str, *, limit: int, cursor: str | None = None
    ) -> MessagesPage:
        """One page, at the beginning without a cursor. Raises Denied."""
        kind, place = _spot(cursor)
        if kind == BEHIND:
            return await self._behind(scope, conversation_id, place, limit)
        number = limit if kind == BEFORE else limit // 2
        found = await self.records.messages(scope, conversation_id, before=place, limit=number + 1)
        shown = found[1:] if len(found) > number else found
        earlier = MessagesPage(shown, *_cursors(shown, before=len(found) > number, behind=True))
        if kind == BEFORE:
            return earlier
        # What lies around a place: so much before it, and from there on.
        later = await self._behind(scope, conversation_id, found[-1].place if found else "", limit - len(shown))
        messages = [*shown, *later.messages]
        return MessagesPage(messages, *_cursors(messages, before=len(found) > number, behind=bool(later.next_cursor)))

    async def _behind(self, scope: Scope, conversation_id: str, place: str, limit: int) -> MessagesPage:
        found = await self.records.messages(scope, conversation_id, after=place, limit=limit + 1)
        shown = found[:limit]
        return MessagesPage(shown, *_cursors(shown, before=bool(place), behind=len(found) > limit))

    async def matches(self, scope: Scope, conversation_id: str, text: str, *, limit: int) -> Matches:
        """Which of its messages have all these words."""
        words = words_of(text)
        if not words:
            return Matches(0, ())
        return await self.records.matches(scope, conversation_id, words, self.limits, limit=limit)

    async def facets(self, scope: Scope, *, limit: int) -> ConversationFacets:
        """Which projects and tags there are."""
        await self.settle()
        return await self.records.conversation_facets(scope, read_max=FACETS_READ_MAX, limit=limit)

    async def everything(self, scope: Scope, conversation_id: str) -> list[KeptMessage]:
        """All messages: at most as many as a conversation keeps."""
        return await self.records.messages(scope, conversation_id, limit=self.limits.messages_max)

    async def create(
        self, scope: Scope, told: Sequence[NewMessage], *, title: str | None, tags: Sequence[str]
    ) -> KeptConversation:
        """A conversation of its own, in the order in which it is told; without messages one in which a model's client
        goes on, which names the session like the conversation. Raises Denied where an erasure came between."""
        now = self.after(scope.user, self.clock())
        name = "conv_" + secrets.token_hex(16) if told else new_conversation_id(scope)
        session = (scope.session or "i_" + secrets.token_hex(16)) if told else name
        begun = min((said.at.timestamp() for said in told if said.at is not None), default=now)
        messages = [self._message(said, place, name, begun, now) for place, said in enumerate(told)]
        kept = KeptConversation(
            name,
            Scope(scope.user, scope.project, scope.agent, session),
            title or "",
            created_at=begun,
            updated_at=max((message.at for message in messages), default=now),
            tags=tuple(tags),
            titled_at=None if title is None and not tags else now,
            progress="" if told else IDLE,
        )
        put = await self.records.put_conversation(kept, messages, self.limits)
        if put is None:
            raise Denied("BUSY", "what this user said is being erased; try again")
        return put

    def _message(self, said: NewMessage, place: int, name: str, begun: float, now: float) -> KeptMessage:
        """Whatever time it says, it is told now: an erasure until now takes it, and no earlier one."""
        chars_max = self.limits.message_chars_max
        turn = f"i_{name.removeprefix('conv_')}_{place:06d}"
        texts: dict[str, Any] = {ATTRIBUTES.get(name, name): getattr(said, name) or "" for name in _TEXTS}
        return KeptMessage(
            place=place_of(begun, f"i_{name}", Step("", place, 0.0)),
            turn=turn,
            step="",
            number=place,
            role=said.role,
            content=said.content[:chars_max],
            at=begun if said.at is None else said.at.timestamp(),
            cut=len(said.content) > chars_max,
            calls=tuple(ToolCall(call.id, call.name, call.arguments[:chars_max]) for call in said.tool_calls),
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            turn_at=now,
            **texts,
        )

    async def change(
        self, scope: Scope, conversation_id: str, *, title: str | None, tags: Sequence[str] | None
    ) -> KeptConversation | None:
        """Another title, or tags; None where there is no such conversation."""
        now = self.after(scope.user, self.clock())
        return await self.records.change_conversation(scope, conversation_id, title=title, tags=tags, now=now)

    async def forget(self, scope: Scope, conversation_id: str) -> int | None:
        """Remove it, and what is still under way of it; how many messages. None where there is none."""
        now = self.after(scope.user, self.clock())
        gone = await self.records.forget_conversation(scope, conversation_id, now=now)
        self.forgotten(scope.user, conversation_id)
        return gone


def around(match: Match) -> str:
    """The cursor of the page that has it in its middle."""
    return cursor_of(AROUND + match.place)


def _spot(cursor: str | None) -> tuple[str, str]:
    """Of a page of messages: whether it lies behind, before or around a place, and which. Raises Denied."""
    told = "" if cursor is None else place_told(cursor)
    kind = next((kind for kind in (BEFORE, AROUND) if told.startswith(kind)), BEHIND)
    return kind, told.removeprefix(kind)


def _cursors(shown: Sequence[KeptMessage], *, before: bool, behind: bool) -> tuple[str | None, str | None]:
    """Of the page before what is shown, and of the one behind it."""
    previous = cursor_of(BEFORE + shown[0].place) if shown and before else None
    return previous, cursor_of(BEHIND + shown[-1].place) if shown and behind else None


def words_of(text: str | None) -> tuple[str, ...]:
    """What a search looks for: each word of it, without regard to order."""
    return tuple(dict.fromkeys((text or "").split()))[:WORDS_MAX]
