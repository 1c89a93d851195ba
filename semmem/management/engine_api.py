"""Routes for whoever operates semmem: what it runs on and whether that works, its last hour, its configuration, a
reindex, and who has memories. No content."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Protocol

from fastapi import APIRouter, Query
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.accounts_api import SwitchesShown, words
from semmem.management.problems import Denied
from semmem.management.routes import USER_CHARS_MAX, Body, Count, Switch, needs
from semmem.management.shown import Time, as_shown, at
from semmem.ports.accounts import UNSAID
from semmem.ports.errors import SemmemError
from semmem.ports.housekeeping import KnownUsers
from semmem.reindex.reindexing import Reindexing
from semmem.request.switches import Switches
from semmem.telemetry.samples import Samples

USERS_DEFAULT, USERS_MAX = 100, 1000
PROBLEMS_MAX = 5
"""Named in a refusal of a configuration; `GET /v1/config` has all of them."""

Tried = Callable[[], Awaitable[object]]


class StoreStatus(TypedDict):
    """``hot_users``, ``hot_memories``: kept in process. ``reindex``: a word for how far that is."""

    backend: str
    hot_users: int
    hot_memories: int
    reindex: str


class CacheStatus(TypedDict):
    """Since the start: texts whose vector was kept, texts whose vector was not, and how many are kept now."""

    hits: int
    misses: int
    entries: int


class EmbeddingStatus(TypedDict):
    """``signature``: of the model that vectors are of."""

    source: str
    signature: str
    dimension: int
    cache: CacheStatus | None


class EmbeddingProvider(TypedDict):
    """A source of vectors. ``available``: it is on this machine, or has an address; whether that answers is a round
    trip's to say. ``active``: it makes the vectors of this process."""

    name: str
    model: str
    configured: bool
    available: bool
    active: bool


class EmbeddingProviders(TypedDict):
    providers: list[EmbeddingProvider]


class JournalStatus(TypedDict):
    """``waiting``: halves of turns that are not written yet."""

    kind: str
    waiting: int


class DeploymentStatus(TypedDict):
    """As configured."""

    replicas: int


@dataclass(frozen=True, slots=True)
class Reload:
    """How one reading of the configuration ended: ``applied``, ``unchanged``, or ``refused`` with every problem.
    ``changed``: the keys that now have another value. ``digest``: of the configuration that is in effect after it."""

    outcome: str
    at: str
    digest: str
    changed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ReloadShown(TypedDict):
    """A reading that was not refused. ``digest``: of the configuration in effect after it."""

    outcome: str
    at: Time
    digest: str
    changed: list[str]


class LastReload(TypedDict):
    """The last reading, refused ones among them, with every problem."""

    at: Time
    outcome: str
    changed: list[str]
    problems: list[str]


class ReloadState(TypedDict):
    """When what is in effect was loaded, its digest, and what became of readings; null where there was none."""

    digest: str
    loaded_at: Time
    reloads: dict[str, int]
    last: LastReload | None


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


class SampleShown(TypedDict):
    """``requests``, ``learnt`` and ``failed`` (turns) since the sample before, of which are also the quantiles of the
    time that requests waited; null: there were none. ``waiting``: turns that are in no batch. ``memory_bytes``:
    resident, of this process without its children."""

    time: Time
    requests: int
    p50_ms: float | None
    p95_ms: float | None
    waiting: int
    learnt: int
    failed: int
    memory_bytes: int | None


class HistoryShown(TypedDict):
    """``samples``: the oldest first, at most ``samples_max``, one every ``interval_s``."""

    interval_s: float
    samples_max: int
    samples: list[SampleShown]


class UsersShown(TypedDict):
    """A page of names. ``total``: of all, where everywhere was looked. ``next_after``: the last one, where there are
    more. Of those in the page who have some: ``memory_switches``, ``aliases``, and when they were ``last_seen``, as far
    as turns in the journal and memories in prompts tell."""

    users: list[str]
    total: int | None
    limit: int
    next_after: str | None
    memory_switches: dict[str, SwitchesShown]
    aliases: dict[str, str]
    last_seen: dict[str, Time]


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


class ListedUsers(KnownUsers, Protocol):
    """Whom the journal knows, and what it tells of them. Raises JournalError."""

    async def aliases(self, users: Sequence[str]) -> Mapping[str, str]:
        """What those are called who have an alias."""

    async def last_seen(self, users: Sequence[str]) -> Mapping[str, float]:
        """The newest turn, or the last time that a memory was in a prompt, of those who have one on record."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What the routes ask. ``status``: plain JSON values, none of them of a user. ``parts``: by name, one cheap round
    trip each; raises SemmemError where it fails. ``configuration``: as it is in effect, secrets redacted. ``users``:
    whoever has memories in the store or may have some, sorted. ``known``: those whom the journal knows. ``providers``:
    sources of vectors."""

    status: Callable[[], EngineStatus]
    parts: Mapping[str, Tried]
    configuration: Callable[[], Mapping[str, Any]]
    users: Callable[[], Awaitable[Sequence[str]]]
    known: ListedUsers
    providers: Callable[[], Awaitable[list[EmbeddingProvider]]]


