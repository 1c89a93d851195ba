"""What every store around another store has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from semmem.memory import PASSAGES, Hit, Memory, MemoryType, Scope, Vector, are_passages
from semmem.ports.store import Store


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One call of a store: its name, and whose memory it changes (``memory_id`` None: any of the user's).
    ``of_passages``: no memory, but something that was said."""

    operation: str
    user: str = ""
    memory_id: str | None = None
    writes: bool = False
    of_passages: bool = False


class StoreWrapper:
    """A Store that passes every call on to the one inside.

    The only class that does nothing but that, so that a subclass says only what it does differently: it overrides a
    call, or ``around`` for all of them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        """Every call but ``close`` runs inside."""
        yield

    async def open(self) -> None:
        with self.around(StoreCall("open")):
            await self._store.open()

    async def close(self) -> None:
        """Passed on bare: it may be called when everything else is gone."""
        await self._store.close()

    async def put(self, scope: Scope, memory: Memory) -> None:
        with self.around(StoreCall("put", scope.user, memory.id, True, memory.type in PASSAGES)):
            await self._store.put(scope, memory)

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
        with self.around(StoreCall("search")):
            return await self._store.search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        with self.around(StoreCall("get")):
            return await self._store.get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        with self.around(StoreCall("list")):
            return await self._store.list(scope, types=types, limit=limit, offset=offset, vectors=vectors)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        with self.around(StoreCall("forget", scope.user, memory_id, writes=True)):
            return await self._store.forget(scope, memory_id)

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        with self.around(StoreCall("forget_scope", scope.user, None, True, are_passages(types))):
            return await self._store.forget_scope(scope, types=types, said_until=said_until)

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        with self.around(StoreCall("count")):
            return await self._store.count(scope, types=types)

    async def health(self) -> None:
        with self.around(StoreCall("health")):
            await self._store.health()
