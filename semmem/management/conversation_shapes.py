"""What is asked and answered about recorded conversations: parameters and bodies of their routes, and shapes."""

from typing import Annotated, Any, Self

from fastapi import Path, Query
from pydantic import AfterValidator, AwareDatetime, Field, model_validator
from typing_extensions import TypedDict

from semmem.management.routes import NO_CONTROLS, Body, Count, Moment, NewUser, ScopeName, Switch
from semmem.management.shown import CURSOR_CHARS_MAX, ExactTime, NullIfEmpty
from semmem.memory import Role
from semmem.ports.conversations import SHOWN_MAX

LIST_MAX, MESSAGES_MAX, MATCHES_MAX = 200, 500, 500
"""In one page."""
IMPORTED_MAX = 1000
"""Messages in one call; the body's own limits hold as well."""
TITLE_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX = 200, 64, 20
WHOLE: dict[str, Any] = {
    "description": "The whole conversation",
    "content": {"text/markdown": {"schema": {"type": "string"}}},
}


def _folded(tag: str | None) -> str | None:
    return None if tag is None else " ".join(tag.split()).casefold()


def _tag(told: str) -> str:
    tag = _folded(told)
    if not tag or len(tag) > TAG_CHARS_MAX:
        raise ValueError("is empty or too long")
    return tag


Name = Annotated[str, Field(max_length=200, pattern=NO_CONTROLS)]
Tokens = Annotated[Count, Field(ge=0, le=10**9)]
Line = Annotated[str, Field(max_length=TITLE_CHARS_MAX, pattern=NO_CONTROLS)]
Tag = Annotated[str, Field(min_length=1, max_length=TAG_CHARS_MAX, pattern=NO_CONTROLS), AfterValidator(_tag)]
Tags = Annotated[list[Tag], Field(max_length=TAGS_MAX)]
ConversationId = Annotated[str, Path(max_length=256)]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor")]
Words = Query(alias="q", min_length=1, max_length=500, description="words; all of them in the title or in one message")
Text = Annotated[str | None, Words]
OfTag = Annotated[str | None, Query(alias="tag", min_length=1, max_length=TAG_CHARS_MAX), AfterValidator(_folded)]
Since = Annotated[AwareDatetime | None, Query(description="last added to then or later")]
Until = Annotated[AwareDatetime | None, Query(description="begun then or earlier")]
ListLimit = Annotated[int, Query(ge=1, le=LIST_MAX)]
MessageWords = Annotated[str, Query(alias="q", min_length=1, max_length=500, description="words; all of them in one")]
MessagesLimit = Annotated[int, Query(ge=1, le=MESSAGES_MAX)]
MatchesLimit = Annotated[int, Query(ge=1, le=MATCHES_MAX)]


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
