"""The file of an empty journal: it takes longer to make its tables than most tests take that need one."""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from semmem.backends.sql.journal import SqlJournal


def empty_journal(path: Path) -> Path:
    """Put one there, as ``SqlJournal(path).open()`` does, if there is none yet."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(_made_once())
    return path


def empty_journal_bytes() -> int:
    """How large the file is before anything is in it."""
    return len(_made_once())


@cache
def _made_once() -> bytes:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:  # the caller's may have a loop
        path = Path(folder) / "journal.db"
        thread.submit(asyncio.run, _make(path)).result()
        return path.read_bytes()


async def _make(path: Path) -> None:
    journal = SqlJournal(path)
    await journal.open()
    await journal.close()
