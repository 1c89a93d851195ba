"""Memories as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from semmem.memory import Memory
from semmem.storable import METADATA_DEPTH_MAX

TOO_DEEP = "(nested too deep)"


def shown(memory: Memory) -> dict[str, Any]:
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
        "metadata": _shallow(memory.metadata, METADATA_DEPTH_MAX),
        "importance": memory.importance,
        "status": memory.status,
        "created_at": time_shown(memory.created_at),
        "updated_at": time_shown(memory.updated_at),
        "occurred_at": time_shown(memory.occurred_at),
        "expires_at": time_shown(memory.expires_at),
    }


def _shallow(value: Any, depth: int) -> Any:
    """The value without what lies deeper: an answer must not fail for one memory of an earlier version."""
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {name: _shallow(child, depth - 1) for name, child in value.items()}
    return [_shallow(child, depth - 1) for child in value]


def time_shown(seconds: float | None) -> str | None:
    """RFC 3339, UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
