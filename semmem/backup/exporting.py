"""Who has memories; and these with earlier versions and uses, user by user, as lines that another semmem imports."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from semmem.backup import lines
from semmem.memory import Memory, Scope
from semmem.passages.shelves import everything
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Enumerable, Store

USERS_MAX = 2**31 - 1


class Known(Protocol):
    """Who may have memories, as the journal knows it. Raises JournalError."""

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Everybody:
    """Both are asked: rows that are being moved may be missing in the store's answer, and users whom nobody has told
    the journal of in the other."""

    store: Enumerable
    known: Known

    async def users(self) -> list[str]:
        """Whoever has memories, or had some as far as the journal knows. Raises StoreError and JournalError."""
        known = await self.known.users_due(maintained_before=math.inf, limit=USERS_MAX)
        return sorted(await self.store.users() | set(known))


@dataclass(eq=False, repr=False)
class Exports:
    """``store`` as requests see it: what is being erased is not in it. ``dimension`` and ``signature`` of its vectors.
    Each user is one moment, all of them are not: who changes memories meanwhile is in it before or after."""

    store: Store
    everybody: Everybody
    records: MemoryRecords
    _: KW_ONLY
    signature: str
    dimension: int
    clock: Callable[[], float]

    async def stream(self, users: Sequence[str]) -> AsyncIterator[bytes]:
        """The first line, the users' lines, the last line. Raises StoreError and JournalError: then that is missing."""
        told = lines.End(0, 0, 0)
        header = lines.Header(lines.FORMAT, self.clock(), self.signature, self.dimension, len(users))
        yield lines.digested(header)
        for user in users:
            memories = await everything(self.store, user)
            if memories:
                uses, recorded = await self.records.uses(user), await self.records.recorded_ids(user)
                ids = [memory.id for memory in memories if memory.id in recorded]
                versions = {memory_id: await self.records.versions(Scope(user), memory_id) for memory_id in ids}
                told.users += 1
                told.memories += len(memories)
                told.versions += sum(map(len, versions.values()))
                yield await asyncio.to_thread(_written, memories, versions, uses)
        yield lines.digested(told)


def _written(memories: Sequence[Memory], versions: Mapping[str, Sequence[Memory]], uses: Mapping[str, Uses]) -> bytes:
    told: list[bytes] = []
    for memory in sorted(memories, key=lambda memory: memory.id):
        told += [lines.version_line(version) for version in versions.get(memory.id, ())]
        told.append(lines.memory_line(memory, uses.get(memory.id)))
    return b"".join(told)
