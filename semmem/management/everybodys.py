"""Memories of everybody, a page at a time: user by user, by name, and of each the newest first.

A cursor says behind which memory, or behind which user, it goes on: a page costs reading the users on it, however many
were before them, and what is written or erased meanwhile moves nobody else's memories.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.management.listing import ROWS_MAX, BadCursor, Place, cursor_of, place_of, place_told
from semmem.memory import Memory, Scope
from semmem.ports.store import Store

USERS_READ_MAX = 50
"""On one page, which is short where they have little."""


class KnownUsers(Protocol):
    """Raises JournalError."""

    async def users_after(self, user: str, *, limit: int) -> list[str]:
        """Whoever may have memories, by name."""


@dataclass(frozen=True, slots=True)
class Everybodys:
    """``users``: how many were looked at. ``next_cursor``: where to go on; None when this is the last."""

    memories: Sequence[Memory]
    users: int
    next_cursor: str | None


async def page_of_everybody(store: Store, known: KnownUsers, *, limit: int, cursor: str | None) -> Everybodys:
    """At most ``limit``, and fewer where the page's users have fewer. Raises BadCursor, StoreError and JournalError."""
    user, after = ("", None) if cursor is None else _read(cursor)
    others = await known.users_after(user, limit=USERS_READ_MAX)
    found: list[Memory] = []
    names = [*([user] if after is not None else []), *others]
    for number, name in enumerate(names, 1):
        memories = await store.list(Scope(name), limit=ROWS_MAX, vectors=False)
        rest = [one for one in memories if name != user or after is None or place_of(one) > after]
        taken = rest[: limit - len(found)]
        found += taken
        if len(found) == limit and (len(taken) < len(rest) or number < len(names)):
            return Everybodys(found, number, _behind(name, found[-1] if len(taken) < len(rest) else None))
    more = len(others) == USERS_READ_MAX
    return Everybodys(found, len(names), _behind(names[-1], None) if more else None)


def _behind(user: str, memory: Memory | None) -> str:
    told = [user] if memory is None else [user, memory.created_at, memory.id]
    return cursor_of(json.dumps(told))


def _read(cursor: str) -> tuple[str, Place | None]:
    try:
        told = json.loads(place_told(cursor))
    except (ValueError, RecursionError):
        raise BadCursor from None
    match told:
        case [str(user)]:
            return user, None
        case [str(user), float(created_at), str(memory_id)]:
            return user, (-created_at, memory_id)
    raise BadCursor
