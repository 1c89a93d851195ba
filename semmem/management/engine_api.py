"""Routes for whoever operates semmem: what it runs on, whether that works, and who has memories. No content."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.door import CALLER
from semmem.management.fields import USER_CHARS_MAX
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.reload_api import ReloadState
from semmem.management.shown import Time
from semmem.management.switch_api import SwitchesShown, words
from semmem.ports.errors import SemmemError
from semmem.ports.switches import UNSAID
from semmem.request.switches import Switches

USERS_DEFAULT, USERS_MAX = 100, 1000

Tried = Callable[[], Awaitable[object]]


class StoreStatus(TypedDict):
    """``hot_users``, ``hot_memories``: kept in process. ``reindex``: a word for how far that is."""

    backend: str
    hot_users: int
    hot_memories: int
    reindex: str


class EmbeddingStatus(TypedDict):
    """``signature``: of the model that vectors are of."""

    source: str
    signature: str
    dimension: int


class JournalStatus(TypedDict):
    """``waiting``: halves of turns that are not written yet."""

    kind: str
    waiting: int


class DeploymentStatus(TypedDict):
    """As configured."""

    replicas: int


class EngineStatus(TypedDict):
    """What semmem runs on. ``components``: whether each answered when it was last asked. ``models``: roles that have a
    language model."""

    version: str
    started_at: Time
    components: dict[str, bool]
    store: StoreStatus
    embedding: EmbeddingStatus
    journal: JournalStatus
    models: list[str]
    rerank: bool
    deployment: DeploymentStatus
    configuration: ReloadState


class RoundTrip(TypedDict):
    """``error``: the kind of failure, null where it works."""

    working: bool
    latency_ms: float
    error: str | None


class HealthShown(TypedDict):
    """``latency_ms``: of the slowest part."""

    working: bool
    latency_ms: float
    parts: dict[str, RoundTrip]


class UsersShown(TypedDict):
    """A page of names. ``total``: of all, where everywhere was looked. ``next_after``: the last one, where there are
    more. ``memory_switches``: of those in the page who have some."""

    users: list[str]
    total: int | None
    limit: int
    next_after: str | None
    memory_switches: dict[str, SwitchesShown]


class KnownAfter(Protocol):
    """Raises JournalError."""

    async def __call__(self, user: str, /, *, limit: int) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """What the routes ask. ``status``: plain JSON values, none of them of a user. ``parts``: by name, one cheap round
    trip each; raises SemmemError where it fails. ``configuration``: as it is in effect, secrets redacted. ``users``:
    whoever has memories in the store or may have some, sorted. ``users_after``: a page of those whom the journal
    knows, by name."""

    status: Callable[[], EngineStatus]
    parts: Mapping[str, Tried]
    configuration: Callable[[], Mapping[str, Any]]
    users: Callable[[], Awaitable[Sequence[str]]]
    users_after: KnownAfter


def engine_routes(engine: Engine, *, switches: Switches | None = None) -> APIRouter:
    """Everything that is of no single user. ``switches``: those that requests obey."""
    routes, known = APIRouter(), switches or Switches()

    @routes.get("/v1/status", **refuses("FORBIDDEN"))
    async def get_status(request: Request) -> EngineStatus:
        """What semmem runs on, and whether that answered when it was last asked."""
        request.scope[CALLER].must(Act.OPERATE)
        return engine.status()

    @routes.get("/v1/health", **refuses("FORBIDDEN"))
    async def get_health(request: Request) -> HealthShown:
        """A round trip to everything that semmem runs on, now. 200 whatever comes of it: ``working`` says it."""
        request.scope[CALLER].must(Act.OPERATE)
        parts = {name: await _round_trip(tried) for name, tried in engine.parts.items()}
        slowest = max((part["latency_ms"] for part in parts.values()), default=0.0)
        return {"working": all(part["working"] for part in parts.values()), "latency_ms": slowest, "parts": parts}

    @routes.get("/v1/config", **refuses("FORBIDDEN"))
    async def get_configuration(request: Request) -> dict[str, Any]:
        """Every key as it is in effect; of secrets only whether they are set."""
        request.scope[CALLER].must(Act.OPERATE)
        return dict(engine.configuration())

    @routes.get("/v1/users", **refuses(*OF_ROLE))
    async def list_users(
        request: Request,
        limit: Annotated[int, Query(ge=1, description=f"more than {USERS_MAX} are not given")] = USERS_DEFAULT,
        after: Annotated[str | None, Query(max_length=USER_CHARS_MAX, description="go on after this user")] = None,
        everywhere: Annotated[
            bool, Query(description="look into the store as well, which reads all of it, and count them")
        ] = False,
    ) -> UsersShown:
        """Whoever has memories, had some, or said what may become one, as far as the journal knows, by name; and of
        those in the page who have memory switches, which."""
        request.scope[CALLER].must(Act.ADMINISTER)
        number = min(limit, USERS_MAX)
        total = None
        if everywhere:
            everybody = await engine.users()
            total = len(everybody)
            rest: Sequence[str] = [user for user in everybody if after is None or user > after]
        else:
            rest = await engine.users_after(after or "", limit=number + 1)
        page = list(rest[:number])
        switched = {user: known.of_user(user) for user in page} if known.number_set else {}
        return {
            "users": page,
            "total": total,
            "limit": number,
            "next_after": page[-1] if len(rest) > number else None,
            "memory_switches": {user: words(switch) for user, switch in switched.items() if switch != UNSAID},
        }

    return routes


async def _round_trip(tried: Tried) -> RoundTrip:
    began = time.perf_counter()
    try:
        await tried()
        error = None
    except SemmemError as failure:
        error = type(failure).__name__
    return {"working": error is None, "latency_ms": round(1000 * (time.perf_counter() - began), 2), "error": error}
