"""Memories with their earlier versions and uses, user by user, as lines that another semmem imports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from semmem.backup import lines
from semmem.backup.everybody import Everybody
from semmem.memory import Memory, Scope
from semmem.passages.shelves import everything
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Store


@dataclass(slots=True)
class _Told:
    users: int = 0
    memories: int = 0
    versions: int = 0


class Exports:
    """``store`` as requests see it: what is being erased is not in it. ``dimension`` and ``signature`` of its vectors.

    Each user is one moment, all of them are not: who changes memories meanwhile is in it before or after.
    """

    def __init__(
        self,
        store: Store,
        everybody: Everybody,
        records: MemoryRecords,
        *,
        signature: str,
        dimension: int,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._everybody = everybody
        self._records = records
        self._signature = signature
        self._dimension = dimension
        self._clock = clock

    async def users(self) -> list[str]:
        """As Everybody says."""
        return await self._everybody.users()

    async def stream(self, users: Sequence[str]) -> AsyncIterator[bytes]:
        """The first line, the users' lines, the last line. Raises StoreError and JournalError: then that is missing."""
        told = _Told()
        header = lines.Header(lines.FORMAT, self._clock(), self._signature, self._dimension, len(users))
        yield lines.digested(header)
        for user in users:
            memories = await everything(self._store, user)
            if memories:
                uses, versions = await self._records.uses(user), await self._versions(user, memories)
                told.users += 1
                told.memories += len(memories)
                told.versions += sum(map(len, versions.values()))
                yield await asyncio.to_thread(_written, memories, versions, uses)
        yield lines.digested(lines.End(told.users, told.memories, told.versions))

    async def _versions(self, user: str, memories: Sequence[Memory]) -> dict[str, list[Memory]]:
        recorded = await self._records.recorded_ids(user)
        ids = [memory.id for memory in memories if memory.id in recorded]
        return {memory_id: await self._records.versions(Scope(user), memory_id) for memory_id in ids}


def _written(memories: Sequence[Memory], versions: Mapping[str, Sequence[Memory]], uses: Mapping[str, Uses]) -> bytes:
    told: list[bytes] = []
    for memory in sorted(memories, key=lambda memory: memory.id):
        told += [lines.version_line(version) for version in versions.get(memory.id, ())]
        told.append(lines.memory_line(memory, uses.get(memory.id)))
    return b"".join(told)
