"""semmem at work: the last requests as they ended, batches of turns, and who shares the journal. For an operator
outcome words and figures, no content and no user; of requests only what this process has seen, as long as it runs."""

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Protocol

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.routes import needs
from semmem.management.shown import Time, as_shown, at
from semmem.ports.housekeeping import EndedBatch, Replica, Work

KEPT = 200
"""Requests that ``/v1/activity`` shows; older ones are in the request log and the metrics."""


class RequestShown(TypedDict):
    """How a request ended. ``id``: its ``x-request-id``; null where it has none that is usable, where nobody is known
    to have asked, and where nothing may be kept of it."""

    number: int
    id: str | None
    time: Time
    outcome: str
    milliseconds: float
    memories: int
    tokens: int


class ActivityShown(TypedDict):
    """``last``: the number of the newest."""

    last: int
    requests: list[RequestShown]


class Activity:
    """Keeps the ends of the last ``kept`` requests. ``clock``: seconds since 1970."""

    def __init__(self, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._clock = clock
        self._ended: deque[tuple[int, float, str, float, int, int, str | None]] = deque(maxlen=kept)
        self._numbers = itertools.count(1)

    def ended(self, outcome: str, seconds: float, memories: int, tokens: int, id: str | None) -> None:
        """Keep it. ``seconds``: how long it took; ``id``: see RequestShown."""
        self._ended.append((next(self._numbers), self._clock(), outcome, seconds, memories, tokens, id))

    def since(self, after: int) -> ActivityShown:
        """Those with a higher number, the oldest first; a number from before a restart counts as 0."""
        last = self._ended[-1][0] if self._ended else 0
        after = after if after <= last else 0
        shown: list[RequestShown] = [
            {
                "number": number,
                "id": id,
                "time": at(ended_at),
                "outcome": outcome,
                "milliseconds": round(1000 * seconds, 3),
                "memories": memories,
                "tokens": tokens,
            }
            for number, ended_at, outcome, seconds, memories, tokens, id in self._ended
            if number > after
        ]
        return {"last": last, "requests": shown}


def activity_routes(activity: Activity) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/activity", **needs(Act.OPERATE))
    async def get_activity(
        after: Annotated[int, Query(ge=0, le=2**53, description="only what ended after this number")] = 0,
    ) -> ActivityShown:
        """How the last requests through Envoy ended, in this process."""
        return activity.since(after)

    return routes


# --- batches and replicas ---------------------------------------------------------------------------------------------

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

    @routes.get("/v1/batches", **needs(Act.OPERATE, "MEMORY_NOT_AVAILABLE"))
    async def get_batches(
        limit: Annotated[int, Query(ge=1, description=f"more than {BATCHES_MAX} are not given")] = BATCHES_DEFAULT,
    ) -> BatchesShown:
        """What waits to be learnt from, what is being learnt from, and how the last of it ended."""
        now = clock()
        work = await records.work(ended_after=now - WORDS_S, limit=min(limit, BATCHES_MAX))
        lag_s = 0.0 if work.oldest_at is None else max(0.0, now - work.oldest_at)
        return {
            "waiting": as_shown(WaitingShown, work, turns=work.waiting, lag_s=round(lag_s, 1)),
            "live": [as_shown(LiveShown, each, state="resting" if each.rests else "working") for each in work.live],
            "live_total": work.live_number,
            "ended": [as_shown(EndedShown, each, lag_s=_lag_s(each)) for each in work.ended],
            "words": dict(work.words),
            "words_s": WORDS_S,
        }

    @routes.get("/v1/replicas", **needs(Act.OPERATE, "MEMORY_NOT_AVAILABLE"))
    async def get_replicas() -> ReplicasShown:
        """Who shares the journal and showed life lately."""
        return {"replicas": [as_shown(ReplicaShown, each, this=each.is_own) for each in await records.replicas()]}

    return routes


def _lag_s(batch: EndedBatch) -> float | None:
    return None if batch.said_at is None else round(max(0.0, batch.ended_at - batch.said_at), 1)
