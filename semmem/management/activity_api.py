"""The last requests as they ended, for an operator who watches: outcome words and figures, no content and no user.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from semmem.management.access import Act
from semmem.management.api import May
from semmem.management.door import CALLER
from semmem.management.shown import time_shown
from semmem.ports.events import Event, RequestEnded

KEPT = 200
"""Requests that are remembered; older ones are in the metrics alone."""


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

    def since(self, after: int) -> dict[str, Any]:
        """Those with a higher number, the oldest first; a number from before a restart counts as 0."""
        last = self._ended[-1][0] if self._ended else 0
        after = after if after <= last else 0
        requests = [
            {
                "number": number,
                "time": time_shown(at),
                "outcome": ended.outcome,
                "milliseconds": round(1000 * ended.seconds, 3),
                "memories": ended.memories,
                "tokens": ended.tokens,
            }
            for number, at, ended in self._ended
            if number > after
        ]
        return {"last": last, "requests": requests}


def activity_routes(activity: Activity, _: May) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/activity")
    async def get_activity(
        request: Request,
        after: Annotated[int, Query(ge=0, le=2**53, description="only what ended after this number")] = 0,
    ) -> dict[str, Any]:
        """How the last requests through Envoy ended, in this process."""
        request.scope[CALLER].must(Act.OPERATE)
        return activity.since(after)

    return routes
