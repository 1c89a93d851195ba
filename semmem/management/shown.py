"""Memories as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from semmem.memory import Memory
from semmem.ports.storable import shallow


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
        "metadata": shallow(memory.metadata),
        "importance": memory.importance,
        "status": memory.status,
        "created_at": time_shown(memory.created_at),
        "updated_at": time_shown(memory.updated_at),
        "occurred_at": time_shown(memory.occurred_at),
        "expires_at": time_shown(memory.expires_at),
    }


def time_shown(seconds: float | None) -> str | None:
    """RFC 3339, UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
