"""Which of a user's memories a list shows, in which part of it, and figures over all of them."""

from __future__ import annotations

import base64
import binascii
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from semmem.management.problems import Denied
from semmem.memory import TOPIC, Memory, MemoryStatus
from semmem.ports.memory_records import Uses
from semmem.retrieval.context import estimate_tokens

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
        return (
            (self.status is None or memory.status is self.status)
            and (self.topic is None or memory.metadata.get(TOPIC) == self.topic.strip().casefold())
            and (self.text is None or self._is_said(memory))
        )

    def _is_said(self, memory: Memory) -> bool:
        """By the content, or by the key under which its caller keeps it."""
        wanted = (self.text or "").casefold()
        return wanted in memory.content.casefold() or wanted in (memory.key or "").casefold()


@dataclass(frozen=True, slots=True)
class Page:
    """``total``: of all pages. ``next_cursor``: where to go on; None when this is the last."""

    memories: Sequence[Memory]
    total: int
    next_cursor: str | None = None


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


def cut(memories: Sequence[Memory], wanted: Wanted) -> Page:
    """One page of memories that are given newest first, as stores list them. Raises Denied."""
    found = [memory for memory in memories if wanted.takes(memory)]
    rest = found[wanted.offset :]
    if wanted.cursor is not None:
        created_at, memory_id = moment_told(wanted.cursor)
        rest = [memory for memory in found if place_of(memory) > (-created_at, memory_id)]
    shown = rest[: wanted.limit]
    following = moment_cursor(shown[-1].created_at, shown[-1].id) if 0 < len(shown) < len(rest) else None
    return Page(shown, len(found), following)


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
