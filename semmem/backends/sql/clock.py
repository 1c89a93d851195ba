"""The wall clock of this process, and when it was set back.

Times of marks and of turns are compared, so an erasure that was dated by a clock that was ahead would turn away
whatever is said until that time comes. That a clock was ahead shows when it is set back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection, func, select

from semmem.memory import SKEW_S


class WatchedClock:
    """Compares the clock of the wall with one that nobody sets. ``wall`` and ``steady``: seconds."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self.now = wall
        self._steady = steady
        self._seen: tuple[float, float] | None = None
        self._since: float | None = None

    def look(self) -> float | None:
        """None, or, where the clock was set back since an earlier look: when that look was, by the clock as it is now.
        The same until ``settled``."""
        wall, steady = self.now(), self._steady()
        if self._seen is not None:
            passed_s = steady - self._seen[1]
            if wall < self._seen[0] + passed_s - SKEW_S:
                self._since = wall - passed_s
        self._seen = wall, steady
        return self._since

    def settled(self) -> None:
        """Whoever had to know that it was set back knows."""
        self._since = None


def latest(conn: Connection, now: float) -> float:
    """The later of ``now`` and what the database's server has: one clock alone may be behind."""
    if conn.dialect.name != "postgresql":
        return now
    server: float = conn.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one()
    return max(now, float(server))
