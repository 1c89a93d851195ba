"""What an operator or a user may do with recorded conversations, and the routes for it: list, search, read, import,
title, tag, remove, export."""

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response

from semmem.management import conversation_shapes as shapes
from semmem.management.access import Act
from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import Owner, Reader, SessionId, UserId, existing, one_or_everybody, refuses, scope_in
from semmem.management.shown import ATTRIBUTES, as_shown, at, cursor_of, moment_cursor, moment_told, place_told
from semmem.memory import Role, Scope, ToolCall
from semmem.ports.continuing import IDLE
from semmem.ports.conversations import (
    ConversationLimits,
    ConversationRecords,
    KeptConversation,
    KeptMessage,
    Matches,
    Step,
    Wanted,
    new_conversation_id,
    place_of,
)

WORDS_MAX = 8
"""Words of a search; further ones are not looked for."""
FACETS_MAX = 200
"""Projects, and tags, in one answer."""
FACETS_READ_MAX = 10_000
"""Conversations whose projects and tags are counted: those last added to."""
BEHIND, BEFORE, AROUND = "", "<", "="
"""How a cursor of messages begins, before the place that it is about; places begin with a digit."""
MARKDOWN = "text/markdown; charset=utf-8"

_TEXTS = ("tool_call_id", "model_asked", "model", "backend", "response_id", "finish_reason")
"""Members that are empty where nothing is said."""


