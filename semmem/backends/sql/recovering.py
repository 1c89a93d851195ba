"""A new journal out of what can be read of a damaged one. All calls block; the damaged file is only read.

Tables are copied as they are, row by row. What of them is gone is counted, and what hung on it is put right: a turn
whose batch is gone waits for another one."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sqlalchemy import create_engine

from semmem.backends.sql import tables
from semmem.backends.sql.damaged_pages import DamagedFile, Walked
from semmem.backends.sql.database import journal_errors
from semmem.backends.sql.schema import VERSION_TABLE, bring_up_to_date
from semmem.backends.sql.tables import MARKS, SCHEMA_VERSION, conversation_messages, forgotten, journal_schema, metadata
from semmem.ports.errors import JournalError

TELL_OF_ERASURES = frozenset(table.name for table in (*MARKS, tables.pending_erasures, tables.erasures))
"""Without a row of these something erased could be shown or learnt again."""
ROWS_IN_SLICE = 500
MASTER_ROOT = 1


@dataclass(slots=True)
class Salvage:
    """By table: how many rows were saved, and how many were lost (None: nobody can say). ``erasures_lost``: the tables
    among the lost ones that tell what is erased; ``log_is_damaged``: the newest commits are lost, erasures maybe among
    them."""

    saved: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int | None] = field(default_factory=dict)
    log_is_damaged: bool = False

    @property
    def erasures_lost(self) -> list[str]:
        return sorted(TELL_OF_ERASURES & self.lost.keys())


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where a table is in the damaged file. ``row_id``: the column that is the row's id, and is not stored."""

    root: int
    columns: tuple[str, ...]
    row_id: int | None
    index: int | None


def is_sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with the file; it stays as it is, and so does its log. Raises OSError."""
    beside = [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm")]
    made = [each for each in beside if not each.exists()]
    with path.open("rb") as file:
        if not file.read(1):
            return False  # SQLite would make a new one of it
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as journal:
            return [row[0] for row in journal.execute("PRAGMA integrity_check(1)")] == ["ok"]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return False
        raise JournalError(f"{path} cannot be read: {error}") from None
    finally:
        for each in made:
            each.unlink(missing_ok=True)


def salvage(damaged: Path, new: Path, *, now: float) -> Salvage:
    """Fill ``new``, a file that is not there yet, from ``damaged``; it is on the disk then. ``now``: nothing that was
    said before and is not known here is taken from what clients resend, since it may be erased. Raises JournalError for
    what is another database, or a later build's journal, and OSError."""
    _make(new)
    found, source = Salvage(), DamagedFile(damaged)
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as journal:
            journal.execute("PRAGMA synchronous=OFF")  # it has no name yet: a half of it is thrown away
            journal.execute("BEGIN")
            _fill(journal, source, found)
            _put_right(journal, found)
            if found.lost or source.log_is_damaged:  # a mark that names nobody is everybody's (marks.EVERYBODY)
                names = ", ".join(forgotten.primary_key.columns.keys())
                journal.execute(
                    f"INSERT OR REPLACE INTO forgotten ({names}, forgotten_at) VALUES ('', '', '', '', ?)", [now]
                )
            journal.execute("COMMIT")
            found.log_is_damaged = source.log_is_damaged
    except sqlite3.Error as error:
        raise JournalError(f"{new} cannot be written: {error}") from None
    finally:
        source.close()
    if not is_sound(new):
        raise JournalError(f"{new} was written, and cannot be read")
    _to_disk(new)
    return found


