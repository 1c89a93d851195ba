"""The rows of one Milvus collection, as it answers and with what this process wrote a moment ago. No memories yet."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from semmem.backends.milvus import rows as layout
from semmem.backends.milvus.connection import MilvusConnection
from semmem.backends.milvus.indexes import INDEXES
from semmem.backends.milvus.own_writes import Consistency, OwnWrites
from semmem.backends.milvus.rows import Row
from semmem.memory import Scope, Types, Vector, are_passages
from semmem.ports.errors import StoreError

WINDOW_MAX = 16_384
"""Milvus refuses more rows than this in one search or query."""
SPARE_ROWS = 4
WHATEVER_OTHERS_WROTE = -math.inf
"""As of when others' writes must show: when they do."""
NOW = math.inf

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Present:
    """A user's rows, at most about ``rows_max``."""

    rows: list[Row]
    rows_max: int
    is_cut: bool

    def whole(self) -> list[Row]:
        """Raises StoreError when there are more."""
        if self.is_cut or len(self.rows) > self.rows_max:
            raise StoreError(f"a user has more than rows_per_user_max={self.rows_max} rows")
        return self.rows


class MilvusCollection:
    """Every call is made inside ``connection.within``, except ``updated_versions``. ``as_of`` is a time
    of ``own.now``, until which others' writes are seen. Of one user ``rows_max`` rows are read."""

    def __init__(self, connection: MilvusConnection, own: OwnWrites, *, rows_max: int) -> None:
        self._connection = connection
        self._own = own
        self._index = INDEXES[connection.index]
        self._rows_max = rows_max

    async def nearest(
        self, query: Vector, scope: Scope, types: Types, now: float, *, limit: int, as_of: float | None
    ) -> list[Row]:
        """Rows of the nearest memories with their ``cosine``, at least ``limit`` where there are as many. ``as_of`` in
        seconds since the epoch: then they are the nearest, whatever the index. With None nothing is waited for, and a
        graph may miss some."""
        began = self._own.now()
        level: Consistency = "Bounded"
        if as_of is not None:
            since = began - (time.time() - as_of)
            if not self._index.is_exact:
                present = await self.present(scope.user, None, layout.ALL_FIELDS, as_of=since)
                if not present.is_cut:
                    return await layout.over(present.rows, layout.ranked, query, scope, types, now)
            level = self._own.level(scope.user, began, since)
        asked = {
            "data": [query.tolist()],
            "anns_field": layout.VECTOR_FIELD,
            "filter": layout.search_filter(scope, types, now),
            "output_fields": layout.FOUND_FIELDS if as_of is None and not are_passages(types) else layout.ALL_FIELDS,
            "consistency_level": level,
        }
        found = await self._alive(asked, limit, lambda rows: self._own.alive(scope.user, rows, began))
        if level == "Strong":
            self._own.settled(scope.user, began)
        own = (row for row in self._own.rows(scope.user, began) if layout.is_retrievable(row, scope, types, now))
        return layout.newest([*found, *(layout.with_cosine(row, query) for row in own)])

    async def _alive(self, asked: dict[str, Any], limit: int, alive: Callable[[Iterable[Row]], list[Row]]) -> list[Row]:
        """Of the rows found, those that ``alive`` leaves. A few more are asked for, since a memory that is being
        replaced has several, and many more while that was not enough: each row costs, some 0.15 ms on Lite."""
        wanted = min(limit + SPARE_ROWS, WINDOW_MAX)
        while True:
            params = {"params": self._index.search(wanted)}
            hits = (await self._connection.call("search", limit=wanted, search_params=params, **asked))[0]
            rows = layout.newest(alive(map(_found, hits)))
            if len(rows) >= limit or len(hits) < wanted or wanted == WINDOW_MAX:
                return rows
            wanted = min(4 * wanted, WINDOW_MAX)

    async def present(
        self, user: str, memory_ids: Sequence[str] | None, fields: Sequence[str], *, as_of: float
    ) -> Present:
        """Every version of these memories, or of all."""
        filter = layout.user_filter(user) if memory_ids is None else layout.memories_filter(user, memory_ids)
        began, limit = self._own.now(), self._rows_max + 1
        level = self._own.level(user, began, as_of)
        answer = await self.rows(filter, fields, limit=limit, level=level)
        if level == "Strong":
            self._own.settled(user, began)
        own = {
            row["id"]: row
            for row in self._own.rows(user, began)
            if memory_ids is None or row["memory_id"] in memory_ids
        }
        alive = (row for row in self._own.alive(user, answer, began) if row["id"] not in own)
        return Present([*alive, *own.values()], self._rows_max, is_cut=len(answer) == limit)

    async def rows(self, filter: str, fields: Sequence[str], *, limit: int, level: Consistency) -> Sequence[Row]:
        asked = {"filter": filter, "output_fields": list(fields), "limit": limit, "consistency_level": level}
        return layout.rows_of(await self._connection.call("query", **asked))

    async def nothing(self, *, level: Consistency) -> None:
        """One round trip that reads no row."""
        await self.rows(layout.rows_filter([""]), ["id"], limit=1, level=level)

    async def delete(self, filter: str) -> int:
        """How many rows went: Lite names them, a server counts them."""
        answer = await self._connection.call("delete", filter=filter)
        return len(answer) if isinstance(answer, list) else int(answer.get("delete_count", 0))

    async def updated_versions(self, *, rows_max: int, timeout_s: float) -> dict[str, dict[str, int]]:
        """By user and memory id the highest version of those above 1; of at most about ``rows_max`` rows."""
        highest: defaultdict[str, dict[str, int]] = defaultdict(dict)
        seen = 0
        scan = self._connection.scan("version > 1", layout.VERSION_FIELDS, timeout_s=timeout_s)
        async with aclosing(scan):
            async for rows in scan:
                for row in rows:
                    versions = highest[row["user_id"]]
                    versions[row["memory_id"]] = max(row["version"], versions.get(row["memory_id"], 0))
                seen += len(rows)
                if seen >= rows_max:
                    break
        return highest


def _found(hit: Any) -> Row:
    return {**hit["entity"], "cosine": max(-1.0, min(1.0, float(hit["distance"])))}


def batches(items: Iterable[Item], size: int) -> Iterable[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
