"""Memories as JSON, and the shapes of answers: what a route returns is checked against them, and described by them.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of shapes.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast, get_args, get_origin

from pydantic import WithJsonSchema
from typing_extensions import (  # pydantic does not read typing's before Python 3.12
    TypedDict,
    get_type_hints,
    is_typeddict,
)

from semmem.lifecycle.erasure import Receipt
from semmem.memory import Memory, MemoryStatus, MemoryType
from semmem.ports.storable import shallow

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""RFC 3339, UTC."""
ExactTime = Annotated[str, "as exact as it is known"]
"""The same, where milliseconds would not tell one from another."""
NullIfEmpty = Annotated[str | None, "null for an empty text"]

ATTRIBUTES = {
    "user_id": "user",
    "project_id": "project",
    "agent_id": "agent",
    "session_id": "session",
    "tool_call_id": "answers",
    "tool_calls": "calls",
    "response_id": "answer_id",
    "in_prompt": "shown",
    "memories": "of",
    "summary": "content",
    "refused": "reason",
}
"""What the API calls otherwise than what is shown, where that has no attribute of the API's name."""


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


Shape = TypeVar("Shape")


def as_shown(shape: type[Shape], of: object, **more: object) -> Shape:
    """What a shape needs, each member from ``more``, or else from the attribute of this name (see ATTRIBUTES), of what
    is shown or of its scope. Seconds become times, and what a member's own shape is for is shown by it."""
    told = {}
    for name, show in _members(cast(Any, shape)):
        told[name] = show(more[name] if name in more else _attribute(of, name))
    return cast(Shape, told)


def _attribute(of: Any, name: str) -> Any:
    if hasattr(of, name):
        return getattr(of, name)
    name = ATTRIBUTES.get(name, name)
    return getattr(of if hasattr(of, name) else of.scope, name)


Show = Callable[[Any], Any]


@cache
def _members(shape: Any) -> tuple[tuple[str, Show], ...]:
    """The required ones of a shape, and how each is shown."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple((name, _how(hint)) for name, hint in hints.items() if name in shape.__required_keys__)


def _how(hint: Any) -> Show:
    if hint in (Time, Time | None):
        return lambda value: at(value) if isinstance(value, float | int) else value
    if hint == ExactTime:
        return partial(at, to="auto")
    if hint == NullIfEmpty:
        return lambda value: value or None
    if is_typeddict(hint):
        show: Show = shown if hint is MemoryShown else partial(as_shown, hint)
        return lambda value: value if isinstance(value, dict) else show(value)
    if get_origin(hint) is list:
        each = _how(get_args(hint)[0])
        return lambda value: [each(one) for one in value]
    return lambda value: value


def log_odds(logit: float | None) -> float | None:
    """Null where nothing finite is known."""
    return round(logit, 3) if logit is not None and math.isfinite(logit) else None


def shown(memory: Memory) -> MemoryShown:
    source = as_shown(SourceShown, memory.source, time=memory.source.time or None)
    return as_shown(MemoryShown, memory, source=source, metadata=shallow(memory.metadata))


def at(seconds: float, *, to: str = "milliseconds") -> str:
    """RFC 3339, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=to).replace("+00:00", "Z")
