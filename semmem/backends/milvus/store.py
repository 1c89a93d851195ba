"""Memories in Milvus: Milvus Lite for one machine, a Milvus server or cluster for many replicas.

A memory's row is never changed. A new version is inserted as a new row, and only then are the older rows deleted:
``upsert`` on a partition-key collection puts rows where Milvus 2.3 does not find them, and delete-then-insert would
leave a moment without the memory. Reads keep the highest version of each memory. When a process dies between the two
steps, an older row stays: putting the same version again removes it, and so does ``sweep``."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any
from weakref import WeakValueDictionary

from semmem.backends.milvus import rows as layout
from semmem.backends.milvus.background import BackgroundFlush, OwnedTasks, Reads
from semmem.backends.milvus.collection import NOW, WHATEVER_OTHERS_WROTE, WINDOW_MAX, MilvusCollection, batches
from semmem.backends.milvus.connection import MilvusConnection
from semmem.backends.milvus.indexes import LITE_PREFIX
from semmem.backends.milvus.own_writes import CAUGHT_UP_S, OwnWrites
from semmem.backends.milvus.rows import Row
from semmem.memory import Hit, Memory, Scope, Types, Vector
from semmem.ports.errors import StoreError
from semmem.ports.storable import best, check_memory, contains, page, usable_vector

BOUNDED_STALENESS_S = 5.0
"""How far behind a Bounded read of a server may be at most, by Milvus' default (``gracefulTime``)."""
WRITE_BATCH = 200
"""Rows in one insert; some 2 KB each."""
DELETE_BATCH = 500
"""Rows in one delete by their ids."""
SWEEP_BATCH = 50
"""Memories in one delete of a sweep; each adds a clause to the filter."""


