"""A PostgreSQL server: connections, their limits, and what happens while it is away.

Statements run in threads, each with a connection of its own: what they cost in Python stays off the event loop, and
they are the same as SQLite's. A server that cannot be reached, or does not answer, is asked again after ``retry_s`` and
not sooner: until then every call fails at once."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo
from psycopg.abc import PQGen
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.exc import DBAPIError

from semmem.backends.sql.database import DEAF, DUE, MISSED, Database, ServerLimits, Threads, journal_errors
from semmem.backends.sql.rows import Transaction
from semmem.ports.errors import JournalUnavailable

T = TypeVar("T")

TRIES_MAX = 5
"""So often a transaction is tried that the server ended in favour of another one, or that lost its connection."""
CHANNEL = "semmem_journal"
TELL_EVERY_S = 1.0
"""What the learner waits between two looks by default: to be told more often is of no use to it."""
CLOSE_S = 2.0
"""What is under way when it is closed has so long to end; then it is cut off, and undone unless it was committed."""
_UNDONE = ("40001", "40P01")
"""serialization_failure, deadlock_detected."""


@dataclass(slots=True)
class Patience:
    """Of all connections to one server. ``answer_s``: longest wait for one answer. ``ends_at`` (of time.monotonic):
    nobody waits beyond it. ``on_silence`` is called in the thread that has waited in vain."""

    answer_s: float
    on_silence: Callable[[], None]
    ends_at: float = math.inf


class BoundedConnection(psycopg.Connection[Any]):
    """Waits so long for an answer and no longer; ``patience`` is given to it when it is connected. The limits that
    libpq and the server have do not hold where the server's process hangs and its machine does not: the kernel goes on
    acknowledging what is sent, and nobody is there to end a statement. A connection that gave up is closed: an answer
    may still come, and nobody would know to what."""

    patience: Patience

    def wait(self, gen: PQGen[T], *options: Any, **named: Any) -> T:
        """As Connection says. Raises OperationalError also when there was no answer in time."""
        return super().wait(self._bounded(gen, self.patience), *options, **named)

    def _bounded(self, gen: PQGen[T], patience: Patience) -> PQGen[T]:
        until = time.monotonic() + patience.answer_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() >= min(until, patience.ends_at):
                    self.pgconn.finish()
                    patience.on_silence()
                    raise psycopg.OperationalError("the server does not answer")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class PostgresServer(Database):
    """Runs functions in transactions on a server. ``url``: as libpq takes it, with one address or several
    (``postgresql://a,b/semmem``): whichever of them takes writes. ``password``: beside the url, which is shown where
    settings are."""

    def __init__(self, url: str, *, password: str = "", limits: ServerLimits) -> None:
        self._dsn = _dsn(url, password, limits)
        self._limits = limits
        self._away_until = 0.0
        # What the server takes for a statement before it ends it itself, and what the way there and back may take.
        self._patience = Patience(limits.statement_timeout_s + limits.connect_timeout_s, self._stay_away)
        self._written = 0
        self._told_at = -math.inf

    async def close(self) -> None:
        self._patience.ends_at = time.monotonic() + CLOSE_S
        await super().close()

    async def write(self, work: Callable[[Connection], T]) -> T:
        result = await self.look(work)
        self._written += 1
        return result

    async def look(self, work: Callable[[Connection], T]) -> T:
        return await super().write(work)

    def tell(self, conn: Transaction, *, at_once: bool = True) -> None:
        """Commits that tell wait for one another in the whole server, so that ordinary ones do so seldom."""
        now = time.monotonic()
        if at_once or now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            self.say(conn, DUE)

    def say(self, conn: Transaction, word: str) -> None:
        conn.execute(select(func.pg_notify(CHANNEL, word)))

    async def listen(self, heard: Callable[[str], None]) -> None:
        """On a connection of its own, made anew when it is lost."""
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    heard(MISSED)
                    async for news in connection.notifies():
                        self._written += news.payload == DUE
                        heard(news.payload)
            except psycopg.Error:  # whoever writes says that the server is away
                heard(DEAF)
                await asyncio.sleep(self._limits.retry_s)

    def last_write(self) -> int:
        return self._written

    async def purge(self) -> bool:
        """False: a server overwrites what was removed when it vacuums, and its log and its backups when it pleases."""
        return False

    def _opened(self) -> Threads:
        threads = super()._opened()
        if time.monotonic() < self._away_until:
            raise JournalUnavailable("the journal's server was away a moment ago")
        return threads

    def _begin(self) -> Threads:
        self._patience.ends_at = math.inf
        engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_size=self._limits.connections_max,
            max_overflow=0,
            pool_timeout=self._limits.connect_timeout_s,
            hide_parameters=True,
        )
        event.listen(engine, "connect", lambda connection, _record: self._on_connect(connection))
        reads = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        writes = engine.execution_options(isolation_level="READ COMMITTED")
        readers = max(1, self._limits.connections_max // 2)
        return Threads(reads, writes, readers=readers, writers=max(1, self._limits.connections_max - readers))

    def _connect(self) -> psycopg.Connection[Any]:
        if not self._away_until <= time.monotonic() < self._patience.ends_at:
            raise psycopg.OperationalError("the server was away a moment ago, or is being left")
        try:
            connection = BoundedConnection.connect(self._dsn)
        except psycopg.OperationalError:
            self._stay_away()
            raise
        connection.patience = self._patience
        return connection

    def _stay_away(self) -> None:
        self._away_until = time.monotonic() + self._limits.retry_s

    def _on_connect(self, connection: psycopg.Connection[Any]) -> None:
        # Not as options of the connection: poolers in between refuse those they do not know.
        timeout_ms = str(int(self._limits.statement_timeout_s * 1000))
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("SELECT set_config(%s, %s, false)", (name, timeout_ms))
        connection.commit()

    def _transact(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        with journal_errors():
            for _ in range(TRIES_MAX - 1):
                ended = False
                try:
                    with engine.begin() as conn:
                        result = work(conn)
                        ended = True  # what fails from here on may be committed all the same
                    return result
                except DBAPIError as error:
                    # Also a connection that was lost before: the server restarted, and the pool did not know.
                    undone = error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _UNDONE
                    if ended or not undone:
                        raise
            with engine.begin() as conn:
                return work(conn)


def _dsn(url: str, password: str, limits: ServerLimits) -> str:
    """Raises ValueError, which does not show the url: it may hold a password."""
    given: dict[str, Any] | None = None
    with suppress(psycopg.ProgrammingError):  # whose message may show a part of it
        given = conninfo.conninfo_to_dict(url)
    if given is None:
        raise ValueError("the journal's URL is not one that PostgreSQL takes")
    silent_ms = int(limits.statement_timeout_s * 1000)
    ours: dict[str, Any] = {
        "connect_timeout": max(2, round(limits.connect_timeout_s)),  # libpq takes whole seconds, two at least
        "target_session_attrs": "read-write",  # of several servers the one that takes writes
        "tcp_user_timeout": silent_ms,
        "keepalives_idle": max(1, silent_ms // 2000),
        "keepalives_interval": max(1, silent_ms // 4000),
        "application_name": "semmem",
    }
    return conninfo.make_conninfo(**{**ours, **given}, **({"password": password} if password else {}))
