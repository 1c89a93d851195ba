"""Memories as JSON, and the shapes of answers: what a route returns is checked against them, and described by them.
Which of a user's memories a list shows, in which part of it, and figures over all of them.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of shapes.
"""

import base64
import binascii
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from semmem.management.problems import Denied
from semmem.memory import TOPIC, Memory, MemoryStatus, MemoryType
from semmem.ports.memory_records import Uses
from semmem.ports.storable import shallow
from semmem.retrieval.context import estimate_tokens

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


# --- lists and their pages -------------------------------------------------------------------------------------------

CURSOR_CHARS_MAX = 2048

PROJECTS_MAX = 200
"""That figures name."""

ROWS_MAX = 2**31 - 1
"""More memories than any user has: stores bound what one list may read."""

Place = tuple[float, str]
"""Of a memory among those of its user."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """``text``: what a content or a key must contain, in whatever case. ``cursor``: go on after what it stands for,
    whatever was written since; it beats ``offset``. None means any."""

    limit: int = 20
    offset: int = 0
    status: MemoryStatus | None = None
    topic: str | None = None
    text: str | None = None
    cursor: str | None = None

    def takes(self, memory: Memory) -> bool:
        """Whether the memory is among what is asked for."""
        text = (self.text or "").casefold()
        return (
            (self.status is None or memory.status is self.status)
            and (self.topic is None or memory.metadata.get(TOPIC) == self.topic.strip().casefold())
            and (text in memory.content.casefold() or text in (memory.key or "").casefold())
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures over a scope's memories. ``hit_rate``: the share of active ones that were put into a prompt at least
    once, from 0 to 1. ``tokens``: estimated, of all contents together. ``by_project``: the most frequent ones, first
    those with the most."""

    total: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    by_project: Mapping[str, int]
    tokens: int
    hit_rate: float


def cut(memories: Sequence[Memory], wanted: Wanted) -> tuple[Sequence[Memory], int, str | None]:
    """One page of memories that are given newest first, as stores list them; how many all pages have, and where to go
    on, None when this is the last. Raises Denied."""
    found = [memory for memory in memories if wanted.takes(memory)]
    rest = found[wanted.offset :]
    if wanted.cursor is not None:
        created_at, memory_id = moment_told(wanted.cursor)
        rest = [memory for memory in found if place_of(memory) > (-created_at, memory_id)]
    shown = rest[: wanted.limit]
    following = moment_cursor(shown[-1].created_at, shown[-1].id) if 0 < len(shown) < len(rest) else None
    return shown, len(found), following


def cursor_of(place: str) -> str:
    """Where a list goes on, as a caller gives it back."""
    return base64.urlsafe_b64encode(place.encode("utf-8", "surrogatepass")).decode()


def place_told(cursor: str) -> str:
    """What ``cursor_of`` was given. Raises Denied."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        raise bad_cursor() from None


def moment_cursor(at: float, name: str) -> str:
    """Behind what was made or changed at a time and has this id."""
    return cursor_of(f"{at!r} {name}")


def moment_told(cursor: str) -> tuple[float, str]:
    """What ``moment_cursor`` was given. Raises Denied."""
    told, _, name = place_told(cursor).partition(" ")
    try:
        at = float(told)
    except ValueError:
        raise bad_cursor() from None
    if not name or not math.isfinite(at):
        raise bad_cursor()
    return at, name


def bad_cursor(of: str = "a list") -> Denied:
    """It was not made here."""
    return Denied("INVALID_CURSOR", f"query.cursor: is no next_cursor of {of}")


def stats(memories: Sequence[Memory], uses: Mapping[str, Uses]) -> Stats:
    active = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
    used = sum(1 for memory in active if uses.get(memory.id, Uses()).count)
    return Stats(
        total=len(memories),
        by_type=dict(Counter(str(memory.type) for memory in memories)),
        by_status=dict(Counter(str(memory.status) for memory in memories)),
        by_project=dict(Counter(memory.project for memory in memories if memory.project).most_common(PROJECTS_MAX)),
        tokens=sum(estimate_tokens(memory.content) for memory in memories),
        hit_rate=used / len(active) if active else 0.0,
    )


def place_of(memory: Memory) -> Place:
    """In the order of every list: the newest first, ties by id."""
    return -memory.created_at, memory.id
