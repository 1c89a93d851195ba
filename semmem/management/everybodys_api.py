"""The route that shows an administrator everybody's memories."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import Act, Denied
from semmem.management.api import LIMIT_DEFAULT, LIMIT_MAX, Limit
from semmem.management.door import CALLER
from semmem.management.everybodys import KnownUsers, page_of_everybody
from semmem.management.listing import BadCursor
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import MemoryShown, shown
from semmem.ports.store import Store

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
