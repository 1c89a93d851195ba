"""Parts of the journal: each call is one transaction on a database that all parts share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from semmem.backends.sql import marks
from semmem.backends.sql.clock import WatchedClock
from semmem.backends.sql.database import Database

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part", bound="JournalPart")


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


class JournalPart:
    """The calls of one consumer. Every call may raise JournalError. A cancelled call may still be committed."""

    def __init__(self, database: Database, limits: JournalLimits, clock: WatchedClock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock

    async def notice_clock(self) -> None:
        """Where the clock was set back since this was called last, marks of before that lie ahead of it are lowered."""
        if (since := self._clock.look()) is not None:
            await self._lower_marks(since)
            self._clock.settled()

    async def _lower_marks(self, since: float) -> None:
        await self._database.look(lambda conn: marks.lower(conn, since, self._clock.now()))


def one_read(
    work: Callable[Concatenate[Part, Connection, P], T],
) -> Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]:
    """A call that sees one consistent state of the database. ``work`` runs in one of its threads."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.read(lambda conn: work(part, conn, *args, **kwargs))

    return call


def one_write(
    work: Callable[Concatenate[Part, Connection, P], T],
) -> Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]:
    """A call of which all is committed, or nothing. ``work`` runs in one of the database's threads."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.write(lambda conn: work(part, conn, *args, **kwargs))

    return call


def one_look(
    work: Callable[Concatenate[Part, Connection, P], T],
) -> Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]:
    """``one_write`` that most often finds nothing to do, and after which nobody needs to look again."""

    @wraps(work)
    async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await part._database.look(lambda conn: work(part, conn, *args, **kwargs))

    return call
