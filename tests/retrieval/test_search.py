"""The search, on a real store with a real (if simple) embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports import EmbedderError, StoreError, StoreTimeout
from semmem.retrieval.search import FETCH_MAX, OVERFETCH, retrieve
from tests.fakes import HashEmbedder
from tests.retrieval.talk import NOW

ADA = Scope("ada")


class Recording(InProcessStore):
    """Remembers the limits it was asked for, and can be slow or broken."""

    delay_s = 0.0
    broken = False

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[int] = []

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        fresh: bool = False,
    ) -> list[Hit]:
        self.limits.append(limit)
        await asyncio.sleep(self.delay_s)
        if self.broken:
            raise StoreError("disk full")
        return await super().search(scope, vector, limit=limit, now=now, types=types, fresh=fresh)


class Failing(HashEmbedder):
    async def embed(self, text: str) -> Vector:
        raise EmbedderError("no model")


class Slow(HashEmbedder):
    async def embed(self, text: str) -> Vector:
        await asyncio.sleep(10)
        return await super().embed(text)


@pytest.fixture
async def store() -> AsyncIterator[Recording]:
    store, embedder = Recording(), HashEmbedder()
    await store.open()
    for number, (user, content, kind) in enumerate(
        [
            ("ada", "the budget for Hawaii is 10000", MemoryType.SEMANTIC),
            ("ada", "the cat is called Turing", MemoryType.SEMANTIC),
            ("ada", "to file the budget open the portal", MemoryType.PROCEDURAL),
            ("bob", "the budget for Hawaii is 99", MemoryType.SEMANTIC),
        ]
    ):
        vector = await embedder.embed(content)
        memory = Memory(f"mem_{number}", 1, kind, content, user, embedding=vector, updated_at=NOW)
        await store.put(Scope(user), memory)
    yield store
    await store.close()


async def test_the_users_nearest_memories_above_the_threshold_come_best_first(store: Recording) -> None:
    hits = await retrieve(store, HashEmbedder(), ADA, "budget for Hawaii", limit=5, threshold=0.1, now=NOW)
    assert [hit.memory.id for hit in hits] == ["mem_0", "mem_2"]
    assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)


async def test_the_threshold_itself_is_good_enough(store: Recording) -> None:
    [best] = await retrieve(store, HashEmbedder(), ADA, "budget for Hawaii", limit=5, threshold=0.6, now=NOW)
    same = await retrieve(store, HashEmbedder(), ADA, "budget for Hawaii", limit=5, threshold=best.cosine, now=NOW)
    none = await retrieve(
        store, HashEmbedder(), ADA, "budget for Hawaii", limit=5, threshold=float(np.nextafter(best.cosine, 2)), now=NOW
    )
    assert (len(same), len(none)) == (1, 0)


async def test_types_narrow_the_search(store: Recording) -> None:
    hits = await retrieve(
        store, HashEmbedder(), ADA, "budget", limit=5, threshold=0.1, types=[MemoryType.PROCEDURAL], now=NOW
    )
    assert [hit.memory.id for hit in hits] == ["mem_2"]


async def test_more_than_wanted_is_fetched_within_a_bound(store: Recording) -> None:
    for limit in (1, 5, 50, 100):
        await retrieve(store, HashEmbedder(), ADA, "budget", limit=limit, threshold=0, now=NOW)
    assert store.limits == [OVERFETCH, 5 * OVERFETCH, 50 * OVERFETCH, FETCH_MAX]


async def test_nothing_wanted_or_nothing_asked_asks_nobody(store: Recording) -> None:
    assert await retrieve(store, Failing(), ADA, "budget", limit=0, threshold=0, now=NOW) == []
    assert await retrieve(store, Failing(), ADA, "", limit=5, threshold=0, now=NOW) == []
    assert store.limits == []


async def test_failures_of_embedder_and_store_come_through(store: Recording) -> None:
    with pytest.raises(EmbedderError, match="no model"):
        await retrieve(store, Failing(), ADA, "budget", limit=5, threshold=0, now=NOW)
    store.broken = True
    with pytest.raises(StoreError, match="disk full"):
        await retrieve(store, HashEmbedder(), ADA, "budget", limit=5, threshold=0, now=NOW)


async def test_who_is_late_has_failed_and_is_named(store: Recording) -> None:
    with pytest.raises(EmbedderError, match=r"no vector within 0\.01 s"):
        await retrieve(store, Slow(), ADA, "budget", limit=5, threshold=0, now=NOW, embed_timeout_s=0.01)
    store.delay_s = 10
    with pytest.raises(StoreTimeout, match=r"no hits within 0\.01 s"):
        await retrieve(store, HashEmbedder(), ADA, "budget", limit=5, threshold=0, now=NOW, store_timeout_s=0.01)


async def test_the_callers_own_deadline_is_not_taken_for_a_failure(store: Recording) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await retrieve(store, Slow(), ADA, "budget", limit=5, threshold=0, now=NOW, embed_timeout_s=5)