def engine_routes(engine: Engine, samples: Samples, *, switches: Switches | None = None) -> APIRouter:
    """Everything that is of no single user. ``switches``: those that requests obey."""
    routes, known = APIRouter(), switches or Switches()

    @routes.get("/v1/status", **needs(Act.OPERATE))
    async def get_status() -> EngineStatus:
        """What semmem runs on, and whether that answered when it was last asked."""
        return engine.status()

    @routes.get("/v1/health", **needs(Act.OPERATE))
    async def get_health() -> HealthShown:
        """A round trip to everything that semmem runs on, now. 200 whatever comes of it: ``working`` says it."""
        parts = {name: await _round_trip(tried) for name, tried in engine.parts.items()}
        slowest = max((part["latency_ms"] for part in parts.values()), default=0.0)
        return {"working": all(part["working"] for part in parts.values()), "latency_ms": slowest, "parts": parts}

    @routes.get("/v1/embedding/providers", **needs(Act.OPERATE))
    async def get_embedding_providers() -> EmbeddingProviders:
        """Where vectors can come from, and where they come from."""
        return {"providers": await engine.providers()}

    @routes.get("/v1/metrics/history", **needs(Act.OPERATE))
    async def get_metrics_history() -> HistoryShown:
        """This process's last hour: requests, how long they waited, turns waiting and learnt from, memory."""
        shown = [as_shown(SampleShown, sample, time=at(sample.at)) for sample in samples.kept]
        return {"interval_s": samples.interval_s, "samples_max": samples.kept.maxlen or 0, "samples": shown}

    @routes.get("/v1/config", **needs(Act.OPERATE))
    async def get_configuration() -> dict[str, Any]:
        """Every key as it is in effect; of secrets only whether they are set."""
        return dict(engine.configuration())

    @routes.get("/v1/users", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def list_users(
        limit: Annotated[int, Query(ge=1, description=f"more than {USERS_MAX} are not given")] = USERS_DEFAULT,
        after: Annotated[str | None, Query(max_length=USER_CHARS_MAX, description="go on after this user")] = None,
        everywhere: Annotated[
            bool, Query(description="look into the store as well, which reads all of it, and count them")
        ] = False,
    ) -> UsersShown:
        """Whoever has memories, had some, or said what may become one, as far as the journal knows, by id; and what is
        known of those in the page: memory switches, aliases, when they were last seen."""
        number = min(limit, USERS_MAX)
        total = None
        if everywhere:
            everybody = await engine.users()
            total = len(everybody)
            rest: Sequence[str] = [user for user in everybody if after is None or user > after]
        else:
            rest = await engine.known.users_after(after or "", limit=number + 1)
        page = list(rest[:number])
        switched = {user: known.of_user(user) for user in page} if known.number_set else {}
        return {
            "users": page,
            "total": total,
            "limit": number,
            "next_after": page[-1] if len(rest) > number else None,
            "memory_switches": {user: words(switch) for user, switch in switched.items() if switch != UNSAID},
            "aliases": dict(await engine.known.aliases(page)),
            "last_seen": {user: at(seen) for user, seen in (await engine.known.last_seen(page)).items()},
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


def reload_routes(reload: Callable[[], Awaitable[Reload]]) -> APIRouter:
    """``reload`` reads the configuration again, and takes up all of what changed or nothing."""
    routes = APIRouter()

    @routes.post("/v1/config/reload", **needs(Act.OPERATE, "CONFIG_REFUSED"))
    async def reload_configuration() -> ReloadShown:
        """Read the file and the environment again. Without a word in between, requests go on."""
        done = await reload()
        if done.outcome == "refused":
            first, more = done.problems[:PROBLEMS_MAX], len(done.problems) - PROBLEMS_MAX
            told = [*first, f"{more} more"] if more > 0 else [*first]
            raise Denied("CONFIG_REFUSED", f"nothing was changed: {'; '.join(told)}")
        return as_shown(ReloadShown, done)

    return routes


def reindex_routes(reindexing: Reindexing) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/memory/reindex", response_model=ReindexShown, **needs(Act.OPERATE, "MEMORY_NOT_AVAILABLE"))
    async def get_reindex() -> dict[str, Any]:
        """How far it is."""
        return await reindexing.status()

    @routes.post(
        "/v1/memory/reindex",
        status_code=202,
        response_model=ReindexShown,
        **needs(Act.OPERATE, "MEMORY_NOT_AVAILABLE", "STORE_FULL"),
    )
    async def begin_reindex(asked: ReindexAsked | None = None) -> dict[str, Any]:
        """Begin, or go on."""
        asked = asked or ReindexAsked()
        await reindexing.start(force=asked.force, limit=asked.limit)
        return await reindexing.status()

    @routes.delete("/v1/memory/reindex", **needs(Act.OPERATE, "MEMORY_NOT_AVAILABLE", "BUSY"))
    async def drop_former() -> FormerDropped:
        """The former collections; with them goes the way back."""
        return {"success": True, "dropped": await reindexing.drop_former()}

    return routes