@dataclass(eq=False)
class Conversations:
    """Raises JournalError and Denied. ``settle`` writes what waits in this process; ``after`` gives a time after the
    user's last erasure, where the clock was set back. ``recording``: whether anything is added but by import.
    ``forgotten`` is told whose conversation is gone, and which."""

    records: ConversationRecords
    limits: ConversationLimits
    _: KW_ONLY
    settle: Callable[[], Awaitable[object]]
    clock: Callable[[], float]
    after: Callable[[str, float], float] = lambda _user, now: now
    recording: bool
    forgotten: Callable[[str, str], None] = lambda _user, _conversation_id: None

    async def list_conversations(
        self,
        scope: Reader,
        session_id: SessionId = None,
        tag: shapes.OfTag = None,
        text: shapes.Text = None,
        since: shapes.Since = None,
        until: shapes.Until = None,
        limit: shapes.ListLimit = 20,
        cursor: shapes.Cursor = None,
    ) -> shapes.ConversationsShown:
        """Those last added to first. A search reads the user's newest messages."""
        await self.settle()
        before = None if cursor is None else moment_told(cursor)
        wanted = Wanted(limit + 1, tag, words_of(text), _seconds(since), _seconds(until), before)
        found = await self.records.conversations(
            msgspec.structs.replace(scope, session=session_id), wanted, self.limits
        )
        kept = found[:limit]
        return {
            "conversations": [as_shown(shapes.ConversationShown, each) for each in kept],
            "next_cursor": moment_cursor(kept[-1].updated_at, kept[-1].id) if len(found) > limit else None,
            "recording": self.recording,
        }

    async def get_counts(self, request: Request, user_id: UserId = None) -> shapes.CountsShown:
        """How many there are: of everybody for an operator, who sees no more; else of one user."""
        found = await self.records.conversation_counts(one_or_everybody(request, user_id))
        return as_shown(shapes.CountsShown, found, recording=self.recording)

    async def get_facets(self, scope: Reader) -> shapes.FacetsShown:
        """Projects and tags of a user's conversations, with how many have them: of the 10,000 last added to."""
        await self.settle()
        found = await self.records.conversation_facets(scope, read_max=FACETS_READ_MAX, limit=FACETS_MAX)
        return {
            "projects": [{"project_id": name, "conversations": number} for name, number in found.projects],
            "tags": [{"tag": tag, "conversations": number} for tag, number in found.tags],
        }

    async def create_conversation(self, request: Request, new: shapes.NewConversation) -> shapes.ConversationShown:
        """Import one, also where nothing is recorded; or begin one, without messages."""
        # In the order in which it is told; without messages one in which a model's client goes on, which names the
        # session like the conversation.
        scope, told = scope_in(new, request, Act.WRITE), new.messages
        now = self.after(scope.user, self.clock())
        name = "conv_" + secrets.token_hex(16) if told else new_conversation_id(scope)
        session = (scope.session or "i_" + secrets.token_hex(16)) if told else name
        begun = min((said.at.timestamp() for said in told if said.at is not None), default=now)
        messages = [self._message(said, place, name, begun, now) for place, said in enumerate(told)]
        kept = KeptConversation(
            name,
            msgspec.structs.replace(scope, session=session),
            new.title or "",
            created_at=begun,
            updated_at=max((message.at for message in messages), default=now),
            tags=tuple(dict.fromkeys(new.tags)),
            titled_at=None if new.title is None and not new.tags else now,
            progress="" if told else IDLE,
        )
        put = await self.records.put_conversation(kept, messages, self.limits)
        return as_shown(
            shapes.ConversationShown, existing(put, Denied("BUSY", "what this user said is being erased; try again"))
        )

    def _message(self, said: shapes.NewMessage, place: int, name: str, begun: float, now: float) -> KeptMessage:
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

    async def get_conversation(
        self,
        scope: Reader,
        conversation_id: shapes.ConversationId,
        limit: shapes.MessagesLimit = 100,
        cursor: shapes.Cursor = None,
    ) -> shapes.ConversationRead:
        """One, with a page of its messages, oldest first."""
        kept = await self._kept(scope, conversation_id)
        messages, before, behind = await self._page(scope, kept.id, limit, cursor)
        return as_shown(
            shapes.ConversationRead,
            kept,
            conversation=kept,
            messages=messages,
            previous_cursor=cursor_of(BEFORE + messages[0].place) if messages and before else None,
            next_cursor=cursor_of(BEHIND + messages[-1].place) if messages and behind else None,
        )

    async def _kept(self, scope: Scope, conversation_id: str) -> KeptConversation:
        """Raises Denied where there is no such conversation."""
        await self.settle()
        return existing(await self.records.conversation(scope, conversation_id), _missing())

    async def _page(
        self, scope: Scope, conversation_id: str, limit: int, cursor: str | None
    ) -> tuple[Sequence[KeptMessage], bool, bool]:
        """Messages in the order in which they were said, at the beginning without a cursor, and whether there are any
        before and behind them. Raises Denied."""
        kind, place = _spot(cursor)
        if kind == BEHIND:
            shown, is_more = await self._behind(scope, conversation_id, place, limit)
            return shown, bool(place), is_more
        number = limit if kind == BEFORE else limit // 2
        found = await self.records.messages(scope, conversation_id, before=place, limit=number + 1)
        is_earlier = len(found) > number
        earlier = found[1:] if is_earlier else found
        if kind == BEFORE:
            return earlier, is_earlier, True
        # What lies around a place: so much before it, and from there on.
        last = found[-1].place if found else ""
        later, is_later = await self._behind(scope, conversation_id, last, limit - len(earlier))
        return [*earlier, *later], is_earlier, is_later

    async def _behind(
        self, scope: Scope, conversation_id: str, place: str, limit: int
    ) -> tuple[Sequence[KeptMessage], bool]:
        found = await self.records.messages(scope, conversation_id, after=place, limit=limit + 1)
        return found[:limit], len(found) > limit

    async def get_matches(
        self,
        scope: Reader,
        conversation_id: shapes.ConversationId,
        text: shapes.MessageWords,
        limit: shapes.MatchesLimit = 100,
    ) -> shapes.MatchesShown:
        """Where in a conversation words are: its newest messages that have all of them."""
        kept, words, found = await self._kept(scope, conversation_id), words_of(text), Matches(0, ())
        if words:
            found = await self.records.matches(scope, kept.id, words, self.limits, limit=limit)
        matches = [as_shown(shapes.MatchShown, each, cursor=cursor_of(AROUND + each.place)) for each in found.newest]
        return as_shown(shapes.MatchesShown, found, matches=matches)

    async def change_conversation(
        self, scope: Owner, conversation_id: shapes.ConversationId, new: shapes.ChangedConversation
    ) -> shapes.ConversationShown:
        """Another title, other tags."""
        tags = None if new.tags is None else list(dict.fromkeys(new.tags))
        now = self.after(scope.user, self.clock())
        changed = await self.records.change_conversation(scope, conversation_id, title=new.title, tags=tags, now=now)
        return as_shown(shapes.ConversationShown, existing(changed, _missing()))

    async def delete_conversation(
        self, scope: Owner, conversation_id: shapes.ConversationId
    ) -> shapes.ConversationDeleted:
        """With its messages, and what is still under way of them. Memories that were learnt from it stay."""
        now = self.after(scope.user, self.clock())
        gone = await self.records.forget_conversation(scope, conversation_id, now=now)
        self.forgotten(scope.user, conversation_id)
        return {"success": True, "messages": existing(gone, _missing())}

    async def export_conversation(
        self,
        scope: Reader,
        conversation_id: shapes.ConversationId,
        form: Annotated[Literal["markdown", "json"], Query(alias="format")] = "markdown",
    ) -> Response:
        """All of it in one piece."""
        kept = await self._kept(scope, conversation_id)
        messages = await self.records.messages(scope, kept.id, limit=self.limits.messages_max)
        if form == "json":
            whole = as_shown(shapes.WholeConversation, kept, conversation=kept, messages=messages)
            return Response(json.dumps(whole), media_type="application/json")
        text = "".join(_markdown(kept, messages))
        return Response(text.encode("utf-8", "replace"), media_type=MARKDOWN)


