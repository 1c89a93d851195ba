"""A store that neither shows nor takes what is being erased: the one place where erased memories are filtered out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from semmem.lifecycle.marks import Marks
from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.errors import Erased
from semmem.ports.store import Store, StoreWrapper

HITS_MAX = 10_000
"""So many hits are asked for at most while hidden ones stand before them; Milvus gives 16,384."""


class HidingStore(StoreWrapper):
    """A Store around ``everything``, which goes on showing that to whoever has to remove it.

    ``put`` raises Erased for what ``marks`` cover. The other users pay a look into a dictionary.
    """

    def __init__(self, everything: Store, marks: Marks) -> None:
        super().__init__(everything)
        self.everything, self.marks = everything, marks
        self._putting: dict[str, set[asyncio.Future[None]]] = {}

    # --- writes ------------------------------------------------------------------------------------------------------

    async def put(self, scope: Scope, memory: Memory) -> None:
        if self.marks.cover(memory):
            raise Erased("said before its scope was erased")
        async with self._under_way(scope.user):
            await super().put(scope, memory)

    async def puts_ended(self, user: str) -> None:
        """Return when the user's writes that are under way now have ended, however they did."""
        if waiting := self._putting.get(user):
            await asyncio.wait(tuple(waiting))

    @asynccontextmanager
    async def _under_way(self, user: str) -> AsyncIterator[None]:
        ended = asyncio.get_running_loop().create_future()
        self._putting.setdefault(user, set()).add(ended)
        try:
            yield
        finally:
            ended.set_result(None)
            self._putting[user].discard(ended)
            if not self._putting[user]:
                del self._putting[user]

    # --- reads -------------------------------------------------------------------------------------------------------

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        as_of: float | None = None,
    ) -> list[Hit]:
        """As the port says: asks for more while hidden hits take others' places."""
        asked = limit
        while True:
            hits = await super().search(scope, vector, limit=asked, now=now, types=types, as_of=as_of)
            shown = [hit for hit in hits if not self.marks.cover(hit.memory)]
            if len(shown) >= limit or len(hits) < asked or len(shown) == len(hits) or asked == HITS_MAX:
                return shown[:limit]
            asked = min(4 * asked, HITS_MAX)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        memory = await super().get(scope, memory_id)
        return None if memory is None or self.marks.cover(memory) else memory

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        if not self.marks.any_of(scope.user):
            return await super().count(scope, types=types)
        return len(await self._shown(scope, types))

    async def _shown(self, scope: Scope, types: Sequence[MemoryType], *, vectors: bool = False) -> Sequence[Memory]:
        number = await super().count(scope, types=types)
        found = await super().list(scope, types=types, limit=number, vectors=vectors) if number else []
        return [memory for memory in found if not self.marks.cover(memory)]

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        if not self.marks.any_of(scope.user):
            found = await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
            return [memory for memory in found if not self.marks.cover(memory)]
        return [*await self._shown(scope, types, vectors=vectors)][max(offset, 0) :][: max(limit, 0)]
