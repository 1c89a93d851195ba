"""Memories of everybody, for an administrator, a page at a time: user by user, by name, and of each the newest first.

A cursor says behind which memory, or behind which user, it goes on: a page costs reading the users on it, however many
were before them, and what is written or erased meanwhile moves nobody else's memories.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import Act, Denied
from semmem.management.api import LIMIT_DEFAULT, LIMIT_MAX, Limit
from semmem.management.door import CALLER
from semmem.management.listing import ROWS_MAX, BadCursor, Place, cursor_of, place_of, place_told
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import MemoryShown, shown
from semmem.memory import Memory, Scope
from semmem.ports.housekeeping import KnownUsers
from semmem.ports.store import Store

USERS_READ_MAX = 50
"""On one page, which is short where they have little."""


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


CURSOR_CHARS_MAX = 8192
"""A name's characters are written as six, and a third is added by base64."""


class EverybodysShown(TypedDict):
    """``users``: of how many there may be something here. ``next_cursor``: where the next page begins; null where this
    is the last."""

    memories: list[MemoryShown]
    users: int
    limit: int
    next_cursor: str | None


def everybodys_routes(store: Store, known: KnownUsers) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/memories", **refuses(*OF_ROLE, "INVALID_CURSOR"))
    async def list_everybodys_memories(
        request: Request,
        limit: Limit = LIMIT_DEFAULT,
        cursor: Annotated[
            str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor of this list")
        ] = None,
    ) -> EverybodysShown:
        """User by user, by name, and of each the newest first. A page may be short, and have a next one."""
        request.scope[CALLER].must(Act.ADMINISTER)
        number = min(limit, LIMIT_MAX)
        try:
            found = await page_of_everybody(store, known, limit=number, cursor=cursor)
        except BadCursor:
            raise Denied(400, "INVALID_CURSOR", "query.cursor: is no next_cursor of this list") from None
        return {
            "memories": [shown(memory) for memory in found.memories],
            "users": found.users,
            "limit": number,
            "next_cursor": found.next_cursor,
        }

    return routes
