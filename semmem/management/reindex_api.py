"""Routes for a reindex: begin it or go on, see how far it is, drop what is kept. For an operator: no content is shown.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from semmem.management.access import Act
from semmem.management.api import May
from semmem.management.door import CALLER
from semmem.reindex.reindexing import Reindexing


class Asked(BaseModel):
    """``force``: every vector anew, also of the same model. ``limit``: embed at most so many, then pause."""

    model_config = ConfigDict(extra="forbid")

    force: bool = False
    limit: int | None = Field(default=None, ge=1, le=2**31 - 1)


def reindex_routes(reindexing: Reindexing, _: May) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/memory/reindex")
    async def how_far(request: Request) -> dict[str, Any]:
        request.scope[CALLER].must(Act.OPERATE)
        return await reindexing.status()

    @routes.post("/v1/memory/reindex", status_code=202)
    async def begin(request: Request, asked: Asked | None = None) -> dict[str, Any]:
        request.scope[CALLER].must(Act.OPERATE)
        asked = asked or Asked()
        await reindexing.start(force=asked.force, limit=asked.limit)
        return await reindexing.status()

    @routes.delete("/v1/memory/reindex")
    async def drop(request: Request) -> dict[str, Any]:
        """The former collections; with them goes the way back."""
        request.scope[CALLER].must(Act.OPERATE)
        return {"success": True, "dropped": await reindexing.drop_former()}

    return routes
