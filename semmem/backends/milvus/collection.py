"""Rows of one Milvus collection: read them, find the nearest, insert, delete. No memories yet, no scopes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from itertools import islice
from typing import Any, TypeVar

from semmem.backends.milvus.answers import rows_of
from semmem.backends.milvus.connection import MilvusConnection
from semmem.backends.milvus.indexes import INDEXES
from semmem.backends.milvus.own_writes import Consistency
from semmem.backends.milvus.rows import FOUND_FIELDS, VECTOR_FIELD, VERSION_FIELDS, Row, newest, rows_filter
from semmem.memory import Vector

WINDOW_MAX = 16_384
"""Milvus refuses more rows than this in one search or query."""
SPARE_ROWS = 4
DELETE_BATCH = 500
SCAN_BATCH = 1000

Item = TypeVar("Item")


class MilvusCollection:
    """Every call is made inside ``connection.within``, except ``updated_versions``."""

    def __init__(self, connection: MilvusConnection, *, index: str) -> None:
        self._connection = connection
        self._index = INDEXES[index]

    async def nearest(
        self,
        query: Vector,
        filter: str,
        *,
        limit: int,
        timeout_s: float,
        level: Consistency,
        alive: Callable[[Iterable[Row]], list[Row]],
        fields: Sequence[str] = FOUND_FIELDS,
    ) -> list[Row]:
        """Rows of the nearest ``limit`` memories with their ``cosine``, of those that ``alive`` leaves.

        A few more rows are asked for, since a memory that is being replaced has several, and many more while that was
        not enough: each row costs, some 0.15 ms on Lite.
        """
        asked = min(limit + SPARE_ROWS, WINDOW_MAX)
        while True:
            hits = await self._search(query, filter, asked, timeout_s, level, fields)
            rows = newest(alive(map(_found, hits)))
            if len(rows) >= limit or len(hits) < asked or asked == WINDOW_MAX:
                return rows
            asked = min(4 * asked, WINDOW_MAX)

    async def _search(
        self, query: Vector, filter: str, limit: int, timeout_s: float, level: Consistency, fields: Sequence[str]
    ) -> Sequence[Any]:
        answer = await self._connection.call(
            "search",
            timeout_s=timeout_s,
            data=[query.tolist()],
            anns_field=VECTOR_FIELD,
            filter=filter,
            limit=limit,
            output_fields=list(fields),
            search_params={"params": self._index.search(limit)},
            consistency_level=level,
        )
        return answer[0]  # type: ignore[no-any-return]

    async def rows(
        self, filter: str, fields: Sequence[str], *, limit: int, timeout_s: float, level: Consistency
    ) -> Sequence[Row]:
        answer = await self._connection.call(
            "query",
            timeout_s=timeout_s,
            filter=filter,
            output_fields=list(fields),
            limit=limit,
            consistency_level=level,
        )
        return rows_of(answer)

    async def nothing(self, *, level: Consistency, timeout_s: float) -> None:
        """One round trip that reads no row."""
        await self.rows(rows_filter([""]), ["id"], limit=1, timeout_s=timeout_s, level=level)

    async def insert(self, *rows: Row, timeout_s: float) -> None:
        await self._connection.call("insert", timeout_s=timeout_s, data=list(rows))

    async def users(self, reading: Callable[[], AbstractAsyncContextManager[None]], *, timeout_s: float) -> set[str]:
        """Whose rows there are. Each page is read within ``reading``, and Bounded, as all that iterators read."""
        found: set[str] = set()
        scan = self._connection.scan("version > 0", ["user_id"], batch=SCAN_BATCH, timeout_s=timeout_s)
        async with aclosing(scan):
            while True:
                async with reading():
                    rows = await anext(scan, None)
                if rows is None:
                    return found
                found |= {row["user_id"] for row in rows}

    async def delete_rows(self, row_ids: Iterable[str], *, timeout_s: float) -> None:
        for part in batches(row_ids, DELETE_BATCH):
            await self.delete(rows_filter(part), timeout_s=timeout_s)

    async def delete(self, filter: str, *, timeout_s: float) -> int:
        """How many rows went: Lite names them, a server counts them."""
        answer = await self._connection.call("delete", timeout_s=timeout_s, filter=filter)
        return len(answer) if isinstance(answer, list) else int(answer.get("delete_count", 0))

    async def flush(self, *, timeout_s: float) -> None:
        await self._connection.call("flush", timeout_s=timeout_s)

    async def compact(self, *, timeout_s: float) -> None:
        """On semmem's Milvus Lite: rewrite the files without removed rows, and return when that is done."""
        await self._connection.call("compact", timeout_s=timeout_s)

    async def updated_versions(self, *, rows_max: int, timeout_s: float) -> dict[str, dict[str, int]]:
        """By user and memory id the highest version of those above 1; of at most about ``rows_max`` rows."""
        highest: defaultdict[str, dict[str, int]] = defaultdict(dict)
        seen = 0
        scan = self._connection.scan("version > 1", VERSION_FIELDS, batch=SCAN_BATCH, timeout_s=timeout_s)
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
