"""The rows of one user, as a collection answers and with what this process wrote a moment ago."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from semmem.backends.milvus.answers import INLINE_ROWS_MAX
from semmem.backends.milvus.collection import MilvusCollection
from semmem.backends.milvus.own_writes import CAUGHT_UP_S, Consistency, OwnWrites
from semmem.backends.milvus.rows import (
    ALL_FIELDS,
    FOUND_FIELDS,
    SCOPE_FIELDS,
    Row,
    is_retrievable,
    memory_filter,
    newest,
    search_filter,
    user_filter,
    with_cosine,
)
from semmem.memory import MemoryType, Scope, Vector, are_passages
from semmem.ports.errors import StoreError

WHATEVER_OTHERS_WROTE = -math.inf
"""As of when others' writes must show: when they do."""
NOW = math.inf


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


class UserRows:
    """Every call is made inside ``MilvusConnection.within``. ``as_of`` is a time of ``own.now``, until which others'
    writes are seen. Of one user ``rows_max`` rows are read. ``is_exact``: the collection's own search misses nothing.
    """

    def __init__(self, collection: MilvusCollection, own: OwnWrites, *, is_exact: bool, rows_max: int) -> None:
        self._collection = collection
        self._own = own
        self._is_exact = is_exact
        self._rows_max = rows_max

    async def nearest(
        self,
        query: Vector,
        scope: Scope,
        types: Sequence[MemoryType],
        now: float,
        *,
        limit: int,
        as_of: float | None,
        timeout_s: float,
    ) -> list[Row]:
        """Rows of the nearest memories, at least ``limit`` where there are as many. ``as_of`` in seconds since the
        epoch: then they are the nearest, whatever the index. With None nothing is waited for, and a graph may miss
        some."""
        began = self._own.now()
        level: Consistency = "Bounded"
        if as_of is not None:
            since = began - (time.time() - as_of)
            if not self._is_exact:
                present = await self.present(scope.user, None, ALL_FIELDS, as_of=since, timeout_s=timeout_s)
                if not present.is_cut:
                    return await _ranked(present.rows, query, scope, types, now)
            level = self._own.level(scope.user, began, since)
        found = await self._collection.nearest(
            query,
            search_filter(scope, types, now),
            limit=limit,
            timeout_s=timeout_s,
            level=level,
            alive=lambda rows: self._own.alive(scope.user, rows, began),
            fields=ALL_FIELDS if are_passages(types) else FOUND_FIELDS,
        )
        self._answered(scope.user, level, began)
        own = (row for row in self._own.rows(scope.user, began) if is_retrievable(row, scope, types, now))
        return newest([*found, *(with_cosine(row, query) for row in own)])

    async def present(
        self, user: str, memory_id: str | None, fields: Sequence[str], *, as_of: float, timeout_s: float
    ) -> Present:
        """Every version of every memory, or of one."""
        filter = user_filter(user) if memory_id is None else memory_filter(user, memory_id)
        began, limit = self._own.now(), self._rows_max + 1
        level = self._own.level(user, began, as_of)
        answer = await self._collection.rows(filter, fields, limit=limit, timeout_s=timeout_s, level=level)
        self._answered(user, level, began)
        own = {row["id"]: row for row in self._own.rows(user, began) if memory_id in (None, row["memory_id"])}
        alive = (row for row in self._own.alive(user, answer, began) if row["id"] not in own)
        return Present([*alive, *own.values()], self._rows_max, is_cut=len(answer) == limit)

    async def before_a_put(self, user: str, memory_id: str, *, timeout_s: float) -> list[Row]:
        as_of = self._own.now() - CAUGHT_UP_S
        return (await self.present(user, memory_id, SCOPE_FIELDS, as_of=as_of, timeout_s=timeout_s)).rows

    def _answered(self, user: str, level: Consistency, began: float) -> None:
        if level == "Strong":
            self._own.settled(user, began)


async def _ranked(
    rows: Sequence[Row], query: Vector, scope: Scope, types: Sequence[MemoryType], now: float
) -> list[Row]:
    """Every memory that may be found, with its cosine; of many, beside the event loop."""

    def ranked() -> list[Row]:
        return [with_cosine(row, query) for row in newest(rows) if is_retrievable(row, scope, types, now)]

    return ranked() if len(rows) <= INLINE_ROWS_MAX else await asyncio.to_thread(ranked)
