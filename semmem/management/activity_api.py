"""semmem at work: the last requests as they ended, batches of turns, and who shares the journal.

For an operator outcome words and figures, no content and no user; for whoever may read a user's memories also which of
them were in the prompt of a request. Of requests only what this process has seen, as long as it runs.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Protocol

import msgspec
from cachetools import LRUCache
from fastapi import APIRouter, Path, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import CALLER, Act
from semmem.management.memories import Memories
from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import UserId, may, needs, refuses
from semmem.management.shown import ROWS_MAX, MemoryShown, Time, as_shown, at, log_odds, shown
from semmem.memory import MemoryStatus, Scope
from semmem.ports.housekeeping import EndedBatch, Replica, Work
from semmem.request.outcome import NAME_CHARS_MAX, RequestRecord

KEPT = 200
"""Requests that ``/v1/activity`` shows; older ones are in the metrics alone."""
LIMIT_MAX = 200


class _Ended(TypedDict):
    """How a request ended."""

    number: int
    time: Time
    outcome: str
    milliseconds: float
    memories: int
    tokens: int


class RequestShown(_Ended):
    """``id``: its ``x-request-id``; null where nobody is known to have asked, or whose it was is forgotten."""

    id: str | None


class ActivityShown(TypedDict):
    """``last``: the number of the newest."""

    last: int
    requests: list[RequestShown]


class RecordShown(_Ended):
    """A request of one user: ``id`` is its ``x-request-id``, ``api`` one of chat, responses, messages, ``purpose`` what
    it was taken to be about, empty where that was not decided."""

    id: str
    user_id: str
    project_id: str | None
    session_id: str | None
    api: str
    model: str
    purpose: str


class RecordsShown(TypedDict):
    """Newest first."""

    requests: list[RecordShown]


class MemoryInPrompt(MemoryShown):
    """``is_new``: this request found it; else an earlier one of the session was shown it. ``log_odds`` that the request
    needs it, null where that is not known."""

    is_new: bool
    log_odds: float | None


class MemoryLeftOut(MemoryShown):
    """``reason``: the word for why, as a preview has it."""

    reason: str
    log_odds: float | None


class RecordRead(RecordShown):
    """``in_prompt``: as the memories are now; ``gone``: how many of them are no more. ``left_out``: the best of those
    that were near enough and were not shown. ``learnt``: what its turn said that is remembered."""

    in_prompt: list[MemoryInPrompt]
    gone: int
    left_out: list[MemoryLeftOut]
    learnt: list[MemoryShown]


class EndedRequest(msgspec.Struct, frozen=True):
    """A request, when (seconds since 1970) and how it ended. ``record`` None: nobody was known to be asking."""

    number: int
    at: float
    outcome: str
    seconds: float
    memories: int
    tokens: int
    record: RequestRecord | None

    def shown(self) -> RequestShown:
        """Without names of users."""
        id = None if self.record is None else self.record.id
        return as_shown(RequestShown, self, id=id, time=at(self.at), milliseconds=round(1000 * self.seconds, 3))


class Activity:
    """Keeps the ends of the last ``kept`` requests. ``clock``: seconds since 1970."""

    def __init__(self, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._clock = clock
        self._ended: deque[EndedRequest] = deque(maxlen=kept)
        self._forgotten: LRUCache[str, float] = LRUCache(kept)
        self._numbers = itertools.count(1)

    def ended(self, outcome: str, seconds: float, memories: int, tokens: int, record: RequestRecord | None) -> None:
        """Keep it; without its record where something of the user's was forgotten while it was under way."""
        number, now = next(self._numbers), self._clock()
        if record is not None and self._forgotten.get(record.user, -math.inf) >= now - seconds:
            record = None
        self._ended.append(EndedRequest(number, now, outcome, seconds, memories, tokens, record))

    def forget(self, user: str, memory_ids: Sequence[str] | None) -> None:
        """Whose requests those were, and what they were shown, is known no more: None, all of the user's; else of those
        in whose prompts one of the memories was, or might have been."""
        self._forgotten[user] = self._clock()
        gone = None if memory_ids is None else frozenset(memory_ids)
        for place, ended in enumerate(self._ended):
            if (record := ended.record) is None or record.user != user:
                continue
            if gone is None or not gone.isdisjoint((*record.shown, *(each[0] for each in record.left))):
                self._ended[place] = msgspec.structs.replace(ended, record=None)

    def since(self, after: int) -> ActivityShown:
        """Those with a higher number, the oldest first; a number from before a restart counts as 0."""
        last = self._ended[-1].number if self._ended else 0
        after = after if after <= last else 0
        newest = itertools.islice(reversed(self._ended), KEPT)
        return {"last": last, "requests": [ended.shown() for ended in newest if ended.number > after][::-1]}

    def known(self) -> Iterator[tuple[EndedRequest, RequestRecord]]:
        """Those of which it is known who asked, newest first."""
        for ended in reversed(self._ended):
            if ended.record is not None:
                yield ended, ended.record


