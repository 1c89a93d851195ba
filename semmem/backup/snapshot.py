"""One moment of a running semmem as a backup, while it goes on learning and answering.

Memories are copied user by user first, and those that changed meanwhile again, until few are left. Then writes to the
store are held off, for as long as the journal's copy and those few users take: what is in the journal and what is in
the store belong together, as after a crash at that moment. Requests are served throughout."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from semmem.backup import folder, lines
from semmem.backup.exporting import Everybody
from semmem.backup.folder import file_frame, frame
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


class BackupRunning(Exception):
    """One is being taken at this moment."""


@dataclass(eq=False, repr=False)
class Snapshots:
    """Takes backups, one at a time. ``copy_journal`` writes the journal's file to a path that is not there, ``census``
    says that such a copy is whole, and how many rows it has of what; both block, and raise JournalError. ``fence`` is
    the file of the fence's key. ``spool``: a folder for copies of what is being taken, on the same disk as the data;
    what an earlier process left there goes at once."""

    store: Store
    everybody: Everybody
    gate: WriteGate
    copy_journal: Callable[[Path], None]
    census: Callable[[Path], dict[str, int]]
    _: KW_ONLY
    version: str
    signature: str
    dimension: int
    fence: Path
    spool: Path
    clock: Callable[[], float]
    _running: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        shutil.rmtree(self.spool, ignore_errors=True)

    async def frames(self) -> AsyncIterator[bytes]:
        """A backup as a stream (semmem.backup.folder). Raises BackupRunning before anything is given."""
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
            shutil.rmtree(self.spool, ignore_errors=True)

    async def _taken(self) -> AsyncIterator[bytes]:
        await asyncio.to_thread(self.spool.mkdir, mode=0o700, parents=True)
        users = await self.everybody.users()
        copies = _Copies(self.spool / "copies")
        with self.gate.noting() as changed:
            for number, user in enumerate(users):
                await self._copy(copies, user)
                if number % PROGRESS_USERS == 0:
                    yield frame({"progress": f"copied {number} of {len(users)} users"})
            for _ in range(ROUNDS_MAX):
                if len(changed) <= FEW:
                    break
                yield frame({"progress": f"{len(changed)} users changed meanwhile, copied again"})
                await self._copy_changed(copies, changed)
            async with self.gate.closed():
                taken_at = self.clock()
                await asyncio.to_thread(self.copy_journal, self.spool / folder.JOURNAL)
                await self._copy_changed(copies, changed)
        yield frame({"progress": "copied; computing digests"})
        manifest = await asyncio.to_thread(self._assembled, copies, taken_at)
        for name in manifest["files"]:
            with await asyncio.to_thread((self.spool / name).open, "rb") as file:
                while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                    yield file_frame(name, chunk)
        yield frame({"manifest": manifest})

    async def _copy_changed(self, copies: _Copies, changed: set[str]) -> None:
        users = sorted(changed)
        changed.clear()
        for user in users:
            await self._copy(copies, user)

    async def _copy(self, copies: _Copies, user: str) -> None:
        await asyncio.to_thread(copies.put, user, await everything(self.store, user))

    def _assembled(self, copies: _Copies, taken_at: float) -> dict[str, Any]:
        """Put the files together. Blocking."""
        spool = self.spool
        header = lines.Header(lines.FORMAT, taken_at, self.signature, self.dimension, copies.users)
        end = lines.End(copies.users, copies.memories, 0)
        copies.write(spool / folder.MEMORIES, header, end)
        if self.fence.exists():
            shutil.copy(self.fence, spool / folder.FENCE)
        return folder.signed(
            {
                "format": folder.FORMAT,
                "semmem": self.version,
                "taken_at": taken_at,
                "signature": self.signature,
                "dimension": self.dimension,
                "users": copies.users,
                "memories": copies.memories,
                "journal": self.census(spool / folder.JOURNAL),
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
