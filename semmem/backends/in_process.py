"""Memories in this process, searched exactly. Nothing survives the process: for tests, demos and small trials."""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice

from semmem.memory import Hit, Memory, Scope, Types, Vector
from semmem.ports.errors import StoreUnavailable
from semmem.ports.storable import check_memory, contains, nearest, page, usable_vector
from semmem.ports.store import Collection, Described, passages_name


class InProcessStore:
    """A Store in a dictionary per user. Search is a matrix product over that user's own vectors. ``dimension`` is the
    length of every vector; None takes it from the first vector that is put. Closing keeps the memories; opening again
    finds them."""

    def __init__(self, *, dimension: int | None = None) -> None:
        self._dimension = dimension
        self._users: dict[str, dict[str, Memory]] = {}
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    async def put(self, scope: Scope, *memories: Memory) -> None:
        self._check_open()
        for memory in memories:
            check_memory(scope, memory)
            vector = memory.embedding
            kept = replace(_copy(memory), embedding=None if vector is None else self._usable(vector))
            there = self._users.setdefault(scope.user, {})
            present = there.get(memory.id)
            if present is None or present.version < memory.version:
                there[memory.id] = kept

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        """As the port says; every write shows at once, so ``as_of`` changes nothing."""
        self._check_open()
        hits = nearest(self._in(scope, types), self._usable(vector), limit, now)
        return [replace(hit, memory=_copy(hit.memory)) for hit in hits]

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        self._check_open()
        memory = self._users.get(scope.user, {}).get(memory_id)
        return _copy(memory) if memory is not None and contains(scope, memory) else None

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        self._check_open()
        return [_copy(memory) for memory in page(self._in(scope, types), limit=limit, offset=offset)]

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        if await self.get(scope, memory_id) is None:
            return False
        self._remove(scope.user, [memory_id])
        return True

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        self._check_open()
        until = math.inf if said_until is None else said_until
        doomed = [memory.id for memory in self._in(scope, types) if memory.said_at <= until]
        self._remove(scope.user, doomed)
        return len(doomed)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        self._check_open()
        return sum(1 for _ in self._in(scope, types))

    async def health(self) -> None:
        self._check_open()

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        self._check_open()
        everything = (memory for memories in self._users.values() for memory in memories.values())
        over = (m for m in everything if m.expires_at is not None and m.expires_at <= now)
        return [(memory.user, memory.id) for memory in islice(over, limit)]

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """As Sweepable says; of lower versions there are none."""
        over = await self.expired(now, limit=len(self)) if expired else []
        for user, memory_id in over:
            self._remove(user, [memory_id])
        return len(over)

    async def users(self) -> set[str]:
        self._check_open()
        return set(self._users)

    async def fill(self, memories: Sequence[Memory]) -> None:
        for memory in memories:
            await self.put(Scope(memory.user), memory)

    async def purge(self) -> bool:
        """As Purgeable says; there are no files."""
        return True

    def __len__(self) -> int:
        return sum(map(len, self._users.values()))

    def _in(self, scope: Scope, types: Types) -> Iterator[Memory]:
        memories = self._users.get(scope.user, {}).values()
        return (memory for memory in memories if contains(scope, memory, types))

    def _remove(self, user: str, memory_ids: Sequence[str]) -> None:
        memories = self._users.get(user, {})
        for memory_id in memory_ids:
            del memories[memory_id]
        if not memories:
            self._users.pop(user, None)

    def _usable(self, vector: Vector) -> Vector:
        if self._dimension is None:
            self._dimension = len(vector)
        return usable_vector(vector, self._dimension)

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("the in-process store is closed")


class InProcessCollections:
    """Collections in this process. ``name``: what the first is called."""

    def __init__(self, name: str = "memories") -> None:
        self.name = name
        self._live = name
        self._made: dict[str, tuple[Described, InProcessStore]] = {}

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        live = self._made.get(self._live)
        apart = {self._live, *map(passages_name, self._made)}
        beside = [about for name, (about, _) in self._made.items() if name not in apart]
        return (None if live is None else live[0]), beside

    def collection(self, described: Described) -> Collection:
        made = described, InProcessStore(dimension=described.dimension)
        return self._made.setdefault(described.name, made)[1]

    async def switch(self, name: str) -> None:
        self._live = name

    async def drop(self, name: str) -> None:
        for each in (name, passages_name(name)):
            self._made.pop(each, None)

    async def check_room(self) -> None:
        pass


def _copy(memory: Memory) -> Memory:
    """Callers may change their metadata dict afterwards; the store's own must stay as it was written."""
    return replace(memory, metadata=deepcopy(memory.metadata)) if memory.metadata else memory
