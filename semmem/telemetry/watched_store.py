"""A store that tells of every change, for whoever keeps copies of what was read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.store import Store


class WatchedStore:
    """A Store around another. ``on_change`` is called with the user and the memory's id (None: any of them) when a
    write has ended, however it ended: one that failed may have been done all the same. It must not raise.

    Only writes through this object are seen, so another process's are not.
    """

    def __init__(self, store: Store, on_change: Callable[[str, str | None], None]) -> None:
        self._store = store
        self._on_change = on_change

    @contextmanager
    def _changing(self, user: str, memory_id: str | None) -> Iterator[None]:
        try:
            yield
        finally:
            self._on_change(user, memory_id)

    async def put(self, scope: Scope, memory: Memory) -> None:
        with self._changing(scope.user, memory.id):
            await self._store.put(scope, memory)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        with self._changing(scope.user, memory_id):
            return await self._store.forget(scope, memory_id)

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        with self._changing(scope.user, None):
            return await self._store.forget_scope(scope, types=types, said_until=said_until)

    # --- passed on ---------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        fresh: bool = False,
    ) -> list[Hit]:
        return await self._store.search(scope, vector, limit=limit, now=now, types=types, fresh=fresh)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        return await self._store.get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0
    ) -> list[Memory]:
        return await self._store.list(scope, types=types, limit=limit, offset=offset)

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        return await self._store.count(scope, types=types)

    async def health(self) -> None:
        await self._store.health()
