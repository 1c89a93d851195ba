"""Parts of the journal: each call is one transaction on a database that all parts share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from semmem.backends.sql import marks
from semmem.backends.sql.database import Database
from semmem.memory import SKEW_S

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part", bound="JournalPart")

REPLICA = "replica_"
VERSION, VARIANT = 0x7, 0x8
"""Of a UUID that begins with the milliseconds since 1970 (RFC 9562, 5.7)."""


@dataclass(frozen=True, slots=True)
class JournalLimits:
    """``batch_sizes_max``: a batch has at most this many times ``BatchRules.size`` turns. ``versions_max``: earlier
    versions kept per memory. ``prune_rows_max``: rows erased per transaction when pruning, so that accepting turns goes
    on in between. ``waiting_sessions_max``, ``waiting_turns_max``: how many are looked at for a change of topic."""

    batch_sizes_max: int = 2
    versions_max: int = 100
    prune_rows_max: int = 1000
    waiting_sessions_max: int = 1000
    waiting_turns_max: int = 50


class WatchedClock:
    """The wall clock of this process, and when it was set back: it is compared with one that nobody sets. ``wall`` and
    ``steady``: seconds.

    Times of marks and of turns are compared, so an erasure that was dated by a clock that was ahead would turn away
    whatever is said until that time comes. That a clock was ahead shows when it is set back.
    """

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


class JournalPart:
    """The calls of one subject. Every call may raise JournalError. A cancelled call may still be committed. Each object
    is a replica of its own."""

    def __init__(self, database: Database, limits: JournalLimits, clock: WatchedClock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self.replica_id = f"{REPLICA}{_time_ordered(time.time())}"

    async def notice_clock(self) -> None:
        """Where the clock was set back since this was called last, marks of before that lie ahead of it are lowered."""
        if (since := self._clock.look()) is not None:
            await self._lower_marks(since)
            self._clock.settled()

    async def _lower_marks(self, since: float) -> None:
        await self._database.look(lambda conn: marks.lower(conn, since, self._clock.now()))


def _time_ordered(now: float) -> str:
    """A UUID of version 7, in hexadecimal without hyphens."""
    return f"{int(now * 1000):012x}{VERSION:x}{secrets.token_hex(2)[:3]}{VARIANT:x}{secrets.token_hex(8)[:15]}"


Work = Callable[Concatenate[Part, Connection, P], T]
Call = Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]


def one_read(work: Work[Part, P, T]) -> Call[Part, P, T]:
    """A call that sees one consistent state of the database. ``work`` runs in one of its threads."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.read(lambda conn: work(part, conn, *args, **kwargs))

    return call


def one_write(work: Work[Part, P, T]) -> Call[Part, P, T]:
    """A call of which all is committed, or nothing. ``work`` runs in one of the database's threads."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.write(lambda conn: work(part, conn, *args, **kwargs))

    return call


def quiet_write(work: Work[Part, P, T]) -> Call[Part, P, T]:
    """``one_write`` that most often finds nothing to do, and after which nobody needs to look again."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.look(lambda conn: work(part, conn, *args, **kwargs))

    return call
