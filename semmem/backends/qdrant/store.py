"""The Store in one Qdrant collection, whichever kind of Qdrant it is, and all the collections of one.

Every filter holds the user, and is applied by the engine. A write carries the condition that what it replaces is
older, so replicas need no lock between them; a removal names the versions it removes.

An alias says which collection everybody reads, in the client's local mode as on a server. A store that was never
reindexed has no alias, and one collection with the plain name."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

from qdrant_client import models

from semmem.backends.qdrant import points
from semmem.backends.qdrant.collection import Collection, described, ensure, search_params
from semmem.backends.qdrant.errors import call_timeout_s, opening, our_errors, within
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer
from semmem.memory import Hit, Memory, Scope, Types, Vector, are_passages
from semmem.ports.errors import StoreError
from semmem.ports.storable import best, check_memory, contains, page, usable_vector
from semmem.ports.store import Described, live_name, made_of, passages_name

PAGE_POINTS = 500
"""Points in one answer of a scan: with vectors some 5 MB of JSON."""
REMOVE_BATCH = 200
"""Points in one removal; each adds a clause to the filter."""


@dataclass(eq=False, repr=False)
class QdrantStore:
    """In an ``engine`` that somebody else opens and closes. ``open_timeout_s`` bounds making or checking the
    collection, ``search_timeout_s`` a search, ``read_timeout_s`` get, list, count and a search ``as_of`` a time,
    ``write_timeout_s`` one write, ``purge_timeout_s`` a purge. ``rows_per_user_max`` bounds what one user's list may
    read: beyond it StoreError. A write returns when it is applied, so ``as_of`` changes nothing but the deadline. Hits
    carry no embedding; get and list do."""

    engine: QdrantServer | LocalQdrant
    about: Collection
    _: KW_ONLY
    open_timeout_s: float = 30.0
    search_timeout_s: float = 0.2
    read_timeout_s: float = 2.0
    write_timeout_s: float = 5.0
    purge_timeout_s: float = 60.0
    rows_per_user_max: int = 5000

    def __post_init__(self) -> None:
        # The local mode ignores them, and says so each time.
        self._search_params = {"search_params": search_params(self.about)} if self.engine.is_server else {}

    async def open(self) -> None:
        """As the port says; makes the collection when there is none."""
        async with opening(self.open_timeout_s, self.close):
            await ensure(self._engine_asked, self.about, on_server=self.engine.is_server)

    async def close(self) -> None:
        """Nothing is its own."""

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        query = usable_vector(vector, self.about.dimension)
        if limit < 1:
            return []
        async with within("search", self.search_timeout_s if as_of is None else self.read_timeout_s):
            found = await self._ask(
                "query_points",
                query=query.tolist(),
                using=points.VECTOR,
                query_filter=points.retrievable(scope, types, now),
                limit=limit,
                with_payload=True,
                with_vectors=as_of is not None or are_passages(types),
                **self._search_params,
            )
        hits = map(_hit, found.points)
        return best((hit for hit in hits if contains(scope, hit.memory, types)), limit)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        async with within("get", self.read_timeout_s):
            found, _ = await self._page(points.one_memory(scope, memory_id), limit=1, vectors=True)
        return points.memory_of(found[0]) if found else None

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        """As the port says. Qdrant sorts by one field and not its ties, so all is read, whatever the page."""
        found: list[models.Record] = []
        async with within("list", self.read_timeout_s):
            async for point in self._each(points.in_scope(scope, types), vectors=vectors):
                found.append(point)
                if len(found) > self.rows_per_user_max:
                    raise StoreError(f"a user has more than rows_per_user_max={self.rows_per_user_max} rows")
        return page(map(points.memory_of, found), limit=limit, offset=offset)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        async with within("count", self.read_timeout_s):
            return await self._count(points.in_scope(scope, types))

    async def health(self) -> None:
        async with within("health", self.read_timeout_s):
            await self._page(points.nothing(), limit=1)

    async def put(self, scope: Scope, *memories: Memory) -> None:
        of_version: dict[int, list[models.PointStruct]] = {}
        for memory in memories:
            check_memory(scope, memory)
            embedding = memory.embedding
            vector = None if embedding is None else usable_vector(embedding, self.about.dimension)
            of_version.setdefault(memory.version, []).append(points.point_of(memory, vector))
        for version, some in of_version.items():
            replaces = points.older_than(scope.user, version)
            async with within("put", self.write_timeout_s):
                await self._ask("upsert", points=some, update_filter=replaces, wait=True)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._remove_all(points.one_memory(scope, memory_id), "forget") > 0

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        """As the port says. Each round has the deadline of one write."""
        asked, until = points.in_scope(scope, types), math.inf if said_until is None else said_until
        removed: set[tuple[str, int]] = set()
        while True:
            async with within("forget", self.write_timeout_s):
                each = self._each(asked, fields=points.SAID_FIELDS)
                doomed = {points.version_of(point) async for point in each if points.said_at(point) <= until}
                if not doomed:
                    return len({id for id, _ in removed})
                if doomed <= removed:
                    raise StoreError("qdrant forget: removed points are still there")
                chosen = sorted(doomed)
                for start in range(0, len(chosen), REMOVE_BATCH):
                    await self._remove(points.exactly(scope.user, chosen[start : start + REMOVE_BATCH]))
            removed |= doomed

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        async with within("expired", self.read_timeout_s):
            found, _ = await self._page(points.expired(now), limit=limit, fields=points.OWNER_FIELDS)
        return [points.owner_of(point) for point in found]

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """As Sweepable says; of lower versions there are none."""
        return await self._remove_all(points.expired(now), "sweep") if expired else 0

    async def users(self) -> set[str]:
        """As Enumerable says; each page of points has the deadline of one write."""
        found, offset = set[str](), None
        while True:
            async with within("users", self.write_timeout_s):
                seen, offset = await self._page(
                    models.Filter(), limit=PAGE_POINTS, fields=points.OWNER_FIELDS, offset=offset
                )
            found |= {points.owner_of(point)[0] for point in seen}
            if offset is None:
                return found

    async def fill(self, memories: Sequence[Memory]) -> None:
        for memory in memories:
            await self.put(Scope(memory.user), memory)

    async def purge(self) -> bool:
        """As Purgeable says: True in the local mode."""
        async with within("purge", self.purge_timeout_s):
            return await self.engine.purge(self.about.name)

    async def _engine_asked(self, operation: str, **arguments: Any) -> Any:
        with our_errors(operation):
            return await self.engine.ask(operation, **arguments)

    async def _ask(self, operation: str, **arguments: Any) -> Any:
        """About points, inside ``within``. The server gives up too, in whole seconds."""
        timeout = math.ceil(call_timeout_s.get())
        return await self.engine.ask(operation, collection_name=self.about.name, timeout=timeout, **arguments)

    async def _page(
        self, asked: models.Filter, *, limit: int, fields: Sequence[str] = (), vectors: bool = False, offset: Any = None
    ) -> tuple[Sequence[models.Record], Any]:
        """Points by id, and where the next page begins (None: this was the last). No ``fields``: all of them."""
        found, following = await self._ask(
            "scroll",
            scroll_filter=asked,
            limit=limit,
            offset=offset,
            with_payload=list(fields) or True,
            with_vectors=[points.VECTOR] if vectors else False,
        )
        return found, following

    async def _each(
        self, asked: models.Filter, *, fields: Sequence[str] = (), vectors: bool = False
    ) -> AsyncIterator[models.Record]:
        offset = None
        while True:
            found, offset = await self._page(asked, limit=PAGE_POINTS, fields=fields, vectors=vectors, offset=offset)
            for point in found:
                yield point
            if offset is None:
                return

    async def _count(self, asked: models.Filter) -> int:
        return int((await self._ask("count", count_filter=asked, exact=True)).count)

    async def _remove(self, asked: models.Filter) -> None:
        await self._ask("delete", points_selector=models.FilterSelector(filter=asked), wait=True)

    async def _remove_all(self, asked: models.Filter, operation: str) -> int:
        """Whatever is in the filter; how many there were."""
        async with within(operation, self.write_timeout_s):
            present = await self._count(asked)
            if present:
                await self._remove(asked)
        return present


def _hit(point: models.ScoredPoint) -> Hit:
    cosine = max(-1.0, min(1.0, float(point.score)))
    return Hit(points.memory_of(point), cosine, cosine)


@dataclass(eq=False, repr=False)
class QdrantCollections:
    """``first``: what the first collection shall be like, and every other but for its embedding. ``options`` are
    QdrantStore's. ``timeout_s`` bounds each call."""

    engine: QdrantServer | LocalQdrant
    first: Collection
    _: KW_ONLY
    options: Mapping[str, Any]
    timeout_s: float = 30.0

    @property
    def name(self) -> str:
        return self.first.name

    async def open(self) -> None:
        await self.engine.open()

    async def close(self) -> None:
        await self.engine.close()

    def collection(self, described: Described) -> QdrantStore:
        return QdrantStore(self.engine, replace(self.first, **asdict(described)), **self.options)

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        async with within("find collections", self.timeout_s):
            read, ask = await self._aliased() or self.name, self.engine.ask
            names = made_of(self.name, (each.name for each in (await ask("get_collections")).collections))
            told = {
                name: Described(name, *described(await ask("get_collection", collection_name=name))) for name in names
            }
        return told.get(read), [about for name, about in told.items() if name != read]

    async def switch(self, name: str) -> None:
        """As the port says: a server changes all that is asked for in one call at once, and so does the local mode."""
        async with within("switch", self.timeout_s):
            former, alias = await self._aliased(), live_name(self.name)
            if former == name:
                return
            gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            new = models.CreateAlias(collection_name=name, alias_name=alias)
            made = models.CreateAliasOperation(create_alias=new)
            await self.engine.ask(
                "update_collection_aliases",
                change_aliases_operations=[*([gone] if former else []), made],
                timeout=math.ceil(self.timeout_s),
            )

    async def drop(self, name: str) -> None:
        """Raises StoreError for the one that everybody reads: its alias would go with it."""
        async with within("drop", self.timeout_s):
            listed = {each.name for each in (await self.engine.ask("get_collections")).collections}
            if name in listed and name == (await self._aliased() or self.name):
                raise StoreError(f"{name} is what everybody reads")
            for each in sorted({name, passages_name(name)} & listed):
                await self.engine.drop(each)

    async def check_room(self) -> None:
        await self.engine.check_room()

    async def _aliased(self) -> str | None:
        """What the alias names. Aliases of everybody are asked for, so that an error is none of a missing one."""
        listed = (await self.engine.ask("get_aliases")).aliases
        return next((each.collection_name for each in listed if each.alias_name == live_name(self.name)), None)
