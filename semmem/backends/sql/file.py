"""One SQLite file: its modes, its locks, and a whole copy of it.

Writes and reads have a thread each. A write may wait as long as ``busy_timeout_s`` for another process; with a
write-ahead log a reader never waits for a writer. What changes nothing in the file does not change its log either."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from semmem.backends.disk_room import check_room
from semmem.backends.sql.database import Database, Threads, journal_errors
from semmem.ports.errors import JournalDamaged, JournalError, JournalFull

T = TypeVar("T")
Synchronous = Literal["NORMAL", "FULL", "EXTRA"]

REWRITTEN_BYTES_MAX = 512 * 1024 * 1024
"""A larger file is not written anew: its copy is made in memory, in no other file that could be left behind."""
ROOM_BYTES = 64 * 1024
"""More than one commit of turns needs on most days: a page of 4 KiB for each that it touches."""
_LOOK_S = 0.005
_BEGIN = "semmem_begin"
"""Execution option: the statement that begins a transaction, or empty for none."""
COUNTED = ("turns", "versions", "users")


def sqlite_path(url_or_path: str | Path) -> Path:
    """The file that a path or an ``sqlite:///`` URL names. Raises ValueError for anything else."""
    text = str(url_or_path)
    if "://" not in text:
        return Path(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = URL.create("unreadable")
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        # The text itself may hold a password.
        raise ValueError(
            "the journal needs a path, or a URL like sqlite:////var/lib/journal.db or postgresql://host/db"
        )
    return Path(str(url.database))


class SqliteFile(Database):
    """Runs functions in transactions on one SQLite file, off the event loop, with the settings of SqlJournal."""

    def __init__(
        self, path: Path, *, busy_timeout_s: float, synchronous: Synchronous, size_bytes_max: int | None
    ) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._synchronous = synchronous
        self._size_bytes_max = size_bytes_max

    def last_write(self) -> tuple[int, int] | None:
        """Another value after every commit of any process, but for one within milliseconds of another. Asks the file
        system and no thread: some microseconds."""
        try:
            log = os.stat(f"{self._path}-wal")
        except OSError:
            return None
        return log.st_mtime_ns, log.st_size

    async def purge(self) -> bool:
        """Write the file anew, and empty the write-ahead log, which otherwise keeps what was overwritten in the file
        itself. Writes wait for it. False for a file above REWRITTEN_BYTES_MAX: then only the log is emptied."""
        threads = self._opened()
        plain = threads.writes.execution_options(**{_BEGIN: ""})
        rewritten = await threads.write(lambda: self._transact(plain, _rewrite))
        await threads.write(lambda: self._transact(plain, _truncate_log))
        return rewritten

    def _transact(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        try:
            with journal_errors(), engine.begin() as conn:
                return work(conn)
        except JournalDamaged as error:  # whoever reads it has to know which file, and what helps
            raise JournalDamaged(
                f"{self._path} is damaged ({error}): stop semmem and run `semmem journal recover` with the same"
                " --config, which saves what can be read"
            ) from None

    async def check_room(self) -> None:
        """As Database says. Asked beside the file, whose log would be changed by every write to it."""
        try:
            await asyncio.to_thread(check_room, self._path.parent, ROOM_BYTES)
        except OSError as error:
            raise JournalFull(f"nothing can be written to the journal's folder: {error.strerror}") from None

    def _begin(self) -> Threads:
        """A transaction that writes holds the write lock from its beginning."""
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            connect_args={"timeout": self._busy_timeout_s, "check_same_thread": False},
            hide_parameters=True,
        )
        event.listen(engine, "connect", lambda connection, _record: self._on_connect(connection))
        event.listen(engine, "begin", _begin)
        begins = {each: engine.execution_options(**{_BEGIN: each}) for each in ("BEGIN", "BEGIN IMMEDIATE")}
        return Threads(begins["BEGIN"], begins["BEGIN IMMEDIATE"])

    def _on_connect(self, connection: sqlite3.Connection) -> None:
        # The driver would begin transactions by itself, too late and without the write lock.
        connection.isolation_level = None
        if write_ahead(connection, self._busy_timeout_s) != "wal":
            raise JournalError("the journal's file system does not allow a write-ahead log")
        for mode in (f"synchronous={self._synchronous}", "foreign_keys=ON", "secure_delete=ON", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {mode}")
        if self._size_bytes_max is not None:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count={max(1, self._size_bytes_max // page_bytes)}")

    def _prepare(self) -> None:
        """SQLite gives the log and its index the mode of the file, so the file must be private before it is used. An
        existing file is not opened here: closing it would drop the locks that other connections of this process hold on
        it."""
        with journal_errors():
            os.makedirs(self._path.parent, mode=0o700, exist_ok=True)
            try:
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                if self._path.stat().st_mode & 0o077:
                    self._path.chmod(0o600)


def write_ahead(connection: sqlite3.Connection, wait_s: float) -> str:
    """Ask for a write-ahead log; the mode that the file has then. Raises sqlite3.OperationalError. On a new file SQLite
    does not wait for another process that asks the same: it says at once that the file is busy."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_S)


def _begin(conn: Connection) -> None:
    if statement := conn.get_execution_options()[_BEGIN]:
        conn.exec_driver_sql(statement)


def _rewrite(conn: Connection) -> bool:
    """SQLite overwrites a row where it is removed (secure_delete), and not the copies that its pages keep of rows that
    were moved between them."""
    pages, page_bytes = (conn.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size"))
    if pages * page_bytes > REWRITTEN_BYTES_MAX:
        return False
    conn.exec_driver_sql("VACUUM")
    return True


def _truncate_log(conn: Connection) -> None:
    busy: Any = conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
    if busy:
        raise JournalError("the write-ahead log is in use and was not emptied")


class OnlyProcess:
    """One process on one journal: the file itself could be shared; what a process keeps in memory of it is not. Holds a
    lock beside the file until ``close``, or until the process ends, however it does."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = -1

    def open(self) -> None:
        """Blocking. Raises JournalError when another process has the journal, or no lock can be made."""
        try:
            self._journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(f"{self._journal}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{self._journal}.lock: {error.strerror}") from None
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except OSError:
            os.close(lock)
            raise JournalError(
                f"another semmem process has {self._journal}: give each a data_dir of its own, or all of them one"
                " PostgreSQL journal (journal.url)"
            ) from None
        self._lock = lock

    def close(self) -> None:
        """Idempotent. The file stays: somebody may be waiting to open it."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def copy_file(source: Path, target: Path) -> None:
    """One consistent state of ``source`` as a new file, for its owner alone. Writers do not wait for it. Raises
    JournalError when there is no such journal, or it cannot be read, and OSError when ``target`` is there."""
    if not source.is_file():
        raise JournalError(f"there is no journal at {source}")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as new:
            read.backup(new)
    except sqlite3.Error as error:
        raise JournalError(f"{source} cannot be copied: {type(error).__name__}: {error}") from None


def census(path: Path) -> dict[str, int]:
    """How many rows the tables have that a person asks for. Raises JournalError when the file is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as journal:
            (found,) = journal.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise JournalError(f"{path.name} is damaged: {found}")
            here = {name for (name,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            counts = ((name, f"SELECT count(*) FROM {name}" if name in here else "SELECT 0") for name in COUNTED)
            return {name: int(journal.execute(count).fetchone()[0]) for name, count in counts}
    except sqlite3.Error as error:
        raise JournalError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from None
