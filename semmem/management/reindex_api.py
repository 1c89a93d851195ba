"""Routes for a reindex: begin it or go on, see how far it is, drop what is kept. For an operator: no content."""

from typing import Any, Literal, NotRequired

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.door import CALLER
from semmem.management.fields import Body, Count, Switch
from semmem.management.problems import OF_ROLE, refuses
from semmem.reindex.reindexing import Reindexing


class ReindexAsked(Body):
    """``force``: every vector anew, also of the same model. ``limit``: embed at most so many, then pause."""

    force: Switch = False
    limit: Count | None = Field(default=None, ge=1, le=2**31 - 1)


class ReindexShown(TypedDict):
    """``state``: ``none`` where there is nothing to do. ``collection``: the one that is read. The rest where a reindex
    is under way, or the collection of before is kept: users and memories that are done, of how many."""

    state: str
    collection: NotRequired[str]
    signature: NotRequired[str]
    source: NotRequired[str]
    target: NotRequired[str]
    users: NotRequired[int]
    users_done: NotRequired[int]
    memories_done: NotRequired[int]
    embedded: NotRequired[int]
    changed_at: NotRequired[float]


class FormerDropped(TypedDict):
    """``dropped``: how many collections."""

    success: Literal[True]
    dropped: int


def reindex_routes(reindexing: Reindexing) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/memory/reindex", response_model=ReindexShown, **refuses(*OF_ROLE))
    async def get_reindex(request: Request) -> dict[str, Any]:
        """How far it is."""
        request.scope[CALLER].must(Act.OPERATE)
        return await reindexing.status()

    @routes.post("/v1/memory/reindex", status_code=202, response_model=ReindexShown, **refuses(*OF_ROLE, "STORE_FULL"))
    async def begin_reindex(request: Request, asked: ReindexAsked | None = None) -> dict[str, Any]:
        """Begin, or go on."""
        request.scope[CALLER].must(Act.OPERATE)
        asked = asked or ReindexAsked()
        await reindexing.start(force=asked.force, limit=asked.limit)
        return await reindexing.status()

    @routes.delete("/v1/memory/reindex", **refuses(*OF_ROLE, "BUSY"))
    async def drop_former(request: Request) -> FormerDropped:
        """The former collections; with them goes the way back."""
        request.scope[CALLER].must(Act.OPERATE)
        return {"success": True, "dropped": await reindexing.drop_former()}

    return routes
