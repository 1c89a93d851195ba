"""The journal and the history of memories in an SQL database: a SQLite file, or a PostgreSQL server for many replicas.

Accepted means committed. With ``synchronous="NORMAL"`` a commit survives the death of the process, kill -9 included;
when the machine loses power the last commits before it may be missing, though the file stays whole. ``"FULL"`` waits
for the disk at every commit and survives that too.

What is erased is overwritten in a file, and ``purge`` empties the write-ahead log as well. Of a turn whose answer may
still be under way the bare id stays until it is pruned, so that the answer is turned away. An answer whose question
never arrived belongs to nobody who could be named; it goes when it is pruned."""

from pathlib import Path

from semmem.backends.sql.accounts import SqlAccounts
from semmem.backends.sql.batches import SqlBatches
from semmem.backends.sql.conversation_reads import SqlConversationReads
from semmem.backends.sql.conversations import SqlConversations
from semmem.backends.sql.database import Database, JournalLimits, ServerLimits, WatchedClock
from semmem.backends.sql.erasure import SqlErasure
from semmem.backends.sql.file import SqliteFile, Synchronous, sqlite_path
from semmem.backends.sql.housekeeping import SqlHousekeeping
from semmem.backends.sql.memory_records import SqlMemoryRecords
from semmem.backends.sql.recording import SqlRecording
from semmem.backends.sql.request_log import SqlRequestLog
from semmem.backends.sql.states import SqlSessionStates
from semmem.backends.sql.unlearnt import SqlUnlearnt
from semmem.backends.sql.usage import SqlUsage


def is_server(url_or_path: str | Path) -> bool:
    return str(url_or_path).startswith(("postgresql://", "postgres://"))


class SqlJournal(
    SqlRecording,
    SqlBatches,
    SqlUnlearnt,
    SqlMemoryRecords,
    SqlAccounts,
    SqlUsage,
    SqlRequestLog,
    SqlConversations,
    SqlConversationReads,
    SqlSessionStates,
    SqlErasure,
    SqlHousekeeping,
):
    """All parts of the journal on one database. Several processes and several objects may share it. ``url_or_path``: a
    path, ``sqlite:///path`` or ``postgresql://...``; ValueError for anything else. ``password`` and ``server`` are for
    PostgreSQL, what follows for SQLite. ``busy_timeout_s``: how long a write waits for another process before it is a
    JournalError. ``synchronous``: see above. ``size_bytes_max``: limit of the file's size, None for the disk's, beyond
    which writes fail until something is erased. ``clock``: this machine's."""

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        password: str = "",
        server: ServerLimits | None = None,
        busy_timeout_s: float = 5.0,
        synchronous: Synchronous = "NORMAL",
        size_bytes_max: int | None = None,
        limits: JournalLimits | None = None,
        clock: WatchedClock | None = None,
    ) -> None:
        database: Database
        if is_server(url_or_path):
            from semmem.backends.sql.server import PostgresServer  # imports a driver that one process alone never needs

            database = PostgresServer(str(url_or_path), password=password, limits=server or ServerLimits())
        else:
            database = SqliteFile(
                sqlite_path(url_or_path),
                busy_timeout_s=busy_timeout_s,
                synchronous=synchronous,
                size_bytes_max=size_bytes_max,
            )
        super().__init__(database, limits or JournalLimits(), clock or WatchedClock())

    async def open(self) -> None:
        await self._database.open()
        self._clock.look()
        await self._lower_marks(self._clock.now())  # of a process whose clock was ahead

    async def close(self) -> None:
        await self._database.close()

    def last_write(self) -> object:
        return self._database.last_write()
