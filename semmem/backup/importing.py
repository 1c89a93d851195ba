"""Lines of an export into a running semmem: what is there is not doubled, and what was erased does not come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

from semmem.backup import lines
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.writes import Writes
from semmem.memory import PROVISIONAL, Memory
from semmem.passages.shelves import everything
from semmem.ports.embedder import Embedder
from semmem.ports.erasure import KnownErasures
from semmem.ports.memory_records import ManagementRecords, UseRecords
from semmem.ports.store import Store
from semmem.text.quoting import unquoted


class ImportRecords(ManagementRecords, KnownErasures, UseRecords, Protocol):
    """What is kept beside memories, and what was erased of them. Raises JournalError."""


class WrongLine(Exception):
    """The line at ``place`` (from 0) cannot be imported; nothing of its call was."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


@dataclass(slots=True)
class Imported:
    """What became of lines: memories that are new here, that got a newer version, that were here already, that are
    erased here; earlier versions; ``conflicts``: places (from 0) of memories that say something else here in the same
    version, which stays; ``over_quota``: memories that went for want of room."""

    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    erased: int = 0
    versions: int = 0
    over_quota: int = 0
    conflicts: list[int] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        return asdict(self)


AT_ONCE = 32
"""So many memories of a user are written at a time: journal, embedder and store have something to do all the while."""

_Line = TypeVar("_Line")
_Placed = tuple[int, _Line, Memory]
_Any = lines.MemoryLine | lines.VersionLine


class Imports:
    """``signature`` and ``dimension``: of the store's vectors; other ones are computed again. ``wait_s``: how long a
    user's lines wait while others change the same user's memories."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        records: ImportRecords,
        holds: Holds,
        quota: Quota,
        *,
        dimension: int,
        wait_s: float = 30.0,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._records = records
        self._holds = holds
        self._quota = quota
        self._dimension = dimension
        self._wait_s = wait_s

    async def take(self, signature: str, texts: Sequence[str]) -> Imported:
        """Import lines of a file whose vectors have this signature.

        Raises WrongLine before anything is changed; Busy, StoreError, JournalError and EmbedderError when some of the
        lines may be imported and others not: the same call again does the rest.
        """
        done = Imported()
        placed = await asyncio.to_thread(_read, texts)
        for user, group in groupby(placed, key=lambda each: each[2].user):
            await self._take_user(user, list(group), signature, done)
        return done

    async def _take_user(self, user: str, placed: Sequence[_Placed[_Any]], signature: str, done: Imported) -> None:
        async with self._holds.held(user, wait_s=self._wait_s) as hold_id:
            erased = await self._erased([memory for _, _, memory in placed])
            left = [each for each in placed if (each[2].id, each[2].version) not in erased]
            done.erased += len(placed) - len(left)
            await self._records.register_user(user)
            for _, line, memory in left:
                if isinstance(line, lines.VersionLine):
                    await self._records.keep_version(memory)
                    done.versions += 1
            told = [(place, line, memory) for place, line, memory in left if isinstance(line, lines.MemoryLine)]
            writes = Writes(self._store, self._records, hold_id)
            present = await self._present(user)
            for some in _apart(told, at_once=AT_ONCE):
                await self._take_some(some, present, writes, signature, done)
            done.over_quota += await self._quota.make_room(user)

    async def _erased(self, memories: Sequence[Memory]) -> set[tuple[str, int]]:
        """Asked of each version apart: a memory may have been erased before it was said anew."""
        found = set()
        for some in _apart([(0, None, memory) for memory in memories], at_once=len(memories)):
            versions = {memory.id: memory.version for _, _, memory in some}
            erased = await self._records.erased_among([memory for _, _, memory in some])
            found |= {(memory_id, versions[memory_id]) for memory_id in erased}
        return found

    async def _present(self, user: str) -> dict[str, Memory]:
        """Read once: nobody else writes the user's memories meanwhile, and what is erased the hold keeps out."""
        return {memory.id: memory for memory in await everything(self._store, user)}

    async def _take_some(
        self,
        some: Sequence[_Placed[lines.MemoryLine]],
        present: dict[str, Memory],
        writes: Writes,
        signature: str,
        done: Imported,
    ) -> None:
        """All of them end, also when one fails: what is under way belongs to the hold."""
        taking = (self._take(place, memory, present, writes, signature, done) for place, _, memory in some)
        taken = await asyncio.gather(*taking, return_exceptions=True)
        new = [each for each, is_new in zip(some, taken, strict=True) if is_new is True]
        uses = [(memory.user, memory.id, lines.uses_of(line)) for _, line, memory in new if line.uses]
        if uses:
            await self._records.record_uses(uses)
        for failed in taken:
            if isinstance(failed, BaseException):
                raise failed

    async def _take(
        self, place: int, memory: Memory, present: dict[str, Memory], writes: Writes, signature: str, done: Imported
    ) -> bool:
        """Whether it is new here."""
        old = present.get(memory.id)
        if old is None:
            if await writes.put(await self._embedded(memory, signature)):
                present[memory.id] = memory
                done.imported += 1
                return True
            done.erased += 1
        elif old.version < memory.version:
            if await writes.replace(old, await self._embedded(memory, signature)):
                present[memory.id] = memory
                done.updated += 1
        elif old.version > memory.version or _comparable(old) == _comparable(memory):
            done.unchanged += 1
        else:
            done.conflicts.append(place)
        return False

    async def _embedded(self, memory: Memory, signature: str) -> Memory:
        fits = memory.embedding is not None and memory.embedding.shape == (self._dimension,)
        if fits and signature == self._embedder.signature:
            return memory
        return replace(memory, embedding=await self._embedder.embed(unquoted(memory.content)))


def _apart(placed: Sequence[_Placed[_Line]], *, at_once: int) -> Iterator[list[_Placed[_Line]]]:
    """In order, so many at a time, and of one memory one at a time."""
    some: dict[str, _Placed[_Line]] = {}
    for each in placed:
        if each[2].id in some or len(some) == at_once:
            yield [*some.values()]
            some = {}
        some[each[2].id] = each
    if some:
        yield [*some.values()]


def _read(texts: Sequence[str]) -> list[_Placed[_Any]]:
    placed: list[_Placed[_Any]] = []
    for place, text in enumerate(texts):
        try:
            line = lines.read_line(text.encode("utf-8", "surrogatepass"))
            if not isinstance(line, lines.MemoryLine | lines.VersionLine):
                raise lines.Unreadable("not a line of a memory")
            placed.append((place, line, _settled(lines.memory_of(line))))
        except lines.Unreadable as error:
            raise WrongLine(place, str(error)) from None
    return placed


def _settled(memory: Memory) -> Memory:
    """No batch of this journal will confirm it: the turn that it was learnt from stayed where it came from."""
    metadata = {name: value for name, value in memory.metadata.items() if name != PROVISIONAL}
    return replace(memory, metadata=metadata)


def _comparable(memory: Memory) -> Memory:
    """Times as every store keeps them: in whole milliseconds."""
    memory = _settled(memory)
    expires_at = None if memory.expires_at is None else round(memory.expires_at, 3)
    return replace(
        memory,
        created_at=round(memory.created_at, 3),
        updated_at=round(memory.updated_at, 3),
        expires_at=expires_at,
    )
