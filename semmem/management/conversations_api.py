"""Routes for recorded conversations: list, search, read, import, title, tag, remove, export."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, AwareDatetime, Field, model_validator
from typing_extensions import TypedDict

from semmem.conversations.transcript import markdown
from semmem.management.access import Act
from semmem.management.conversations import Conversations, NewMessage, around
from semmem.management.listing import CURSOR_CHARS_MAX
from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import (
    NO_CONTROLS,
    Body,
    NewUser,
    Owner,
    Reader,
    ScopeName,
    SessionId,
    UserId,
    existing,
    one_or_everybody,
    refuses,
    scope_in,
)
from semmem.management.shown import ExactTime, NullIfEmpty, as_shown
from semmem.ports.conversations import Wanted

LIST_MAX, MESSAGES_MAX, MATCHES_MAX = 200, 500, 500
"""In one page."""
FACETS_MAX = 200
"""Projects, and tags, in one answer."""
IMPORTED_MAX = 1000
"""Messages in one call; the body's own limits hold as well."""
TITLE_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX = 200, 64, 20
MARKDOWN = "text/markdown; charset=utf-8"
WHOLE: dict[str, Any] = {
    "description": "The whole conversation",
    "content": {"text/markdown": {"schema": {"type": "string"}}},
}


def _tag(told: str) -> str:
    tag = " ".join(told.split()).casefold()
    if not tag or len(tag) > TAG_CHARS_MAX:
        raise ValueError("is empty or too long")
    return tag


Line = Annotated[str, Field(max_length=TITLE_CHARS_MAX, pattern=NO_CONTROLS)]
Tag = Annotated[str, Field(min_length=1, max_length=TAG_CHARS_MAX, pattern=NO_CONTROLS), AfterValidator(_tag)]
Tags = Annotated[list[Tag], Field(max_length=TAGS_MAX)]
ConversationId = Annotated[str, Path(max_length=256)]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor")]
Words = Query(alias="q", min_length=1, max_length=500, description="words; all of them in the title or in one message")
Text = Annotated[str | None, Words]
OfTag = Annotated[str | None, Query(alias="tag", min_length=1, max_length=TAG_CHARS_MAX)]
Since = Annotated[AwareDatetime | None, Query(description="last added to then or later")]
Until = Annotated[AwareDatetime | None, Query(description="begun then or earlier")]
ListLimit = Annotated[int, Query(ge=1, le=LIST_MAX)]
MessageWords = Annotated[str, Query(alias="q", min_length=1, max_length=500, description="words; all of them in one")]
MessagesLimit = Annotated[int, Query(ge=1, le=MESSAGES_MAX)]


class NewConversation(Body):
    """Without a title it has the first line of the user's first words. Without messages it is one that a request of
    the Responses API may name as its ``conversation``; its session is then called like it."""

    user_id: NewUser = None
    project_id: ScopeName = None
    agent_id: ScopeName = None
    session_id: ScopeName = None
    title: Line | None = None
    tags: Tags = Field(default_factory=list)
    messages: list[NewMessage] = Field(default_factory=list, max_length=IMPORTED_MAX)

    @model_validator(mode="after")
    def _names_no_session(self) -> Self:
        if self.session_id is not None and not self.messages:
            raise ValueError("a conversation without messages has a session of its own: name none")
        return self


class ChangedConversation(Body):
    """What is not named stays as it is."""

    title: Line | None = None
    tags: Tags | None = None


# --- what is answered ------------------------------------------------------------------------------------------------


class ConversationShown(TypedDict):
    """``tokens_in`` and ``tokens_out``: as far as providers counted them."""

    id: str
    user_id: str
    project_id: str | None
    agent_id: str | None
    session_id: str | None
    title: str
    tags: list[str]
    messages: int
    tokens_in: int
    tokens_out: int
    created_at: ExactTime
    updated_at: ExactTime


class ConversationsShown(TypedDict):
    """``recording``: whether what is said is recorded."""

    conversations: list[ConversationShown]
    next_cursor: str | None
    recording: bool


class CallShown(TypedDict):
    """``arguments`` as the model wrote them."""

    id: str
    name: str
    arguments: str


class MessageShown(TypedDict):
    """``cut``: it was longer than is kept. ``in_prompt``: the ids of the memories and conversations that the request of
    an answer was shown. ``model_asked``: what the request named; ``model``: what answered."""

    id: str
    role: str
    content: str
    at: ExactTime
    cut: bool
    in_prompt: list[str]
    tool_call_id: NullIfEmpty
    tool_calls: list[CallShown]
    model_asked: NullIfEmpty
    model: NullIfEmpty
    backend: NullIfEmpty
    tokens_in: int | None
    tokens_out: int | None
    response_id: NullIfEmpty
    finish_reason: NullIfEmpty


class ConversationRead(TypedDict):
    """A page of its messages, oldest first. ``previous_cursor``: of the page before it; null where this is the
    first."""

    conversation: ConversationShown
    messages: list[MessageShown]
    previous_cursor: str | None
    next_cursor: str | None


class MatchShown(TypedDict):
    """A message that was found. ``cursor``: of a page of the conversation with this message in its middle."""

    id: str
    role: str
    at: ExactTime
    cursor: str


class MatchesShown(TypedDict):
    """The newest ones, newest first. ``total``: how many there are."""

    matches: list[MatchShown]
    total: int


class ProjectCount(TypedDict):
    project_id: str
    conversations: int


class TagCount(TypedDict):
    tag: str
    conversations: int


class FacetsShown(TypedDict):
    """Those that most conversations have first."""

    projects: list[ProjectCount]
    tags: list[TagCount]


class WholeConversation(TypedDict):
    """All of its messages, oldest first."""

    conversation: ConversationShown
    messages: list[MessageShown]