@dataclass(eq=False, repr=False)
class MilvusStore:
    """A Store in one Milvus collection with a partition key on the user.

    ``server``: see ``server_options``. ``signature`` names the embedding (a collection of another one is refused).
    ``search_timeout_s`` bounds a search, ``read_timeout_s`` get, list, count and a search ``as_of`` a time,
    ``write_timeout_s`` one write once it is its turn, ``open_timeout_s`` connecting, creating and loading.
    ``rows_per_user_max`` bounds what one user's list may read (at most 16,384): beyond it StoreError. Milvus Lite's
    buffer is flushed after ``flush_rows`` rows or ``flush_interval_s``. ``sweep_rows_max`` bounds how many updated
    memories one sweep looks at.

    Times come back in whole milliseconds. Hits carry no embedding; get and list do. Every read sees what this process
    wrote; what another wrote shows within 200 ms on a server (unless a search is ``as_of`` a time)."""

    server: Mapping[str, Any]
    _: KW_ONLY
    collection: str
    dimension: int
    signature: str
    index: str = "FLAT"
    num_partitions: int = 16
    search_timeout_s: float = 0.2
    read_timeout_s: float = 2.0
    write_timeout_s: float = 5.0
    open_timeout_s: float = 30.0
    rows_per_user_max: int = 5000
    flush_rows: int = 200
    flush_interval_s: float = 2.0
    sweep_rows_max: int = 100_000

    def __post_init__(self) -> None:
        if not 0 < self.rows_per_user_max < WINDOW_MAX:
            raise ValueError(f"rows_per_user_max must be between 1 and {WINDOW_MAX - 1}")
        self._connection = MilvusConnection(
            server=self.server,
            collection=self.collection,
            dimension=self.dimension,
            signature=self.signature,
            index=self.index,
            num_partitions=self.num_partitions,
            open_timeout_s=self.open_timeout_s,
        )
        self._own = OwnWrites(settle_s=BOUNDED_STALENESS_S + self.write_timeout_s)
        self._collection = MilvusCollection(self._connection, self._own, rows_max=self.rows_per_user_max)
        self._flushing = BackgroundFlush(self._flush, rows=self.flush_rows, interval_s=self.flush_interval_s)
        self._tasks = OwnedTasks("milvus")
        self._reads = Reads()
        self._opening = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._writing_for: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self) -> None:
        """As the port says. After a failure it may be called again, until the server is there."""
        async with self._opening:
            if self._connection.is_open:
                return
            version = await self._connection.open()
            self._own.lags = not version.startswith(LITE_PREFIX)
            if not self._own.lags:
                self._flushing.wrote(1)  # what an earlier process left in the buffer
                self._tasks.spawn(self._flushing.run())

    async def close(self) -> None:
        async with self._opening:
            await self._tasks.close()
            await self._connection.close()

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        query = usable_vector(vector, self.dimension)
        if limit < 1:
            return []
        timeout_s = self.search_timeout_s if as_of is None else self.read_timeout_s
        async with self._connection.within("search", timeout_s), self._reads.reading():
            rows = await self._collection.nearest(query, scope, types, now, limit=limit, as_of=as_of)
        hits = (Hit(layout.memory_of(row), row["cosine"], row["cosine"]) for row in rows)
        return best((hit for hit in hits if contains(scope, hit.memory, types)), limit)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        rows = await self._read("get", scope.user, layout.ALL_FIELDS, memory_id)
        found = [row for row in layout.newest(rows) if layout.row_in_scope(row, scope, None)]
        return layout.memory_of(found[0]) if found else None

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        """As the port says. Milvus cannot sort, so the user's rows are all read, whatever the page."""
        rows = await self._read("list", scope.user, layout.ALL_FIELDS if vectors else layout.FOUND_FIELDS)
        return page(await layout.over(rows, layout.memories_of, scope, types), limit=limit, offset=offset)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        rows = layout.newest(await self._read("count", scope.user, layout.SCOPE_FIELDS))
        return sum(1 for row in rows if layout.row_in_scope(row, scope, types))

    async def health(self) -> None:
        async with self._connection.within("health", self.read_timeout_s):
            await self._collection.nothing(level="Bounded")

    def written_elsewhere(self, user: str) -> None:
        self._own.unsure(user)

    async def put(self, scope: Scope, *memories: Memory) -> None:
        """As the port says. Raises StoreError too for content above 8,192 bytes and names above 1,024 (UTF-8)."""
        for memory in memories:
            check_memory(scope, memory)
        rows = [layout.row_of(memory, self._vector(memory), self.dimension) for memory in memories]
        for part in batches(rows, WRITE_BATCH):
            async with self._write("put", scope.user):
                await self._put(scope.user, {row["memory_id"]: row for row in part})

    async def _put(self, user: str, rows: Mapping[str, Row]) -> None:
        """Rows by the ids of their memories."""
        since = self._own.now() - CAUGHT_UP_S
        present = (await self._collection.present(user, [*rows], layout.SCOPE_FIELDS, as_of=since)).rows
        highest = dict.fromkeys(rows, 0)
        for row in present:
            highest[row["memory_id"]] = max(highest[row["memory_id"]], row["version"])
        if new := [row for memory_id, row in rows.items() if highest[memory_id] < row["version"]]:
            await self._connection.call("insert", data=new)
            for row in new:
                highest[row["memory_id"]] = row["version"]
                self._own.inserted(row)
            self._flushing.wrote(len(new))
        if older := [row["id"] for row in present if row["version"] < highest[row["memory_id"]]]:
            if not self._own.lags:
                await self._reads.drained()  # Lite does not read snapshots (``Reads``)
            await self._delete_rows(user, older)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return bool(await self._forget(scope, memory_id, None))

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        """As the port says, however many rows there are."""
        return len(await self._forget(scope, None, types, said_until))

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """Remove rows that no read shows: lower versions, then (when asked) expired memories. Returns how many. The
        only call that looks at every user's rows; it returns none of them."""
        updated = await self._collection.updated_versions(rows_max=self.sweep_rows_max, timeout_s=self.write_timeout_s)
        removed = 0
        for user, versions in updated.items():
            for part in batches(versions.items(), SWEEP_BATCH):
                removed += await self._sweep_one(layout.older_filter(user, part))
        # Only after the lower versions are gone: else one of them would take an expired memory's place.
        return removed + (await self._sweep_one(layout.expired_filter(now)) if expired else 0)

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        """(user, memory id) of rows whose time is over, of every user. A newer version of the memory may live on."""
        asked, limit = layout.expired_filter(now), min(limit, WINDOW_MAX)
        async with self._connection.within("expired", self.read_timeout_s), self._reads.reading():
            rows = await self._collection.rows(asked, layout.VERSION_FIELDS, limit=limit, level="Bounded")
        return list(dict.fromkeys((row["user_id"], row["memory_id"]) for row in rows))

    async def users(self) -> set[str]:
        async with self._connection.within("users", self.read_timeout_s):
            await self._collection.nothing(level="Strong")  # so much the pages, which are read Bounded, show as well
        found: set[str] = set()
        scan = self._connection.scan("version > 0", ["user_id"], timeout_s=self.read_timeout_s)
        async with aclosing(scan):
            while True:
                async with self._reads.reading():
                    rows = await anext(scan, None)
                if rows is None:
                    return found
                found |= {row["user_id"] for row in rows}

    async def fill(self, memories: Sequence[Memory]) -> None:
        """As Fillable says, some hundred rows at a time."""
        for part in batches(memories, WRITE_BATCH):
            rows = [layout.row_of(memory, self._vector(memory), self.dimension) for memory in part]
            async with self._write("fill"):
                try:
                    await self._connection.call("insert", data=rows)
                finally:
                    for memory in part:
                        self._own.unsure(memory.user)
            self._flushing.wrote(len(rows))

    async def purge(self) -> bool:
        """As Purgeable says. False: a Milvus server keeps removed rows until it compacts, when it likes."""
        return False

    def _vector(self, memory: Memory) -> Vector | None:
        return None if memory.embedding is None else usable_vector(memory.embedding, self.dimension)

    async def _read(
        self, operation: str, user: str, fields: Sequence[str], memory_id: str | None = None
    ) -> Sequence[Row]:
        async with self._connection.within(operation, self.read_timeout_s), self._reads.reading():
            present = await self._collection.present(user, _only(memory_id), fields, as_of=WHATEVER_OTHERS_WROTE)
        return present.whole()

    async def _forget(
        self, scope: Scope, memory_id: str | None, types: Types | None, said_until: float | None = None
    ) -> set[str]:
        """Delete until a Strong read finds nothing more; the ids of the memories that went."""
        memories: set[str] = set()
        deleted: set[str] = set()
        as_of = WHATEVER_OTHERS_WROTE if self._own.lags else NOW  # what shows without waiting goes first
        fields = layout.SCOPE_FIELDS if said_until is None else layout.FOUND_FIELDS
        while True:
            async with self._write("forget", scope.user):
                present = await self._collection.present(scope.user, _only(memory_id), fields, as_of=as_of)
                asked = [row for row in layout.newest(present.rows) if layout.row_in_scope(row, scope, types)]
                if said_until is not None:
                    asked = [row for row in asked if layout.memory_of(row).said_at <= said_until]
                ids = {row["memory_id"] for row in asked}
                doomed = {row["id"] for row in present.rows if row["memory_id"] in ids}
                if not doomed and as_of == NOW:
                    present.whole()
                    return memories
                if doomed and doomed <= deleted:
                    raise StoreError("milvus forget: deleted rows are still there")
                if doomed:
                    await self._delete_rows(scope.user, sorted(doomed))
            as_of = NOW
            memories |= ids
            deleted |= doomed

    @asynccontextmanager
    async def _write(self, operation: str, user: str = "") -> AsyncIterator[None]:
        """One writer at a time: Lite does not take several, and of a server's, each user's. The deadline begins when it
        is this one's turn."""
        turn = self._writing_for.setdefault(user, asyncio.Lock()) if user and self._own.lags else self._writing
        async with turn, self._connection.within(operation, self.write_timeout_s):
            try:
                yield
            except BaseException:
                self._own.unsure(user)
                raise

    async def _delete_rows(self, user: str, row_ids: Sequence[str]) -> None:
        for part in batches(row_ids, DELETE_BATCH):
            await self._collection.delete(layout.rows_filter(part))
        self._own.deleted(user, row_ids)
        self._flushing.wrote(len(row_ids))

    async def _sweep_one(self, filter: str) -> int:
        async with self._write("sweep"):
            if not self._own.lags:
                await self._reads.drained()
            removed = await self._collection.delete(filter)
        self._flushing.wrote(removed)
        return removed

    async def _flush(self) -> None:
        async with self._write("flush"), self._reads.held_off():
            await self._connection.call("flush")


def _only(memory_id: str | None) -> list[str] | None:
    return None if memory_id is None else [memory_id]
