"""What the journal's parts ask of a database, its errors made ours, and calls that are one transaction each."""

import asyncio
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from semmem.backends.sql import marks
from semmem.backends.sql.rows import Transaction
from semmem.backends.sql.schema import bring_up_to_date
from semmem.memory import SKEW_S
from semmem.ports.errors import JournalDamaged, JournalError, JournalFull, JournalUnavailable

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part", bound="JournalPart")

DUE, ERASED, OBEYED, SWITCHED, MISSED, DEAF = "due", "erased", "obeyed", "switched", "missed", "deaf"
"""What a process says to the others: a batch may be due; something is to be hidden, or need not be any longer; it is
hidden; memory was switched on or off for somebody. And what nobody says: that from here on all is heard, and that
nothing is."""

_TELLING = ("08", "28", "3D", "53", "57")
"""Classes of SQLSTATE that speak of the server and of no row: connection, authentication, no such database, no room,
an operator's doing. Other messages of a server may hold values."""
REPLICA = "replica_"
VERSION, VARIANT = 0x7, 0x8
"""Of a UUID that begins with the milliseconds since 1970 (RFC 9562, 5.7)."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """``connections_max`` (two at least) are open at a time, half of them for reads. ``connect_timeout_s``: for each
    address of the server. ``statement_timeout_s``: of one statement, waiting for locks included; also how long a silent
    connection is believed to be alive. A server that takes what is sent and answers nothing is away after both of them
    together. ``retry_s``: a server that could not be reached is asked again after that."""

    connections_max: int = 8
    connect_timeout_s: float = 3.0
    statement_timeout_s: float = 10.0
    retry_s: float = 0.5


_AWAY = ("08", "53", "57")
"""Of these, what passes by itself."""
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR_WRITE)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""What SQLite says of a file whose pages do not fit together, or that does not begin like a database."""


class Threads:
    """The two ways to begin on one engine, with threads for each: a lookup on the request path must not stand behind a
    write, which may wait for others."""

    def __init__(self, reads: Engine, writes: Engine, *, readers: int = 1, writers: int = 1) -> None:
        self.reads, self.writes = reads, writes
        self._reader = ThreadPoolExecutor(readers, "semmem-journal-read")
        self._writer = ThreadPoolExecutor(writers, "semmem-journal-write")

    async def read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    async def write(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, work)

    async def close(self) -> None:
        """What was begun ends first."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._reader.shutdown()
        self._writer.shutdown()
        self.writes.dispose()


class Database(ABC):
    """Runs functions in transactions, off the event loop. Every call may raise JournalError. Of other processes only a
    subclass knows."""

    _threads: Threads | None = None

    async def open(self) -> None:
        """Make the tables, or check that they are a journal this build can read. Idempotent."""
        if self._threads is not None:
            return
        self._threads = self._begin()
        try:
            await self._threads.write(self._prepare)
            await self.write(bring_up_to_date)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let what was begun end, then let go. Idempotent."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await threads.close()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """One consistent view; never waits for a writer."""
        threads = self._opened()
        return await threads.read(lambda: self._transact(threads.reads, work))

    async def write(self, work: Callable[[Connection], T]) -> T:
        """One transaction: all of it is committed, or nothing. ``work`` may be called again after it was undone."""
        threads = self._opened()
        return await threads.write(lambda: self._transact(threads.writes, work))

    async def look(self, work: Callable[[Connection], T]) -> T:
        """``write`` that ``last_write`` does not count."""
        return await self.write(work)

    def tell(self, conn: Transaction, *, at_once: bool = True) -> None:  # noqa: B027  # a hook
        """Other processes shall look for a batch when this transaction is committed; without ``at_once`` soon after
        it."""

    def say(self, conn: Transaction, word: str) -> None:  # noqa: B027  # a hook
        """Other processes that listen hear it when this transaction is committed."""

    async def listen(self, heard: Callable[[str], None]) -> None:  # noqa: B027  # a hook
        """Until cancelled; ends at once where nobody can say anything."""

    @abstractmethod
    def last_write(self) -> object:
        """Another value after a commit by which a batch may have become due, as far as that is known here."""

    @abstractmethod
    async def purge(self) -> bool:
        """As Purgeable says."""

    async def check_room(self) -> None:  # noqa: B027  # a hook
        """Raises JournalFull when the disk of this machine that it writes to, if there is one, takes nothing now."""

    @abstractmethod
    def _begin(self) -> Threads:
        """Its threads, and what they are connected by."""

    def _prepare(self) -> None:  # noqa: B027  # a hook
        """What comes before the tables, in the thread that writes."""

    @abstractmethod
    def _transact(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        """What ``work`` gives, in one transaction of this engine, in the thread that calls."""

    def _opened(self) -> Threads:
        if self._threads is None:
            raise JournalError("the journal is not open")
        return self._threads


@contextmanager
def journal_errors() -> Iterator[None]:
    """Everything a database can raise, as JournalError. Messages name the failure, never a value."""
    try:
        yield
    except DBAPIError as error:
        raise _of_driver(error) from None
    except SQLAlchemyError as error:
        raise JournalError(type(error).__name__) from None
    except OSError as error:
        raise JournalError(f"{type(error).__name__}: {error.strerror}") from None


def _of_driver(error: DBAPIError) -> JournalError:
    code = getattr(error.orig, "sqlite_errorcode", 0)
    if code & 0xFF in _DAMAGED:  # the upper bits say more closely what it met
        return JournalDamaged(str(error.orig))
    if code in _NO_ROOM:
        return JournalFull(_told(error.orig))
    state = getattr(error.orig, "sqlstate", "")  # SQLite knows none
    away = error.connection_invalidated or state is None or state[:2] in _AWAY
    return (JournalUnavailable if away else JournalError)(_told(error.orig))


def _told(error: Any) -> str:
    name, diagnostics = type(error).__name__, getattr(error, "diag", None)
    if diagnostics is None:  # SQLite names tables and columns at most
        return f"{name}: {error}"
    if error.sqlstate is None:  # there was no server to say anything
        return f"{name}: {' '.join(str(error).split())}"
    if error.sqlstate[:2] in _TELLING:
        return f"{name}: {diagnostics.message_primary}"
    return f"{name}: SQLSTATE {error.sqlstate}"


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
    ``steady``: seconds. Times of marks and of turns are compared, so an erasure that was dated by a clock that was
    ahead would turn away whatever is said until that time comes. That a clock was ahead shows when it is set back."""

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
        await self._database.look(lambda conn: marks.lower(Transaction(conn), since, self._clock.now()))


def _time_ordered(now: float) -> str:
    """A UUID of version 7, in hexadecimal without hyphens."""
    return f"{int(now * 1000):012x}{VERSION:x}{secrets.token_hex(2)[:3]}{VARIANT:x}{secrets.token_hex(8)[:15]}"


Work = Callable[Concatenate[Part, Transaction, P], T]
Call = Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]


def _call(way: str) -> Callable[[Work[Part, P, T]], Call[Part, P, T]]:
    """``work`` runs in one of the database's threads."""

    def of(work: Work[Part, P, T]) -> Call[Part, P, T]:
        @wraps(work)
        async def call(part: Part, /, *args: P.args, **kwargs: P.kwargs) -> T:
            result: T = await getattr(part._database, way)(lambda conn: work(part, Transaction(conn), *args, **kwargs))
            return result

        return call

    return of


one_read = _call("read")
"""A call that sees one consistent state of the database."""
one_write = _call("write")
"""A call of which all is committed, or nothing."""
quiet_write = _call("look")
"""``one_write`` that most often finds nothing to do, and after which nobody needs to look again."""
