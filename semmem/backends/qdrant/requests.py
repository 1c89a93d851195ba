"""The requests about points, each with its timeout: no memories yet, no scopes. Called inside ``errors.within``."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from qdrant_client import models

from semmem.backends.qdrant.engine import Engine
from semmem.backends.qdrant.points import VECTOR, exactly
from semmem.memory import Vector
from semmem.ports.errors import StoreError

PAGE_POINTS = 500
"""Points in one answer of a scan: with vectors some 5 MB of JSON."""
REMOVE_BATCH = 200
"""Points in one removal; each adds a clause to the filter."""


class Requests:
    """``search_params``: None for the local mode, which ignores them and says so each time."""

    def __init__(self, engine: Engine, name: str, search_params: models.SearchParams | None) -> None:
        self._engine = engine
        self._name = name
        self._search_params = {"search_params": search_params} if search_params else {}

    async def nearest(
        self, vector: Vector, asked: models.Filter, *, limit: int, timeout_s: float, vectors: bool = False
    ) -> list[models.ScoredPoint]:
        """Best first, with ``score`` = cosine."""
        answer = await self._ask(
            "query_points",
            timeout_s,
            query=vector.tolist(),
            using=VECTOR,
            query_filter=asked,
            limit=limit,
            with_payload=True,
            with_vectors=vectors,
            **self._search_params,
        )
        return answer.points  # type: ignore[no-any-return]

    async def page(
        self,
        asked: models.Filter,
        *,
        limit: int,
        timeout_s: float,
        fields: Sequence[str] = (),
        vectors: bool = False,
        offset: Any = None,
    ) -> tuple[list[models.Record], Any]:
        """Points by id, and where the next page begins (None: this was the last). No ``fields``: all of them."""
        found, following = await self._ask(
            "scroll",
            timeout_s,
            scroll_filter=asked,
            limit=limit,
            offset=offset,
            with_payload=list(fields) or True,
            with_vectors=[VECTOR] if vectors else False,
        )
        return found, following

    async def each(
        self, asked: models.Filter, *, timeout_s: float, fields: Sequence[str] = (), vectors: bool = False
    ) -> AsyncIterator[models.Record]:
        offset = None
        while True:
            found, offset = await self.page(
                asked, limit=PAGE_POINTS, timeout_s=timeout_s, fields=fields, vectors=vectors, offset=offset
            )
            for point in found:
                yield point
            if offset is None:
                return

    async def all(
        self, asked: models.Filter, *, points_max: int, timeout_s: float, vectors: bool = True
    ) -> list[models.Record]:
        """Raises StoreError when there are more than ``points_max``."""
        found: list[models.Record] = []
        async for point in self.each(asked, timeout_s=timeout_s, vectors=vectors):
            found.append(point)
            if len(found) > points_max:
                raise StoreError(f"a user has more than rows_per_user_max={points_max} rows")
        return found

    async def count(self, asked: models.Filter, *, timeout_s: float) -> int:
        answer = await self._ask("count", timeout_s, count_filter=asked, exact=True)
        return int(answer.count)

    async def put(self, point: models.PointStruct, replaces: models.Filter, *, timeout_s: float) -> None:
        """Insert it, or replace the present one where that is in ``replaces``."""
        await self._ask("upsert", timeout_s, points=[point], update_filter=replaces, wait=True)

    async def remove(self, asked: models.Filter, *, timeout_s: float) -> None:
        selector = models.FilterSelector(filter=asked)
        await self._ask("delete", timeout_s, points_selector=selector, wait=True)

    async def remove_exactly(self, user: str, chosen: Iterable[tuple[str, int]], *, timeout_s: float) -> None:
        """These (point id, version) of a user."""
        for part in _batches(chosen, REMOVE_BATCH):
            await self.remove(exactly(user, part), timeout_s=timeout_s)

    async def _ask(self, operation: str, timeout_s: float, **arguments: Any) -> Any:
        """The server gives up too, in whole seconds."""
        return await self._engine.ask(operation, collection_name=self._name, timeout=math.ceil(timeout_s), **arguments)


def _batches(items: Iterable[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
