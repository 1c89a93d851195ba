"""A collection of memories and beside it one of passages, as one: a call without types means memories alone.

They lie apart, so that tens of thousands of passages neither slow a search for memories nor fill a list of them."""

from collections.abc import Sequence
from dataclasses import replace

from semmem.memory import PASSAGES, Hit, Memory, Scope, Types, Vector, are_passages
from semmem.passages.pieces import is_passage
from semmem.ports.store import Collection, Collections, Described, Lagging, Store, list_all, passages_name


class Shelves:
    """A Collection of both. ``memories`` decides whether the store answers; each is opened with the other."""

    def __init__(self, memories: Collection, passages: Collection) -> None:
        self.memories = memories
        self.passages = passages

    async def open(self) -> None:
        await self.memories.open()
        await self.passages.open()

    async def close(self) -> None:
        await self.passages.close()
        await self.memories.close()

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await self._of([memory.type for memory in memories]).put(scope, *memories)

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        return await self._of(types).search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        return await self._with(memory_id).get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        return await self._of(types).list(scope, types=types, limit=limit, offset=offset, vectors=vectors)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._with(memory_id).forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        return await self._of(types).forget_scope(scope, types=types, said_until=said_until)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        return await self._of(types).count(scope, types=types)

    async def health(self) -> None:
        await self.memories.health()

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        over = await self.memories.expired(now, limit=limit)
        return [*over, *await self.passages.expired(now, limit=limit)][:limit]

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """As Sweepable says. A passage has one version only."""
        swept = await self.memories.sweep(now, expired=expired)
        return swept + (await self.passages.sweep(now, expired=True) if expired else 0)

    async def users(self) -> set[str]:
        return await self.memories.users() | await self.passages.users()

    async def fill(self, memories: Sequence[Memory]) -> None:
        apart = [memory for memory in memories if memory.type in PASSAGES]
        await self.memories.fill([memory for memory in memories if memory.type not in PASSAGES])
        if apart:
            await self.passages.fill(apart)

    async def purge(self) -> bool:
        return await self.memories.purge() and await self.passages.purge()

    def written_elsewhere(self, user: str) -> None:
        """As Lagging says, of both."""
        for shelf in (self.memories, self.passages):
            if isinstance(shelf, Lagging):
                shelf.written_elsewhere(user)

    def _of(self, types: Types) -> Collection:
        return self.passages if are_passages(types) else self.memories

    def _with(self, memory_id: str) -> Collection:
        return self.passages if is_passage(memory_id) else self.memories


class ShelvedCollections:
    """Collections around ``collections``, each of which has its passages beside it. Dropping one drops both."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    @property
    def name(self) -> str:
        return self._collections.name

    async def open(self) -> None:
        await self._collections.open()

    async def close(self) -> None:
        await self._collections.close()

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        return await self._collections.found()

    def collection(self, described: Described) -> Shelves:
        make = self._collections.collection
        return Shelves(make(described), make(replace(described, name=passages_name(described.name))))

    async def switch(self, name: str) -> None:
        await self._collections.switch(name)

    async def drop(self, name: str) -> None:
        await self._collections.drop(name)

    async def check_room(self) -> None:
        await self._collections.check_room()


async def everything(store: Store, user: str) -> list[Memory]:
    """All that a store keeps of a user: memories of any status, then passages, with vectors. Raises StoreError."""
    return [*await list_all(store, Scope(user)), *await list_all(store, Scope(user), types=PASSAGES)]
