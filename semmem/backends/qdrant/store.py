"""The Store in one Qdrant collection, whichever kind of Qdrant it is.

Every filter holds the user, and is applied by the engine. A write carries the condition that what it replaces is
older, so replicas need no lock between them; a removal names the versions it removes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from semmem.backends.qdrant import points
from semmem.backends.qdrant.collection import Collection, ensure, search_params
from semmem.backends.qdrant.engine import Engine
from semmem.backends.qdrant.errors import opening, our_errors, within
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.requests import PAGE_POINTS, Requests
from semmem.memory import Hit, Memory, MemoryType, Scope, Vector, are_passages
from semmem.ports.errors import StoreError
from semmem.ports.storable import best, check_memory, contains, page, usable_vector


class QdrantStore:
    """``is_lent``: somebody else opens and closes the engine. ``open_timeout_s`` bounds making or checking the
    collection, ``search_timeout_s`` a search, ``read_timeout_s`` get, list, count and a search ``as_of`` a time,
    ``write_timeout_s`` one write. ``rows_per_user_max`` bounds what one user's list may read: beyond it StoreError.

    A write returns when it is applied, so ``as_of`` changes nothing but the deadline. Hits carry no embedding; get and
    list do.
    """

    def __init__(
        self,
        engine: Engine,
        collection: Collection,
        *,
        is_lent: bool = False,
        open_timeout_s: float = 30.0,
        search_timeout_s: float = 0.2,
        read_timeout_s: float = 2.0,
        write_timeout_s: float = 5.0,
        rows_per_user_max: int = 5000,
    ) -> None:
        self._engine = engine
        self._collection = collection
        self._is_lent = is_lent
        self._open_timeout_s = open_timeout_s
        self._requests = Requests(engine, collection.name, search_params(collection) if engine.is_server else None)
        self._dimension = collection.dimension
        self._search_timeout_s = search_timeout_s
        self._read_timeout_s = read_timeout_s
        self._write_timeout_s = write_timeout_s
        self._rows_per_user_max = rows_per_user_max

    async def open(self) -> None:
        """As the port says; makes the collection when there is none."""
        if not self._is_lent:
            await self._engine.open()
        async with opening(self._open_timeout_s, self.close):
            await ensure(self._ask, self._collection, on_server=self._engine.is_server)

    async def close(self) -> None:
        if not self._is_lent:
            await self._engine.close()

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
        query = usable_vector(vector, self._dimension)
        if limit < 1:
            return []
        asked = points.retrievable(scope, types, now)
        timeout_s = self._search_timeout_s if as_of is None else self._read_timeout_s
        async with within("search", timeout_s):
            found = await self._requests.nearest(
                query, asked, limit=limit, timeout_s=timeout_s, vectors=are_passages(types)
            )
        return best((hit for hit in map(_hit, found) if contains(scope, hit.memory, types)), limit)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        asked, timeout_s = points.one_memory(scope, memory_id), self._read_timeout_s
        async with within("get", timeout_s):
            found, _ = await self._requests.page(asked, limit=1, timeout_s=timeout_s, vectors=True)
        return points.memory_of(found[0]) if found else None

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        """As the port says. Qdrant sorts by one field and not its ties, so all is read, whatever the page."""
        asked, timeout_s = points.in_scope(scope, types), self._read_timeout_s
        async with within("list", timeout_s):
            found = await self._requests.all(
                asked, points_max=self._rows_per_user_max, timeout_s=timeout_s, vectors=vectors
            )
        return page(map(points.memory_of, found), limit=limit, offset=offset)

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        async with within("count", self._read_timeout_s):
            return await self._requests.count(points.in_scope(scope, types), timeout_s=self._read_timeout_s)

    async def health(self) -> None:
        async with within("health", self._read_timeout_s):
            await self._requests.page(points.nothing(), limit=1, timeout_s=self._read_timeout_s)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def put(self, scope: Scope, memory: Memory) -> None:
        check_memory(scope, memory)
        vector = None if memory.embedding is None else usable_vector(memory.embedding, self._dimension)
        point, timeout_s = points.point_of(memory, vector), self._write_timeout_s
        async with within("put", timeout_s):
            await self._requests.put(point, points.older_than(memory), timeout_s=timeout_s)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._remove_all(points.one_memory(scope, memory_id), "forget") > 0

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        """As the port says. Each round has the deadline of one write."""
        asked, until = points.in_scope(scope, types), math.inf if said_until is None else said_until
        removed: set[tuple[str, int]] = set()
        while True:
            async with within("forget", self._write_timeout_s):
                doomed = await self._said_until(asked, until)
                if not doomed:
                    return len({id for id, _ in removed})
                if doomed <= removed:
                    raise StoreError("qdrant forget: removed points are still there")
                await self._requests.remove_exactly(scope.user, sorted(doomed), timeout_s=self._write_timeout_s)
            removed |= doomed

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        """As Sweepable says."""
        asked, timeout_s = points.expired(now), self._read_timeout_s
        async with within("expired", timeout_s):
            found, _ = await self._requests.page(asked, limit=limit, timeout_s=timeout_s, fields=points.OWNER_FIELDS)
        return [points.owner_of(point) for point in found]

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """As Sweepable says; of lower versions there are none."""
        return await self._remove_all(points.expired(now), "sweep") if expired else 0

    async def users(self) -> set[str]:
        """As Enumerable says; each page of points has the deadline of one write."""
        timeout_s, found, offset = self._write_timeout_s, set[str](), None
        while True:
            async with within("users", timeout_s):
                seen, offset = await self._requests.page(
                    points.everything(),
                    limit=PAGE_POINTS,
                    timeout_s=timeout_s,
                    fields=points.OWNER_FIELDS,
                    offset=offset,
                )
            found |= {points.owner_of(point)[0] for point in seen}
            if offset is None:
                return found

    async def fill(self, memories: Sequence[Memory]) -> None:
        """As Fillable says."""
        for memory in memories:
            await self.put(Scope(memory.user), memory)

    async def purge(self) -> bool:
        """As Purgeable says. False: a server takes removed points out of its files when it optimises, as it likes."""
        return False

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _ask(self, operation: str, **arguments: Any) -> Any:
        with our_errors(operation):
            return await self._engine.ask(operation, **arguments)

    async def _remove_all(self, asked: models.Filter, operation: str) -> int:
        """Whatever is in the filter; how many there were."""
        timeout_s = self._write_timeout_s
        async with within(operation, timeout_s):
            present = await self._requests.count(asked, timeout_s=timeout_s)
            if present:
                await self._requests.remove(asked, timeout_s=timeout_s)
        return present

    async def _said_until(self, asked: models.Filter, until: float) -> set[tuple[str, int]]:
        """(point id, version) of what was said then or before."""
        each = self._requests.each(asked, timeout_s=self._write_timeout_s, fields=points.SAID_FIELDS)
        return {points.version_of(point) async for point in each if points.said_at(point) <= until}


class LocalQdrantStore(QdrantStore):
    """A QdrantStore in a folder of this machine. ``purge_timeout_s`` bounds one purge."""

    def __init__(
        self, engine: LocalQdrant, collection: Collection, *, purge_timeout_s: float = 60.0, **options: Any
    ) -> None:
        super().__init__(engine, collection, **options)
        self._local = engine
        self._purge_timeout_s = purge_timeout_s

    async def purge(self) -> bool:
        """As Purgeable says; True. Other calls wait for it."""
        async with within("purge", self._purge_timeout_s):
            await self._local.purge(self._collection.name)
        return True

    async def check_room(self) -> None:
        """As DiskBound says."""
        await self._local.check_room()


def _hit(point: models.ScoredPoint) -> Hit:
    cosine = max(-1.0, min(1.0, float(point.score)))
    return Hit(points.memory_of(point), cosine, cosine)