def conversation_routes(conversations: Conversations) -> APIRouter:
    routes, one = APIRouter(), "/v1/conversations/{conversation_id}"
    routes.get("/v1/conversations", **refuses(*OF_USER, "INVALID_CURSOR"))(conversations.list_conversations)
    routes.get("/v1/conversations/counts", **refuses(*OF_USER))(conversations.get_counts)
    routes.get("/v1/conversations/facets", **refuses(*OF_USER))(conversations.get_facets)
    routes.post("/v1/conversations", status_code=201, **refuses(*OF_USER, "BUSY"))(conversations.create_conversation)
    routes.get(one, **refuses(*OF_USER, "INVALID_CURSOR"))(conversations.get_conversation)
    routes.get(f"{one}/matches", **refuses(*OF_USER))(conversations.get_matches)
    routes.patch(one, **refuses(*OF_USER))(conversations.change_conversation)
    routes.delete(one, **refuses(*OF_USER))(conversations.delete_conversation)
    exported = {"response_model": shapes.WholeConversation, "responses": {200: shapes.WHOLE}, **refuses(*OF_USER)}
    routes.get(f"{one}/export", **exported)(conversations.export_conversation)
    return routes


def _spot(cursor: str | None) -> tuple[str, str]:
    """Of a page of messages: whether it lies behind, before or around a place, and which. Raises Denied."""
    told = "" if cursor is None else place_told(cursor)
    kind = next((kind for kind in (BEFORE, AROUND) if told.startswith(kind)), BEHIND)
    return kind, told.removeprefix(kind)


def words_of(text: str | None) -> tuple[str, ...]:
    """What a search looks for: each word of it, without regard to order."""
    return tuple(dict.fromkeys((text or "").split()))[:WORDS_MAX]


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _missing() -> Denied:
    return Denied("NOT_FOUND", "no such conversation")


# --- one written out for a person -------------------------------------------------------------------------------------

SPEAKERS = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.SYSTEM: "System"}
CUT = "[cut here: longer than is kept]"
_FENCE = re.compile("`{3,}")


def _markdown(kept: KeptConversation, messages: Sequence[KeptMessage]) -> Iterator[str]:
    """Title, dates, and each message under its speaker; results and calls of tools as code."""
    yield f"# {_line(kept.title) or 'Conversation'}\n\n"
    yield f"- Began: {_time(kept.created_at)}\n- Last added to: {_time(kept.updated_at)}\n"
    if kept.scope.project:
        yield f"- Project: {_line(kept.scope.project)}\n"
    if kept.tags:
        yield f"- Tags: {', '.join(_line(tag) for tag in kept.tags)}\n"
    for message in messages:
        model = message.model or message.model_asked
        by = f", {_line(model)}" if message.role is Role.ASSISTANT and model else ""
        yield f"\n## {SPEAKERS[message.role]}{by} ({_time(message.at)})\n"
        if message.content:
            yield f"\n{_code(message.content) if message.role is Role.TOOL else message.content}\n"
        if message.cut:
            yield f"\n{CUT}\n"
        for call in message.calls:
            yield f"\nCalls `{_line(call.name).replace('`', '')}`:\n\n{_code(call.arguments)}\n"


def _code(text: str) -> str:
    """Fenced by more marks than stand together in it."""
    fence = "`" * max(3, 1 + max((len(found) for found in _FENCE.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())


_time = partial(at, to="seconds")