class ConversationDeleted(TypedDict):
    """``messages``: how many went."""

    success: bool
    messages: int


class CountsShown(TypedDict):
    """``users``: how many have any."""

    conversations: int
    messages: int
    users: int
    tokens_in: int
    tokens_out: int
    recording: bool


# --- routes ----------------------------------------------------------------------------------------------------------


def conversation_routes(conversations: Conversations) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/conversations", **refuses(*OF_USER, "INVALID_CURSOR"))
    async def list_conversations(
        scope: Reader,
        session_id: SessionId = None,
        tag: OfTag = None,
        text: Text = None,
        since: Since = None,
        until: Until = None,
        limit: ListLimit = 20,
        cursor: Cursor = None,
    ) -> ConversationsShown:
        """Those last added to first. A search reads the user's newest messages."""
        wanted = Wanted(limit, _wanted_tag(tag), since=_seconds(since), until=_seconds(until))
        scope = msgspec.structs.replace(scope, session=session_id)
        found, following = await conversations.page(scope, wanted, text=text, cursor=cursor)
        shown = [as_shown(ConversationShown, kept) for kept in found]
        return {"conversations": shown, "next_cursor": following, "recording": conversations.recording}

    @routes.get("/v1/conversations/counts", **refuses(*OF_USER))
    async def get_counts(request: Request, user_id: UserId = None) -> CountsShown:
        """How many there are: of everybody for an operator, who sees no more; else of one user."""
        found = await conversations.records.conversation_counts(one_or_everybody(request, user_id))
        return as_shown(CountsShown, found, recording=conversations.recording)

    @routes.get("/v1/conversations/facets", **refuses(*OF_USER))
    async def get_facets(scope: Reader) -> FacetsShown:
        """Projects and tags of a user's conversations, with how many have them: of the 10,000 last added to."""
        found = await conversations.facets(scope, limit=FACETS_MAX)
        return {
            "projects": [{"project_id": name, "conversations": number} for name, number in found.projects],
            "tags": [{"tag": tag, "conversations": number} for tag, number in found.tags],
        }

    @routes.post("/v1/conversations", status_code=201, **refuses(*OF_USER, "BUSY"))
    async def create_conversation(request: Request, new: NewConversation) -> ConversationShown:
        """Import one, also where nothing is recorded; or begin one, without messages."""
        scope = scope_in(new, request, Act.WRITE)
        made = await conversations.create(scope, new.messages, title=new.title, tags=list(dict.fromkeys(new.tags)))
        return as_shown(ConversationShown, made)

    @routes.get("/v1/conversations/{conversation_id}", **refuses(*OF_USER, "INVALID_CURSOR"))
    async def get_conversation(
        scope: Reader, conversation_id: ConversationId, limit: MessagesLimit = 100, cursor: Cursor = None
    ) -> ConversationRead:
        """One, with a page of its messages, oldest first."""
        kept = existing(await conversations.get(scope, conversation_id), _missing())
        page = await conversations.messages(scope, kept.id, limit=limit, cursor=cursor)
        return as_shown(ConversationRead, page, conversation=kept)

    @routes.get("/v1/conversations/{conversation_id}/matches", **refuses(*OF_USER))
    async def get_matches(
        scope: Reader,
        conversation_id: ConversationId,
        text: MessageWords,
        limit: Annotated[int, Query(ge=1, le=MATCHES_MAX)] = 100,
    ) -> MatchesShown:
        """Where in a conversation words are: its newest messages that have all of them."""
        kept = existing(await conversations.get(scope, conversation_id), _missing())
        found = await conversations.matches(scope, kept.id, text, limit=limit)
        return as_shown(
            MatchesShown, found, matches=[as_shown(MatchShown, each, cursor=around(each)) for each in found.newest]
        )

    @routes.patch("/v1/conversations/{conversation_id}", **refuses(*OF_USER))
    async def change_conversation(
        scope: Owner, conversation_id: ConversationId, new: ChangedConversation
    ) -> ConversationShown:
        """Another title, other tags."""
        tags = None if new.tags is None else list(dict.fromkeys(new.tags))
        changed = await conversations.change(scope, conversation_id, title=new.title, tags=tags)
        return as_shown(ConversationShown, existing(changed, _missing()))

    @routes.delete("/v1/conversations/{conversation_id}", **refuses(*OF_USER))
    async def delete_conversation(scope: Owner, conversation_id: ConversationId) -> ConversationDeleted:
        """With its messages, and what is still under way of them. Memories that were learnt from it stay."""
        gone = await conversations.forget(scope, conversation_id)
        return {"success": True, "messages": existing(gone, _missing())}

    @routes.get(
        "/v1/conversations/{conversation_id}/export",
        response_model=WholeConversation,
        responses={200: WHOLE},
        **refuses(*OF_USER),
    )
    async def export_conversation(
        scope: Reader,
        conversation_id: ConversationId,
        form: Annotated[Literal["markdown", "json"], Query(alias="format")] = "markdown",
    ) -> Response:
        """All of it in one piece."""
        kept = existing(await conversations.get(scope, conversation_id), _missing())
        messages = await conversations.everything(scope, kept.id)
        if form == "json":
            whole = as_shown(WholeConversation, kept, conversation=kept, messages=messages)
            return Response(json.dumps(whole), media_type="application/json")
        text = "".join(markdown(kept, messages))
        return Response(text.encode("utf-8", "replace"), media_type=MARKDOWN)

    return routes


def _wanted_tag(told: str | None) -> str | None:
    return None if told is None else " ".join(told.split()).casefold()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _missing() -> Denied:
    return Denied("NOT_FOUND", "no such conversation")
