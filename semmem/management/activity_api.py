"""The last requests as they ended, for an operator who watches: outcome words and figures, no content and no user."""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.door import CALLER
from semmem.management.problems import refuses
from semmem.management.shown import Time, at
from semmem.ports.events import Event, RequestEnded

KEPT = 200
"""Requests that are remembered; older ones are in the metrics alone."""


class RequestShown(TypedDict):
    """How a request ended."""

    number: int
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
    """A listener that keeps the last requests' ends. ``clock``: seconds since 1970."""

    def __init__(self, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._clock = clock
        self._ended: deque[tuple[int, float, RequestEnded]] = deque(maxlen=kept)
        self._numbers = itertools.count(1)

    def heard(self, event: Event) -> None:
        """Keep it, if it is the end of a request."""
        if type(event) is RequestEnded:
            self._ended.append((next(self._numbers), self._clock(), event))

    def since(self, after: int) -> ActivityShown:
        """Those with a higher number, the oldest first; a number from before a restart counts as 0."""
        last = self._ended[-1][0] if self._ended else 0
        after = after if after <= last else 0
        requests: list[RequestShown] = [
            {
                "number": number,
                "time": at(ended_at),
                "outcome": ended.outcome,
                "milliseconds": round(1000 * ended.seconds, 3),
                "memories": ended.memories,
                "tokens": ended.tokens,
            }
            for number, ended_at, ended in self._ended
            if number > after
        ]
        return {"last": last, "requests": requests}


def activity_routes(activity: Activity) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/activity", **refuses("FORBIDDEN"))
    async def get_activity(
        request: Request,
        after: Annotated[int, Query(ge=0, le=2**53, description="only what ended after this number")] = 0,
    ) -> ActivityShown:
        """How the last requests through Envoy ended, in this process."""
        request.scope[CALLER].must(Act.OPERATE)
        return activity.since(after)

    return routes
