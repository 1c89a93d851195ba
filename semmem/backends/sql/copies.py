"""A whole copy of an SQLite file that others go on writing: SQLite's own online backup. All calls block."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from semmem.ports.errors import JournalError

COUNTED = ("turns", "versions", "users")


def copy(source: Path, target: Path, *, busy_timeout_s: float = 5.0) -> None:
    """One consistent state of ``source`` as a new file, for its owner alone. Writers do not wait for it.

    Raises JournalError when there is no such journal, or it cannot be read, and OSError when ``target`` is there.
    """
    if not source.is_file():
        raise JournalError(f"there is no journal at {source}")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(source, timeout=busy_timeout_s)) as read, closing(sqlite3.connect(target)) as new:
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
            return {name: _count(journal, name) for name in COUNTED}
    except sqlite3.Error as error:
        raise JournalError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from None


def _count(journal: sqlite3.Connection, table: str) -> int:
    there = journal.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [table]).fetchone()
    if there is None:  # a schema of before
        return 0
    (rows,) = journal.execute(f"SELECT count(*) FROM {table}").fetchone()  # a name of COUNTED
    return int(rows)