def activity_routes(activity: Activity, memories: Memories) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/activity", **needs(Act.OPERATE))
    async def get_activity(
        after: Annotated[int, Query(ge=0, le=2**53, description="only what ended after this number")] = 0,
    ) -> ActivityShown:
        """How the last requests through Envoy ended, in this process."""
        return activity.since(after)

    @routes.get("/v1/requests", **refuses(*OF_USER))
    async def list_requests(
        request: Request,
        user_id: UserId = None,
        outcome: Annotated[str | None, Query(max_length=64, description="only those that ended so")] = None,
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 50,
    ) -> RecordsShown:
        """A user's last requests through Envoy, in this process."""
        user = may(request, user_id, Act.READ)
        own = ((ended, record) for ended, record in activity.known() if record.user == user)
        found = (_told(ended, record) for ended, record in own if outcome in (None, ended.outcome))
        return {"requests": list(itertools.islice(found, limit))}

    @routes.get("/v1/requests/{request_id}", **needs(Act.READ, *OF_USER, "NOT_FOUND"))
    async def get_request(
        request: Request,
        request_id: Annotated[str, Path(max_length=NAME_CHARS_MAX, description="its x-request-id")],
    ) -> RecordRead:
        """One request: which memories were in its prompt, and what was learnt from its turn."""
        with_it = (each for each in activity.known() if each[1].id == request_id)
        found = next(with_it, None)  # the newest: a client may send one again
        own = request.scope[CALLER].user
        if found is None or own not in (None, found[1].user):
            raise Denied("NOT_FOUND", "no such request, or this process has forgotten it")
        ended, record = found
        scope = Scope(may(request, record.user, Act.READ))
        there = [(name, await memories.store.get(scope, name)) for name in record.shown]
        new = dict(record.weighed)
        in_prompt: list[MemoryInPrompt] = [
            {**shown(memory), "is_new": name in new, "log_odds": log_odds(new.get(name))}
            for name, memory in there
            if memory is not None
        ]
        left_out: list[MemoryLeftOut] = [
            {**shown(memory), "reason": reason, "log_odds": log_odds(logit)}
            for name, reason, logit in record.left
            if (memory := await memories.store.get(scope, name)) is not None
        ]
        everything = await memories.store.list(scope, limit=ROWS_MAX, vectors=False) if record.turn else []
        active = [memory for memory in everything if memory.status is MemoryStatus.ACTIVE]
        return {
            **_told(ended, record),
            "in_prompt": in_prompt,
            "gone": len(there) - len(in_prompt),
            "left_out": left_out,
            "learnt": [shown(memory) for memory in active if memory.source.turn == record.turn],
        }

    return routes


def _told(ended: EndedRequest, record: RequestRecord) -> RecordShown:
    return as_shown(RecordShown, record, **ended.shown())


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
