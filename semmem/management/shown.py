"""Memories as JSON, and the shapes of answers: what a route returns is checked against them, and described by them.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of shapes.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict  # pydantic does not read typing's before Python 3.12

from semmem.lifecycle.erasure import Receipt
from semmem.memory import Memory, MemoryStatus, MemoryType
from semmem.ports.storable import shallow

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""RFC 3339, UTC."""


class SourceShown(TypedDict):
    """Where a memory is from."""

    role: str
    session: str
    turn: str | None
    request_id: str | None
    time: Time | None


class MemoryShown(TypedDict):
    """A memory. ``access_count``: how often it was put into a prompt; in a list with figures."""

    id: str
    version: int
    type: MemoryType
    content: str
    user_id: str
    project_id: str | None
    agent_id: str | None
    session_id: str | None
    source: SourceShown
    key: str | None
    metadata: dict[str, Any]
    importance: float
    status: MemoryStatus
    created_at: Time
    updated_at: Time
    occurred_at: Time | None
    expires_at: Time | None
    access_count: NotRequired[int]


class DeletedShown(TypedDict):
    """What was forgotten. ``users``: of how many, where it was everybody. ``purged`` and ``purge_seconds``: with
    purge=true; False where some of it stays in files until a server compacts them."""

    success: Literal[True]
    message: str
    deleted: int
    receipt: Receipt
    users: NotRequired[int]
    purged: NotRequired[bool]
    purge_seconds: NotRequired[float]


def shown(memory: Memory) -> MemoryShown:
    """A memory as JSON; times are RFC 3339, UTC."""
    return {
        "id": memory.id,
        "version": memory.version,
        "type": memory.type,
        "content": memory.content,
        "user_id": memory.user,
        "project_id": memory.project,
        "agent_id": memory.agent,
        "session_id": memory.session,
        "source": {
            "role": memory.source.role,
            "session": memory.source.session,
            "turn": memory.source.turn,
            "request_id": memory.source.request_id,
            "time": time_shown(memory.source.time or None),
        },
        "key": memory.key,
        "metadata": shallow(memory.metadata),
        "importance": memory.importance,
        "status": memory.status,
        "created_at": at(memory.created_at),
        "updated_at": at(memory.updated_at),
        "occurred_at": time_shown(memory.occurred_at),
        "expires_at": time_shown(memory.expires_at),
    }


def time_shown(seconds: float | None) -> str | None:
    """RFC 3339, UTC, to the millisecond; None for none."""
    return None if seconds is None else at(seconds)


def at(seconds: float) -> str:
    """RFC 3339, UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
