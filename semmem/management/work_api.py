"""Routes for whoever operates semmem: batches and how they ended, and who shares the journal. No content, no users."""

from collections.abc import Callable, Sequence
from typing import Annotated, Protocol

from fastapi import APIRouter, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.door import CALLER
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import Time, time_shown
from semmem.ports.housekeeping import EndedBatch, LiveBatch, Replica, Work

BATCHES_DEFAULT, BATCHES_MAX = 20, 100
WORDS_S = 3600.0
"""Of how long ``words`` tells."""


class WorkRecords(Protocol):
    """Raises JournalError."""

    async def work(self, *, ended_after: float, limit: int) -> Work:
        """``words`` of what ended after then; at most ``limit`` batches of each list."""

    async def replicas(self) -> Sequence[Replica]:
        """Who showed life lately, longest first; none where nobody can share the journal."""


class WaitingShown(TypedDict):
    """``turns``: in no batch yet. ``lag_s``: the age of the oldest of them, 0 where none waits."""

    turns: int
    oldest_at: Time | None
    lag_s: float


class LiveShown(TypedDict):
    """``state``: ``working``, or ``resting`` before another try and while a model is asked. ``until``: when another one
    may take it."""

    id: str
    trigger: str
    attempt: int
    state: str
    until: Time | None


class EndedShown(TypedDict):
    """``word``: how it ended. ``turns``: of those that it was learnt from, how many are still kept. ``lag_s``: from the
    oldest of them being said to the end, null where none is kept."""

    id: str
    trigger: str
    attempt: int
    word: str
    ended_at: Time | None
    turns: int
    lag_s: float | None


class BatchesShown(TypedDict):
    """``live``: some of ``live_total`` that are not ended. ``ended``: the last ones, newest first. ``words``: how many
    ended so within the last ``words_s`` seconds."""

    waiting: WaitingShown
    live: list[LiveShown]
    live_total: int
    ended: list[EndedShown]
    words: dict[str, int]
    words_s: float


class ReplicaShown(TypedDict):
    """``since``: when it began, null of one that does not say it. ``this``: the one that answers."""

    id: str
    since: Time | None
    seen_at: Time | None
    this: bool


class ReplicasShown(TypedDict):
    """None where nobody can share the journal."""

    replicas: list[ReplicaShown]


def work_routes(records: WorkRecords, clock: Callable[[], float]) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/batches", **refuses(*OF_ROLE))
    async def get_batches(
        request: Request,
        limit: Annotated[int, Query(ge=1, description=f"more than {BATCHES_MAX} are not given")] = BATCHES_DEFAULT,
    ) -> BatchesShown:
        """What waits to be learnt from, what is being learnt from, and how the last of it ended."""
        request.scope[CALLER].must(Act.OPERATE)
        now = clock()
        work = await records.work(ended_after=now - WORDS_S, limit=min(limit, BATCHES_MAX))
        lag_s = 0.0 if work.oldest_at is None else max(0.0, now - work.oldest_at)
        return {
            "waiting": {"turns": work.waiting, "oldest_at": time_shown(work.oldest_at), "lag_s": round(lag_s, 1)},
            "live": [_live(batch) for batch in work.live],
            "live_total": work.live_number,
            "ended": [_ended(batch) for batch in work.ended],
            "words": dict(work.words),
            "words_s": WORDS_S,
        }

    @routes.get("/v1/replicas", **refuses(*OF_ROLE))
    async def get_replicas(request: Request) -> ReplicasShown:
        """Who shares the journal and showed life lately."""
        request.scope[CALLER].must(Act.OPERATE)
        return {"replicas": [_replica(replica) for replica in await records.replicas()]}

    return routes


def _live(batch: LiveBatch) -> LiveShown:
    return {
        "id": batch.id,
        "trigger": batch.trigger,
        "attempt": batch.attempt,
        "state": "resting" if batch.rests else "working",
        "until": time_shown(batch.until),
    }


def _ended(batch: EndedBatch) -> EndedShown:
    lag_s = None if batch.said_at is None else round(max(0.0, batch.ended_at - batch.said_at), 1)
    return {
        "id": batch.id,
        "trigger": batch.trigger,
        "attempt": batch.attempt,
        "word": batch.word,
        "ended_at": time_shown(batch.ended_at),
        "turns": batch.turns,
        "lag_s": lag_s,
    }


def _replica(replica: Replica) -> ReplicaShown:
    return {
        "id": replica.id,
        "since": time_shown(replica.since),
        "seen_at": time_shown(replica.seen_at),
        "this": replica.is_own,
    }
