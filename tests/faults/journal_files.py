"""The journal's file as it lies on the disk after a kill: what was accepted, and what a torn write leaves of it."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import struct
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from semmem.backends.sql.journal import SqlJournal

NAME = "journal.db"
WAL_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """A turn whose user text is in the file. ``state``: ``waiting``, ``in a batch`` or ``done``."""

    id: str
    user: str
    text: str
    answer: str | None
    state: str


def copy_journal(data_dir: Path, to: Path, *, wal_bytes: int | None = None) -> Path:
    """The file and its write-ahead log, cut to ``wal_bytes``; the log's index is left to be made anew."""
    to.mkdir(parents=True)
    shutil.copyfile(data_dir / NAME, to / NAME)
    wal = data_dir / f"{NAME}-wal"
    if wal.exists():
        (to / wal.name).write_bytes(wal.read_bytes()[:wal_bytes])
    return to


def accepted_turns(folder: Path) -> dict[str, AcceptedTurn]:
    """The turns in a copy, by id. The file must be whole."""
    with closing(sqlite3.connect(folder / NAME)) as journal:
        (verdict,) = journal.execute("PRAGMA integrity_check").fetchone()
        assert verdict == "ok", verdict
        rows = journal.execute(
            """
            select id, user_id, user_text, answer,
                case when done_at is not null then 'done' when batch_id is not null then 'in a batch'
                else 'waiting' end
            from turns where user_id <> ''
            """
        ).fetchall()
    return {row[0]: AcceptedTurn(*row) for row in rows}


def commit_ends(wal: bytes) -> list[int]:
    """Where committed transactions end in a write-ahead log, in bytes; see "The WAL file format" in SQLite's manual."""
    if len(wal) < WAL_HEADER_BYTES:
        return []
    (page_bytes,) = struct.unpack_from(">I", wal, 8)
    salts = wal[16:24]
    ends, position = [], WAL_HEADER_BYTES
    while position + FRAME_HEADER_BYTES + page_bytes <= len(wal) and wal[position + 8 : position + 16] == salts:
        (size_after_commit,) = struct.unpack_from(">I", wal, position + 4)
        position += FRAME_HEADER_BYTES + page_bytes
        if size_after_commit:
            ends.append(position)
    return ends


def synced_bytes(data_dir: Path) -> int:
    """How much of the log no loss of power can take: what a checkpoint has begun to write into the file it has synced
    before. See "The WAL-Index File Format" in SQLite's manual: nBackfill and nBackfillAttempted, in frames."""
    wal, index = data_dir / f"{NAME}-wal", data_dir / f"{NAME}-shm"
    if not (wal.exists() and index.exists()) or wal.stat().st_size < WAL_HEADER_BYTES:
        return 0
    (page_bytes,) = struct.unpack_from(">I", wal.read_bytes()[:WAL_HEADER_BYTES], 8)
    told = index.read_bytes()[:136]
    frames = max(struct.unpack_from("=I", told, offset)[0] for offset in (96, 128)) if len(told) == 136 else 0
    return WAL_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + int(page_bytes)) if frames else 0


def survives_a_tear(data_dir: Path, scratch: Path, wal_bytes: int) -> int:
    """Tear a copy's log and open it as semmem does: every commit before the tear is there, and nothing else.

    How many turns are left.
    """
    wal = data_dir / f"{NAME}-wal"
    ends = commit_ends(wal.read_bytes()) if wal.exists() else []
    whole = max((end for end in ends if end <= wal_bytes), default=0)
    wanted = accepted_turns(copy_journal(data_dir, scratch / "whole", wal_bytes=whole))
    torn = copy_journal(data_dir, scratch / "torn", wal_bytes=wal_bytes)
    asyncio.run(_opens(torn / NAME))
    found = accepted_turns(torn)
    assert found == wanted, f"torn at {wal_bytes}: {len(found)} turns, {len(wanted)} were committed before"
    return len(found)


async def _opens(path: Path) -> None:
    journal = SqlJournal(path)
    await journal.open()
    try:
        await journal.counts()
        await journal.end_session("nobody", "none", now=0.0)  # a write
    finally:
        await journal.close()
