"""Routes for copies of everything: backup, export, import, erasures. For an administrator only."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field
from typing_extensions import TypedDict

from semmem.backup import erasures
from semmem.backup.exporting import Exports
from semmem.backup.importing import Imports, WrongLine
from semmem.backup.lines import LINE_BYTES_MAX
from semmem.backup.snapshot import BackupRunning, Snapshots
from semmem.management.access import Act, Denied
from semmem.management.door import CALLER
from semmem.management.fields import Body, UserId
from semmem.management.problems import OF_ROLE, refuses
from semmem.ports.erasure import KnownErasures

LINES_MAX = 500


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
    """Everything that concerns all users."""
    routes = APIRouter()

    @routes.post("/v1/backup", **_stream("application/octet-stream", "The copy"), **refuses(*OF_ROLE, "BACKUP_RUNNING"))
    async def make_backup(request: Request) -> StreamingResponse:
        """A copy of everything, in frames, as ``semmem backup`` reads it."""
        request.scope[CALLER].must(Act.ADMINISTER)
        frames = snapshots.frames()
        try:
            first = await anext(frames)
        except BackupRunning:
            raise Denied(409, "BACKUP_RUNNING", "a backup is being taken already") from None
        return StreamingResponse(_again(first, frames), media_type="application/octet-stream")

    @routes.get("/v1/export", **_stream("application/x-ndjson", "JSON Lines"), **refuses(*OF_ROLE))
    async def export_memories(request: Request, user_id: UserId = None) -> StreamingResponse:
        """Memories with their versions, a line each; of one user, or of everybody."""
        request.scope[CALLER].must(Act.ADMINISTER)
        users = [user_id] if user_id else await exports.users()
        return StreamingResponse(exports.stream(users), media_type="application/x-ndjson")

    @routes.post("/v1/import", response_model=ImportDone, **refuses(*OF_ROLE, "BUSY", "STORE_FULL"))
    async def import_lines(request: Request, told: Lines) -> dict[str, Any]:
        """Lines of an export. Nothing is imported where one of them is wrong."""
        request.scope[CALLER].must(Act.ADMINISTER)
        try:
            done = await imports.take(told.signature, told.lines)
        except WrongLine as wrong:
            raise Denied(400, "INVALID_REQUEST", f"body.lines.{wrong.place}: {wrong}; nothing was imported") from None
        return {"success": True, **done.shown()}

    @routes.get("/v1/erasures", response_model=ErasuresShown, **refuses(*OF_ROLE))
    async def list_erasures(request: Request) -> dict[str, Any]:
        """Marks of what was erased, for a backup that is put back: digests, and nobody's name."""
        request.scope[CALLER].must(Act.ADMINISTER)
        return erasures.told(await known.marks(), clock())

    return routes


async def _again(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
