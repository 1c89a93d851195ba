"""Recorded conversations as the API shows them."""

from __future__ import annotations

from datetime import UTC, datetime

from typing_extensions import TypedDict

from semmem.ports.conversations import ConversationFacets, KeptConversation, KeptMessage, Match


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
    created_at: str
    updated_at: str


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
    """``cut``: it was longer than is kept. ``model_asked``: what the request named; ``model``: what answered."""

    id: str
    role: str
    content: str
    at: str
    cut: bool
    tool_call_id: str | None
    tool_calls: list[CallShown]
    model_asked: str | None
    model: str | None
    backend: str | None
    tokens_in: int | None
    tokens_out: int | None
    response_id: str | None
    finish_reason: str | None


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
    at: str
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


def shown_conversation(kept: KeptConversation) -> ConversationShown:
    return {
        "id": kept.id,
        "user_id": kept.scope.user,
        "project_id": kept.scope.project,
        "agent_id": kept.scope.agent,
        "session_id": kept.scope.session,
        "title": kept.title,
        "tags": list(kept.tags),
        "messages": kept.messages,
        "tokens_in": kept.tokens_in,
        "tokens_out": kept.tokens_out,
        "created_at": _time(kept.created_at),
        "updated_at": _time(kept.updated_at),
    }


def shown_message(message: KeptMessage) -> MessageShown:
    return {
        "id": message.id,
        "role": message.role.value,
        "content": message.content,
        "at": _time(message.at),
        "cut": message.cut,
        "tool_call_id": message.answers or None,
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
        "model_asked": message.model_asked or None,
        "model": message.model or None,
        "backend": message.backend or None,
        "tokens_in": message.tokens_in,
        "tokens_out": message.tokens_out,
        "response_id": message.answer_id or None,
        "finish_reason": message.finish_reason or None,
    }


def shown_match(match: Match, cursor: str) -> MatchShown:
    return {"id": match.id, "role": match.role.value, "at": _time(match.at), "cursor": cursor}


def shown_facets(found: ConversationFacets) -> FacetsShown:
    return {
        "projects": [{"project_id": name, "conversations": number} for name, number in found.projects],
        "tags": [{"tag": tag, "conversations": number} for tag, number in found.tags],
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
