"""Hot memories in front of a store that can be held back, and can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.errors import StoreError, StoreTimeout
from semmem.retrieval.index.hot_memories import HotMemories
from tests.support.fakes import HashEmbedder

ADA, BOB = Scope("ada"), Scope("bob")


class Library(InProcessStore):
    """Counts its readings. Can hold a reading back after it has read, and can fail."""

    def __init__(self) -> None:
        super().__init__()
        self._is_open = True
        self.readings = 0
        self.error: StoreError | None = None
        self.fails_after_writing = False
        self.open_doors = asyncio.Event()
        self.open_doors.set()

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        self.readings += 1
        found = await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        await self.open_doors.wait()
        if self.error is not None:
            raise self.error
        return found

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await super().put(scope, *memories)
        if self.fails_after_writing:
            raise StoreTimeout("written, but who knows")

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        if self.fails_after_writing:
            raise StoreTimeout("done later, but who knows")
        return await super().forget(scope, memory_id)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Shelf:
    """A library with hot memories in front of it."""

    def __init__(self, **options: Any) -> None:
        self.store, self.clock, self.tasks = Library(), Clock(), Tasks()
        self.hot = HotMemories(self.store, spawn=self.tasks.spawn, clock=self.clock, **options)

    async def knows(self, number: int, content: str = "tea", scope: Scope = ADA, **fields: Any) -> Memory:
        memory = Memory(
            f"mem_{number}",
            1,
            MemoryType.SEMANTIC,
            content,
            scope.user,
            embedding=await HashEmbedder().embed(content),
        )
        memory = replace(memory, **fields)
        await self.hot.put(scope, memory)
        return memory

    async def contents(self, user: str = "ada") -> list[str]:
        index = await self.hot.index(user, wait_s=5)
        assert index is not None
        return sorted(memory.content for memory in index.memories)
