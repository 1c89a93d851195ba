"""A store whose writes can be held off for a moment, and that tells whose memories were changed: for a copy of all."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from semmem.memory import Memory, Scope, Types
from semmem.ports.store import Store, StoreWrapper


class UnderWay:
    """Calls that have begun and not ended, of each user."""

    def __init__(self) -> None:
        self._ends: dict[str, set[asyncio.Future[None]]] = {}

    @contextmanager
    def call(self, user: str) -> Iterator[None]:
        """One of them, from here to the end of the block, however it ends."""
        ended = asyncio.get_running_loop().create_future()
        self._ends.setdefault(user, set()).add(ended)
        try:
            yield
        finally:
            ended.set_result(None)
            self._ends[user].discard(ended)
            if not self._ends[user]:
                del self._ends[user]

    async def ended(self, user: str | None = None) -> None:
        """Return when those have ended that are under way now: the user's, or all."""
        ends = [self._ends.get(user, set())] if user is not None else self._ends.values()
        if waiting := [end for some in ends for end in some]:
            await asyncio.wait(waiting)


class WriteGate(StoreWrapper):
    """A Store around ``store``. Reads never wait. All of a process's writes must come this way."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._open = asyncio.Event()
        self._open.set()
        self._under_way = UnderWay()
        self._noting: list[set[str]] = []

    @contextmanager
    def noting(self) -> Iterator[set[str]]:
        """Within, the set takes up the user of every write that ends; the caller may take them out."""
        changed: set[str] = set()
        self._noting.append(changed)
        try:
            yield changed
        finally:
            self._noting = [each for each in self._noting if each is not changed]

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Within, no write is under way, and new ones wait. One caller at a time."""
        self._open.clear()
        try:
            await self._under_way.ended()
            yield
        finally:
            self._open.set()

    async def put(self, scope: Scope, *memories: Memory) -> None:
        async with self._write(scope.user):
            await super().put(scope, *memories)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        async with self._write(scope.user):
            return await super().forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        async with self._write(scope.user):
            return await super().forget_scope(scope, types=types, said_until=said_until)

    @asynccontextmanager
    async def _write(self, user: str) -> AsyncIterator[None]:
        while not self._open.is_set():
            await self._open.wait()
        with self._under_way.call(user):
            try:
                yield
            finally:  # a write that failed may have been done all the same
                for changed in self._noting:
                    changed.add(user)