def _make(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    engine = create_engine(f"sqlite:///{path}")
    with journal_errors(), engine.begin() as conn:
        bring_up_to_date(conn)
    engine.dispose()


def _to_disk(path: Path) -> None:
    for each in (path, path.parent):
        opened = os.open(each, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _fill(journal: sqlite3.Connection, source: DamagedFile, found: Salvage) -> None:
    kept, whole = _catalogue(source)
    if whole and journal_schema.name not in kept:
        raise JournalError("there is a database, but it is not a journal of semmem")
    if schema := kept.get(journal_schema.name):
        versions = [rowid if row[:1] == [None] else row[0] for rowid, row in source.rows(schema.root, Walked())]
        if any(version > SCHEMA_VERSION for version in versions):
            raise JournalError(f"the journal is a later build's; this one knows version {SCHEMA_VERSION}")
    for table in sorted(metadata.tables.keys() - {journal_schema.name, VERSION_TABLE}):
        if table in kept:
            _copy(journal, source, table, kept[table], found)
        elif not whole:
            found.lost[table] = None


def _catalogue(source: DamagedFile) -> tuple[dict[str, _Kept], bool]:
    """The tables by name, and whether these are all."""
    walked, kept = Walked(), dict[str, _Kept]()
    rows = [row for _, row in source.rows(MASTER_ROOT, walked) if len(row) == 5]
    roots = {row[2]: row[3] for row in rows if row[0] == "index" and str(row[1]).startswith("sqlite_autoindex_")}
    with closing(sqlite3.connect(":memory:")) as scratch:
        for kind, name, _, root, sql in rows:
            if kind == "table" and not str(name).startswith("sqlite_"):
                try:
                    kept[name] = _described(scratch, name, root, sql, roots.get(name))
                except sqlite3.Error:
                    walked.bad += 1
    return kept, not walked.bad and bool(rows)


def _described(scratch: sqlite3.Connection, name: str, root: int, sql: str, index: int | None) -> _Kept:
    scratch.execute(sql)
    columns = scratch.execute("SELECT name, type, pk FROM pragma_table_info(?)", [name]).fetchall()
    keys = [place for place, column in enumerate(columns) if column[2]]
    is_row_id = len(keys) == 1 and str(columns[keys[0]][1]).upper() == "INTEGER"
    return _Kept(root, tuple(column[0] for column in columns), keys[0] if is_row_id else None, index)


def _copy(journal: sqlite3.Connection, source: DamagedFile, table: str, kept: _Kept, found: Salvage) -> None:
    known = {column.name for column in metadata.tables[table].columns}
    walked, saved = Walked(), 0
    rows = _named(source, kept, walked)
    while some := list(islice(rows, ROWS_IN_SLICE)):
        for row in some:
            values = {name: value for name, value in row.items() if name in known}
            if table == forgotten.name and not values.get("forgotten_at"):
                continue  # zeros in place of a time
            told = journal.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                list(values.values()),
            )
            saved += told.rowcount
    found.saved[table] = saved
    whole = source.entries(kept.index) if kept.index is not None else None
    if whole is not None and whole > saved:
        found.lost[table] = whole - saved
    elif whole is None and (walked.bad or saved < walked.read):
        found.lost[table] = None


def _named(source: DamagedFile, kept: _Kept, walked: Walked) -> Iterator[dict[str, object]]:
    """Rows by the names of their columns. A row that is older than a column does not have it."""
    for rowid, row in source.rows(kept.root, walked):
        if len(row) > len(kept.columns):
            continue
        if kept.row_id is not None and kept.row_id < len(row):
            row[kept.row_id] = rowid
        yield dict(zip(kept.columns, row, strict=False))


def _put_right(journal: sqlite3.Connection, found: Salvage) -> None:
    """What hangs on rows that are gone."""
    journal.execute(
        "UPDATE turns SET batch_id = NULL WHERE done_at IS NULL AND batch_id NOT IN (SELECT id FROM batches)"
    )
    if tables.users.name in found.lost:
        for table in ("turns", "versions", "conversations"):
            journal.execute(f"INSERT OR IGNORE INTO users (user_id) SELECT DISTINCT user_id FROM {table}")
        journal.execute("DELETE FROM users WHERE user_id = ''")
    if tables.conversations.name in found.lost:  # whose they were, and what of them is withheld, is not known any more
        gone = journal.execute(
            "DELETE FROM conversation_messages WHERE conversation_id NOT IN (SELECT id FROM conversations)"
        ).rowcount
        messages = conversation_messages.name
        if gone:
            lost = found.lost.get(messages, 0)
            found.saved[messages] -= gone
            found.lost[messages] = None if lost is None else lost + gone
