"""Routes for what is of everybody, for an administrator only: memories of all users, backup, export, import, erasures.

Memories are listed a page at a time: user by user, by name, and of each the newest first. A cursor says behind which
memory, or behind which user, it goes on: a page costs reading the users on it, however many were before them, and what
is written or erased meanwhile moves nobody else's memories.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field
from typing_extensions import TypedDict

from semmem.backup import erasures
from semmem.backup.exporting import Exports
from semmem.backup.importing import Imports, WrongLine
from semmem.backup.lines import LINE_BYTES_MAX
from semmem.backup.snapshot import BackupRunning, Snapshots
from semmem.management.access import Act
from semmem.management.problems import Denied
from semmem.management.routes import LIMIT_DEFAULT, LIMIT_MAX, Body, Limit, UserId, needs
from semmem.management.shown import (
    ROWS_MAX,
    MemoryShown,
    Place,
    as_shown,
    bad_cursor,
    cursor_of,
    place_of,
    place_told,
    shown,
)
from semmem.memory import Memory, Scope
from semmem.ports.erasure import KnownErasures
from semmem.ports.housekeeping import KnownUsers
from semmem.ports.store import Store

USERS_READ_MAX = 50
"""On one page, which is short where they have little."""
CURSOR_CHARS_MAX = 8192
"""A name's characters are written as six, and a third is added by base64."""
LINES_MAX = 500
"""In one call of an import."""

AfterThis = Annotated[str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor of this list")]


# --- memories --------------------------------------------------------------------------------------------------------


class EverybodysShown(TypedDict):
    """``users``: of how many there may be something here. ``next_cursor``: where the next page begins; null where this
    is the last."""

    memories: list[MemoryShown]
    users: int
    limit: int
    next_cursor: str | None


def everybodys_routes(store: Store, known: KnownUsers) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/memories", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "INVALID_CURSOR"))
    async def list_everybodys_memories(limit: Limit = LIMIT_DEFAULT, cursor: AfterThis = None) -> EverybodysShown:
        """User by user, by name, and of each the newest first. A page may be short, and have a next one."""
        return await page_of_everybody(store, known, limit=min(limit, LIMIT_MAX), cursor=cursor)

    return routes


async def page_of_everybody(store: Store, known: KnownUsers, *, limit: int, cursor: str | None) -> EverybodysShown:
    """At most ``limit``, and fewer where the page's users have fewer. Raises Denied, StoreError and JournalError."""
    user, after = ("", None) if cursor is None else _read(cursor)
    others = await known.users_after(user, limit=USERS_READ_MAX)
    found: list[Memory] = []
    names = [*([user] if after is not None else []), *others]
    looked_at, behind = len(names), _behind(names[-1], None) if len(others) == USERS_READ_MAX else None
    for number, name in enumerate(names, 1):
        memories = await store.list(Scope(name), limit=ROWS_MAX, vectors=False)
        rest = [one for one in memories if name != user or after is None or place_of(one) > after]
        taken = rest[: limit - len(found)]
        found += taken
        if len(found) == limit and (len(taken) < len(rest) or number < len(names)):
            looked_at, behind = number, _behind(name, found[-1] if len(taken) < len(rest) else None)
            break
    return {"memories": [shown(one) for one in found], "users": looked_at, "limit": limit, "next_cursor": behind}


def _behind(user: str, memory: Memory | None) -> str:
    told = [user] if memory is None else [user, memory.created_at, memory.id]
    return cursor_of(json.dumps(told))


def _read(cursor: str) -> tuple[str, Place | None]:
    try:
        told = json.loads(place_told(cursor))
    except (Denied, ValueError, RecursionError):
        raise bad_cursor("this list") from None
    match told:
        case [str(user)]:
            return user, None
        case [str(user), float(created_at), str(memory_id)]:
            return user, (-created_at, memory_id)
    raise bad_cursor("this list")


# --- copies ----------------------------------------------------------------------------------------------------------


class Lines(Body):
    """Lines of an export, each as text, and the signature of the model that their vectors are of."""

    signature: str = Field(default="", max_length=1024)
    lines: list[Annotated[str, Field(max_length=LINE_BYTES_MAX)]] = Field(max_length=LINES_MAX)


class ImportDone(TypedDict):
    """As Imported says."""

    success: Literal[True]
    imported: int
    updated: int
    unchanged: int
    erased: int
    versions: int
    over_quota: int
    conflicts: list[int]


class MarkShown(TypedDict):
    """Digests of names, the empty text for what was left open, and the time until when. ``conversation``: the id of
    one that was removed, in the place of names."""

    scope: tuple[str, str, str, str]
    at: float
    memory: str
    turn: str
    conversation: NotRequired[str]


class ErasuresShown(TypedDict):
    """``erasures``: the number of the format. ``taken_at``: seconds. ``digest``: SHA-256 of the marks."""

    erasures: int
    taken_at: float
    marks: list[MarkShown]
    digest: str


def _stream(media_type: str, what: str) -> dict[str, Any]:
    """What a route is declared with that answers with a stream."""
    answer = {"description": what, "content": {media_type: {"schema": {"type": "string"}}}}
    return {"response_class": StreamingResponse, "responses": {200: answer}}


def backup_routes(
    snapshots: Snapshots, exports: Exports, imports: Imports, known: KnownErasures, clock: Callable[[], float]
) -> APIRouter:
    routes = APIRouter()

    @routes.post(
        "/v1/backup",
        **_stream("application/octet-stream", "The copy"),
        **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "BACKUP_RUNNING"),
    )
    async def make_backup() -> StreamingResponse:
        """A copy of everything, in frames, as ``semmem backup`` reads it."""
        frames = snapshots.frames()
        try:
            first = await anext(frames)
        except BackupRunning:
            raise Denied("BACKUP_RUNNING", "a backup is being taken already") from None
        return StreamingResponse(_again(first, frames), media_type="application/octet-stream")

    @routes.get(
        "/v1/export", **_stream("application/x-ndjson", "JSON Lines"), **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE")
    )
    async def export_memories(user_id: UserId = None) -> StreamingResponse:
        """Memories with their versions, a line each; of one user, or of everybody."""
        users = [user_id] if user_id else await exports.everybody.users()
        return StreamingResponse(exports.stream(users), media_type="application/x-ndjson")

    @routes.post("/v1/import", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "BUSY", "STORE_FULL"))
    async def import_lines(told: Lines) -> ImportDone:
        """Lines of an export. Nothing is imported where one of them is wrong."""
        try:
            done = await imports.take(told.signature, told.lines)
        except WrongLine as wrong:
            raise Denied("INVALID_REQUEST", f"body.lines.{wrong.place}: {wrong}; nothing was imported") from None
        return as_shown(ImportDone, done, success=True)

    @routes.get("/v1/erasures", response_model=ErasuresShown, **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def list_erasures() -> dict[str, Any]:
        """Marks of what was erased, for a backup that is put back: digests, and nobody's name."""
        return erasures.told(await known.marks(), clock())

    return routes


async def _again(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
