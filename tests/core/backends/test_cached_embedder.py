"""The cache in front of an embedder that counts, can be held, and can fail."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from semmem.backends.embedding.cached import CachedEmbedder
from semmem.memory import Vector
from semmem.ports.embedder import CacheUse, EmbedderWrapper, cache_use
from semmem.ports.errors import EmbedderBusy, EmbedderError


class Counting:
    """Remembers what it was asked; waits for ``gate``; fails while ``failing``."""

    dimension = 1
    signature = "test/counting/1"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failing = False
        self.failure = EmbedderError
        self.allowed_s: list[float | None] = []
        self.state = "new"

    async def open(self) -> None:
        self.state = "open"

    async def close(self) -> None:
        self.state = "closed"

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.asked.append(text)
        self.allowed_s.append(within_s)
        await self.gate.wait()
        if self.failing:
            raise self.failure("out of order")
        return np.array([len(text)], dtype=np.float32)

    def at_hand(self, text: str) -> Vector | None:
        return None


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_text_is_computed_once_while_it_is_fresh() -> None:
    inner, clock = Counting(), Clock()
    cached = CachedEmbedder(inner, ttl_s=300, clock=clock)
    assert await cached.embed("abc") == [3]
    clock.now += 299.9
    assert await cached.embed("abc") == [3]
    assert inner.asked == ["abc"]
    clock.now += 0.1
    await cached.embed("abc")
    assert inner.asked == ["abc", "abc"]


async def test_what_was_kept_is_counted_and_what_was_not() -> None:
    inner, clock = Counting(), Clock()
    cached = CachedEmbedder(inner, ttl_s=300, clock=clock)
    for text in ("a", "b", "a"):
        await cached.embed(text)
    assert cache_use(EmbedderWrapper(cached)) == CacheUse(hits=1, misses=2, entries=2)
    clock.now += 300
    assert cached.cache_use == CacheUse(hits=1, misses=2, entries=0)
    assert cache_use(inner) is None


async def test_the_least_recently_used_entry_goes_first() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, entries_max=2)
    for text in ("a", "b", "a", "c"):
        await cached.embed(text)
    inner.asked.clear()
    await cached.embed("a")
    await cached.embed("b")
    assert inner.asked == ["b"]


async def test_equal_texts_in_flight_are_computed_once() -> None:
    inner = Counting()
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    tasks = [asyncio.get_running_loop().create_task(cached.embed(text)) for text in ("same", "same", "other", "same")]
    await asyncio.sleep(0)
    inner.gate.set()
    assert [float(vector[0]) for vector in await asyncio.gather(*tasks)] == [4, 4, 5, 4]
    assert inner.asked == ["same", "other"]


async def test_no_request_follows_who_has_time_but_who_has_time_follows_a_request() -> None:
    inner = Counting()
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(cached.embed("same", within_s=within_s)) for within_s in (None, 0.1, None, 0.1)]
    await asyncio.sleep(0)
    inner.gate.set()
    await asyncio.gather(*tasks)
    assert inner.allowed_s == [None, 0.1]


async def test_who_follows_a_request_that_is_refused_is_told_the_same() -> None:
    inner = Counting()
    inner.failure, inner.failing = EmbedderBusy, True
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    tasks = [asyncio.get_running_loop().create_task(cached.embed("same", within_s=0.1)) for _ in range(2)]
    await asyncio.sleep(0)
    inner.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EmbedderBusy] * 2


async def test_what_is_too_late_for_a_request_is_made_for_who_has_time() -> None:
    inner = Counting()
    inner.failure, inner.failing = EmbedderBusy, True
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    request = asyncio.get_running_loop().create_task(cached.embed("same", within_s=0.1))
    patient = asyncio.get_running_loop().create_task(cached.embed("same"))
    await asyncio.sleep(0)
    inner.gate.set()
    with pytest.raises(EmbedderBusy):
        await request
    inner.failing = False
    assert await patient == [4]


@pytest.mark.parametrize("leaver", [0, 1])
async def test_who_leaves_does_not_take_the_others_along(leaver: int) -> None:
    inner = Counting()
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    tasks = [asyncio.get_running_loop().create_task(cached.embed("same")) for _ in range(3)]
    await asyncio.sleep(0)
    tasks.pop(leaver).cancel()
    await asyncio.sleep(0)
    inner.gate.set()
    assert [float(vector[0]) for vector in await asyncio.gather(*tasks)] == [4, 4]


async def test_a_failure_reaches_everyone_and_is_not_kept() -> None:
    inner = Counting()
    inner.failing = True
    inner.gate.clear()
    cached = CachedEmbedder(inner)
    tasks = [asyncio.get_running_loop().create_task(cached.embed("same")) for _ in range(2)]
    await asyncio.sleep(0)
    inner.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["out of order"] * 2
    inner.failing = False
    assert await cached.embed("same") == [4]


async def test_a_cached_vector_cannot_be_changed_by_a_caller() -> None:
    vector = await CachedEmbedder(Counting()).embed("abc")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9


async def test_texts_with_lone_surrogates_have_keys_too() -> None:
    cached = CachedEmbedder(Counting())
    assert await cached.embed("\ud800") == [1]
    assert await cached.embed("\ud800\udc00x") == [3]


async def test_the_rest_is_the_inner_embedder() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    await cached.open()
    assert (cached.dimension, cached.signature, inner.state) == (1, "test/counting/1", "open")
    await cached.close()
    assert inner.state == "closed"


@pytest.mark.parametrize(("entries_max", "ttl_s"), [(0, 1.0), (1, 0.0)])
def test_a_cache_without_room_or_time_is_refused(entries_max: int, ttl_s: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        CachedEmbedder(Counting(), entries_max=entries_max, ttl_s=ttl_s)
