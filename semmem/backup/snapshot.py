"""One moment of a running semmem as a backup, while it goes on learning and answering.

Memories are copied user by user first, and those that changed meanwhile again, until few are left. Then writes to the
store are held off, for as long as the journal's copy and those few users take: what is in the journal and what is in
the store belong together, as after a crash at that moment. Requests are served throughout.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.backup import folder, lines
from semmem.backup.everybody import Everybody
from semmem.backup.frames import file_frame, frame
from semmem.lifecycle.write_gate import WriteGate
from semmem.memory import Memory
from semmem.passages.shelves import everything
from semmem.ports.errors import SemmemError
from semmem.ports.store import Store

ROUNDS_MAX = 5
FEW = 50
"""So many users are copied while writes wait, unless more change in each of ROUNDS_MAX rounds."""
PROGRESS_USERS = 100
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal's file, for whoever copies it. Both calls block, and raise JournalError."""

    copy: Callable[[Path], None]
    """To a path that is not there."""
    census: Callable[[Path], dict[str, int]]
    """Of a copy: that it is whole, and how many rows it has of what."""


@dataclass(frozen=True, slots=True)
class About:
    """What a backup says of the semmem that it was taken of. ``fence`` is the file of the fence's key."""

    version: str
    signature: str
    dimension: int
    fence: Path


class BackupRunning(Exception):
    """One is being taken at this moment."""


class Snapshots:
    """Takes backups, one at a time. ``spool``: a folder for copies of what is being taken, on the same disk as the
    data; what an earlier process left there goes at once."""

    def __init__(
        self,
        store: Store,
        everybody: Everybody,
        gate: WriteGate,
        journal: Journal,
        about: About,
        *,
        spool: Path,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._everybody = everybody
        self._gate = gate
        self._journal = journal
        self._about = about
        self._spool = spool
        self._clock = clock
        self._running = False
        shutil.rmtree(spool, ignore_errors=True)

    async def frames(self) -> AsyncIterator[bytes]:
        """A backup as a stream (semmem.backup.frames). Raises BackupRunning before anything is given."""
        if self._running:
            raise BackupRunning
        self._running = True
        try:
            async for each in self._taken():
                yield each
        except (SemmemError, OSError) as error:
            yield frame({"failed": f"{type(error).__name__}: {error}"})
        finally:
            self._running = False
            shutil.rmtree(self._spool, ignore_errors=True)

    async def _taken(self) -> AsyncIterator[bytes]:
        await asyncio.to_thread(self._spool.mkdir, mode=0o700, parents=True)
        users = await self._everybody.users()
        copies = _Copies(self._spool / "copies")
        with self._gate.noting() as changed:
            for number, user in enumerate(users):
                await self._copy(copies, user)
                if number % PROGRESS_USERS == 0:
                    yield frame({"progress": f"copied {number} of {len(users)} users"})
            for _ in range(ROUNDS_MAX):
                if len(changed) <= FEW:
                    break
                yield frame({"progress": f"{len(changed)} users changed meanwhile, copied again"})
                await self._copy_changed(copies, changed)
            async with self._gate.closed():
                taken_at = self._clock()
                await asyncio.to_thread(self._journal.copy, self._spool / folder.JOURNAL)
                await self._copy_changed(copies, changed)
        yield frame({"progress": "copied; computing digests"})
        manifest = await asyncio.to_thread(self._assembled, copies, taken_at)
        for name in manifest["files"]:
            async for chunk in _chunks(self._spool / name):
                yield file_frame(name, chunk)
        yield frame({"manifest": manifest})

    async def _copy_changed(self, copies: _Copies, changed: set[str]) -> None:
        users = sorted(changed)
        changed.clear()
        for user in users:
            await self._copy(copies, user)

    async def _copy(self, copies: _Copies, user: str) -> None:
        await asyncio.to_thread(copies.put, user, await everything(self._store, user))

    def _assembled(self, copies: _Copies, taken_at: float) -> dict[str, Any]:
        """Put the files together. Blocking."""
        about, spool = self._about, self._spool
        header = lines.Header(lines.FORMAT, taken_at, about.signature, about.dimension, copies.users)
        end = lines.End(copies.users, copies.memories, 0)
        copies.write(spool / folder.MEMORIES, header, end)
        if about.fence.exists():
            shutil.copy(about.fence, spool / folder.FENCE)
        return folder.signed(
            {
                "format": folder.FORMAT,
                "semmem": about.version,
                "taken_at": taken_at,
                "signature": about.signature,
                "dimension": about.dimension,
                "users": copies.users,
                "memories": copies.memories,
                "journal": self._journal.census(spool / folder.JOURNAL),
                "files": folder.describe_all(spool),
            }
        )


class _Copies:
    """Lines of users' memories in one file; of a user that was put twice, only the later ones count. Blocking."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int, int]] = {}

    @property
    def users(self) -> int:
        return len(self._places)

    @property
    def memories(self) -> int:
        return sum(number for _, _, number in self._places.values())

    def put(self, user: str, memories: Iterable[Memory]) -> None:
        told = [lines.memory_line(memory) for memory in sorted(memories, key=lambda memory: memory.id)]
        self._places.pop(user, None)
        if not told:
            return
        with self._path.open("ab") as file:
            start = file.tell()
            file.write(b"".join(told))
            self._places[user] = start, file.tell() - start, len(told)

    def write(self, target: Path, header: lines.Header, end: lines.End) -> None:
        """What counts, between the first and the last line; the rest is gone with its file."""
        with target.open("wb") as new:
            new.write(lines.digested(header))
            if self._places:
                with self._path.open("rb") as old:
                    for _, (start, size, _) in sorted(self._places.items()):
                        old.seek(start)
                        new.write(old.read(size))
            new.write(lines.digested(end))
        self._path.unlink(missing_ok=True)


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
