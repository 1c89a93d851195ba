"""Lines of an export into a running semmem: what is there is not doubled, and what was erased does not come back."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, Protocol

from semmem.backup import lines
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.spared import as_settled
from semmem.lifecycle.writes import Writes
from semmem.memory import Memory
from semmem.passages.shelves import everything
from semmem.ports.embedder import Embedder
from semmem.ports.erasure import KnownErasures
from semmem.ports.memory_records import ManagementRecords, UseRecords, Uses
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


AT_ONCE = 32
"""So many memories of a user are written at a time: journal, embedder and store have something to do all the while."""


class _Placed(NamedTuple):
    """A line at its place in the call: a memory, with its uses if any are told, or an earlier version of one."""

    place: int
    memory: Memory
    uses: Uses | None
    is_current: bool


class _Into(NamedTuple):
    """Where one user's lines go, whose vectors have this signature: what is there, and what becomes of them."""

    writes: Writes
    present: dict[str, Memory]
    signature: str
    done: Imported


@dataclass(eq=False, repr=False)
class Imports:
    """``signature`` and ``dimension``: of the store's vectors; other ones are computed again. ``wait_s``: how long a
    user's lines wait while others change the same user's memories."""

    store: Store
    embedder: Embedder
    records: ImportRecords
    holds: Holds
    quota: Quota
    _: KW_ONLY
    dimension: int
    wait_s: float = 30.0

    async def take(self, signature: str, texts: Sequence[str]) -> Imported:
        """Import lines of a file whose vectors have this signature. Raises WrongLine before anything is changed; Busy,
        StoreError, JournalError and EmbedderError when some of the lines may be imported and others not: the same call
        again does the rest."""
        done = Imported()
        placed = await asyncio.to_thread(_read, texts)
        for user, group in groupby(placed, key=lambda each: each.memory.user):
            await self._take_user(user, list(group), signature, done)
        return done

    async def _take_user(self, user: str, placed: Sequence[_Placed], signature: str, done: Imported) -> None:
        async with self.holds.held(user, wait_s=self.wait_s) as hold_id:
            erased = await self._erased(placed)
            left = [each for each in placed if (each.memory.id, each.memory.version) not in erased]
            done.erased += len(placed) - len(left)
            await self.records.register_user(user)
            for version in [each.memory for each in left if not each.is_current]:
                await self.records.keep_version(version)
                done.versions += 1
            # Read once: nobody else writes them meanwhile, and what is erased the hold keeps out.
            present = {memory.id: memory for memory in await everything(self.store, user)}
            into = _Into(Writes(self.store, self.records, hold_id), present, signature, done)
            for some in _apart([each for each in left if each.is_current], at_once=AT_ONCE):
                await self._take_some(some, into)
            done.over_quota += await self.quota.make_room(user)

    async def _erased(self, placed: Sequence[_Placed]) -> set[tuple[str, int]]:
        """Asked of each version apart: a memory may have been erased before it was said anew."""
        found = set()
        for some in _apart(placed, at_once=len(placed)):
            versions = {each.memory.id: each.memory.version for each in some}
            erased = await self.records.erased_among([each.memory for each in some])
            found |= {(memory_id, versions[memory_id]) for memory_id in erased}
        return found

    async def _take_some(self, some: Sequence[_Placed], into: _Into) -> None:
        """All of them end, also when one fails: what is under way belongs to the hold."""
        taken = await asyncio.gather(*(self._take(each, into) for each in some), return_exceptions=True)
        new = [each for each, is_new in zip(some, taken, strict=True) if is_new is True]
        if uses := [(each.memory.user, each.memory.id, each.uses) for each in new if each.uses is not None]:
            await self.records.record_uses(uses)
        for failed in taken:
            if isinstance(failed, BaseException):
                raise failed

    async def _take(self, placed: _Placed, into: _Into) -> bool:
        memory, done = placed.memory, into.done
        old = into.present.get(memory.id)
        if old is None:
            if await into.writes.put(await self._embedded(memory, into.signature)):
                into.present[memory.id] = memory
                done.imported += 1
                return True
            done.erased += 1
        elif old.version < memory.version:
            if await into.writes.replace(old, await self._embedded(memory, into.signature)):
                into.present[memory.id] = memory
                done.updated += 1
        elif old.version > memory.version or _comparable(old) == _comparable(memory):
            done.unchanged += 1
        else:
            done.conflicts.append(placed.place)
        return False

    async def _embedded(self, memory: Memory, signature: str) -> Memory:
        fits = memory.embedding is not None and memory.embedding.shape == (self.dimension,)
        if fits and signature == self.embedder.signature:
            return memory
        return replace(memory, embedding=await self.embedder.embed(unquoted(memory.content)))


def _apart(placed: Sequence[_Placed], *, at_once: int) -> Iterator[list[_Placed]]:
    """In order, so many at a time, and of one memory one at a time."""
    some: dict[str, _Placed] = {}
    for each in placed:
        if each.memory.id in some or len(some) == at_once:
            yield [*some.values()]
            some = {}
        some[each.memory.id] = each
    if some:
        yield [*some.values()]


def _read(texts: Sequence[str]) -> list[_Placed]:
    placed: list[_Placed] = []
    for place, text in enumerate(texts):
        try:
            line = lines.read_line(text.encode("utf-8", "surrogatepass"))
            if not isinstance(line, lines.MemoryLine | lines.VersionLine):
                raise lines.Unreadable("not a line of a memory")
            # No batch of this journal will confirm it: the turn that it was learnt from stayed where it came from.
            memory, is_current = as_settled(lines.memory_of(line)), isinstance(line, lines.MemoryLine)
        except lines.Unreadable as error:
            raise WrongLine(place, str(error)) from None
        uses = Uses(*line.uses) if isinstance(line, lines.MemoryLine) and line.uses else None
        placed.append(_Placed(place, memory, uses, is_current))
    return placed


def _comparable(memory: Memory) -> Memory:
    """Times as every store keeps them: in whole milliseconds."""
    memory = as_settled(memory)
    expires_at = None if memory.expires_at is None else round(memory.expires_at, 3)
    return replace(
        memory, created_at=round(memory.created_at, 3), updated_at=round(memory.updated_at, 3), expires_at=expires_at
    )
