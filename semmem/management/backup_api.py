"""Routes for copies of everything: backup, export, import, erasures. For an administrator only.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from semmem.backup import erasures
from semmem.backup.exporting import Exports
from semmem.backup.importing import Imports, WrongLine
from semmem.backup.lines import LINE_BYTES_MAX
from semmem.backup.snapshot import BackupRunning, Snapshots
from semmem.management.access import Act, Denied
from semmem.management.api import May
from semmem.management.door import CALLER
from semmem.management.fields import UserId
from semmem.ports.erasure import KnownErasures

LINES_MAX = 500


class Lines(BaseModel):
    """Lines of an export, each as text, and the signature of the model that their vectors are of."""

    model_config = ConfigDict(extra="forbid")

    signature: str = Field(default="", max_length=1024)
    lines: list[Annotated[str, Field(max_length=LINE_BYTES_MAX)]] = Field(max_length=LINES_MAX)


def backup_routes(
    snapshots: Snapshots, exports: Exports, imports: Imports, known: KnownErasures, clock: Callable[[], float], _: May
) -> APIRouter:
    """Everything that concerns all users."""
    routes = APIRouter()

    @routes.post("/v1/backup")
    async def backup(request: Request) -> StreamingResponse:
        request.scope[CALLER].must(Act.ADMINISTER)
        frames = snapshots.frames()
        try:
            first = await anext(frames)
        except BackupRunning:
            raise Denied(409, "BACKUP_RUNNING", "a backup is being taken already") from None
        return StreamingResponse(_again(first, frames), media_type="application/octet-stream")

    @routes.get("/v1/export")
    async def export(request: Request, user_id: UserId = None) -> StreamingResponse:
        request.scope[CALLER].must(Act.ADMINISTER)
        users = [user_id] if user_id else await exports.users()
        return StreamingResponse(exports.stream(users), media_type="application/x-ndjson")

    @routes.post("/v1/import")
    async def take(request: Request, told: Lines) -> dict[str, Any]:
        request.scope[CALLER].must(Act.ADMINISTER)
        try:
            done = await imports.take(told.signature, told.lines)
        except WrongLine as wrong:
            raise Denied(400, "INVALID_REQUEST", f"body.lines.{wrong.place}: {wrong}; nothing was imported") from None
        return {"success": True, **done.shown()}

    @routes.get("/v1/erasures")
    async def known_erasures(request: Request) -> dict[str, Any]:
        request.scope[CALLER].must(Act.ADMINISTER)
        return erasures.told(await known.marks(), clock())

    return routes


async def _again(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
