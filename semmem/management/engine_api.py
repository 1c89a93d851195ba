"""Routes for whoever operates semmem: what it runs on, whether that works, and who has memories. No content.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from semmem.management.access import Act
from semmem.management.api import May
from semmem.management.door import CALLER
from semmem.management.fields import USER_CHARS_MAX
from semmem.management.switches import words
from semmem.ports.errors import SemmemError
from semmem.ports.switches import UNSAID
from semmem.request.switches import Switches

USERS_DEFAULT, USERS_MAX = 100, 1000

Tried = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Engine:
    """What the routes ask. ``status``: plain JSON values, none of them of a user. ``parts``: by name, one cheap round
    trip each; raises SemmemError where it fails. ``configuration``: as it is in effect, secrets redacted. ``users``:
    whoever has memories, sorted."""

    status: Callable[[], Mapping[str, Any]]
    parts: Mapping[str, Tried]
    configuration: Callable[[], Mapping[str, Any]]
    users: Callable[[], Awaitable[Sequence[str]]]


def engine_routes(engine: Engine, _: May, *, switches: Switches | None = None) -> APIRouter:
    """Everything that is of no single user. ``switches``: those that requests obey."""
    routes, known = APIRouter(), switches or Switches()

    @routes.get("/v1/status")
    async def get_status(request: Request) -> dict[str, Any]:
        """What semmem runs on, and whether that answered when it was last asked."""
        request.scope[CALLER].must(Act.OPERATE)
        return dict(engine.status())

    @routes.get("/v1/health")
    async def get_health(request: Request) -> dict[str, Any]:
        """A round trip to everything that semmem runs on, now. 200 whatever comes of it: ``working`` says it."""
        request.scope[CALLER].must(Act.OPERATE)
        parts = {name: await _round_trip(tried) for name, tried in engine.parts.items()}
        slowest = max((part["latency_ms"] for part in parts.values()), default=0.0)
        return {"working": all(part["working"] for part in parts.values()), "latency_ms": slowest, "parts": parts}

    @routes.get("/v1/config")
    async def get_configuration(request: Request) -> dict[str, Any]:
        """Every key as it is in effect; of secrets only whether they are set."""
        request.scope[CALLER].must(Act.OPERATE)
        return dict(engine.configuration())

    @routes.get("/v1/users")
    async def list_users(
        request: Request,
        limit: Annotated[int, Query(ge=1)] = USERS_DEFAULT,
        after: Annotated[str | None, Query(max_length=USER_CHARS_MAX, description="go on after this user")] = None,
    ) -> dict[str, Any]:
        """Whoever has memories, or had some, by name; and of those in the page who have memory switches, which."""
        request.scope[CALLER].must(Act.ADMINISTER)
        users = await engine.users()
        number = min(limit, USERS_MAX)
        rest = [user for user in users if after is None or user > after]
        switched = {user: known.of_user(user) for user in rest[:number]} if known.number_set else {}
        shown = {user: words(switch) for user, switch in switched.items() if switch != UNSAID}
        return {"users": rest[:number], "total": len(users), "limit": number, "memory_switches": shown}

    return routes


async def _round_trip(tried: Tried) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        await tried()
        error = None
    except SemmemError as failure:
        error = type(failure).__name__
    return {"working": error is None, "latency_ms": round(1000 * (time.perf_counter() - began), 2), "error": error}
