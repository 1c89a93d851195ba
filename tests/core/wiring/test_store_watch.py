"""The store's troubles as the process sees them: not there yet, damaged, away for a while, no room on its disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.errors import StoreDamaged, StoreError, StoreFull, StoreMismatch, StoreTimeout, StoreUnavailable
from semmem.wiring.maintenance import StoreWatch

DIMENSION = 3


class Troubled(InProcessStore):
    """Fails with these errors, one a call, as a store and as what needs a disk; then all is well."""

    def __init__(self, *troubles: StoreError) -> None:
        super().__init__()
        self.troubles: Iterator[StoreError] = iter(troubles)
        self.opened = 0

    def _fail(self) -> None:
        for trouble in self.troubles:
            raise trouble

    async def open(self) -> None:
        self._fail()
        await super().open()
        self.opened += 1

    async def health(self) -> None:
        self._fail()

    async def check_room(self) -> None:
        self._fail()


class Cold(InProcessStore):
    """Needs seconds of ``clock`` for each of its first searches, ``seconds`` one after the other, and then none; None:
    it does not answer. ``searched``: with vectors of these shapes."""

    def __init__(self, *seconds: float | None) -> None:
        super().__init__()
        self.seconds = list(seconds)
        self.searched: list[tuple[int, ...]] = []
        self.listed = 0
        self.now = 0.0

    def clock(self) -> float:
        return self.now

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
        self.searched.append(vector.shape)
        took = self.seconds.pop(0) if self.seconds else 0.0
        if took is None:
            raise StoreTimeout("loading")
        self.now += took
        return []

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        self.listed += 1
        return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)


def warming(store: Cold) -> StoreWatch:
    return StoreWatch(store, None, dimension=DIMENSION, quick_s=0.1, pause_s=0.0, clock=store.clock)


async def test_a_store_is_tried_once_it_reads_and_searches_as_quickly_as_requests_want_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Cold(0.2, None, 0.11)
    watch = warming(store)
    await watch.open()
    assert (watch.tried.is_set(), watch.answers) == (True, True)
    assert (store.searched, store.listed) == ([(DIMENSION,)] * 4, 4)
    assert caplog.messages == []


async def test_a_store_that_stays_slow_is_served_with_all_the_same_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = warming(Cold(*[0.2] * 1000))
    await watch.open()
    assert (watch.tried.is_set(), watch.answers) == (True, True)
    assert caplog.messages == ["the store is open, but slow: requests may pass without memory"]


async def test_a_store_that_hangs_when_it_is_open_is_not_waited_for_without_an_end() -> None:
    class Hanging(InProcessStore):
        async def list(self, *_arguments: object, **_options: object) -> list[Memory]:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    watch = StoreWatch(Hanging(), None, dimension=DIMENSION, warming_s=0.01)
    await asyncio.wait_for(watch.open(), 60.0)
    assert watch.tried.is_set()


async def test_opening_goes_on_until_it_is_open_and_damage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Troubled(StoreUnavailable("away"), StoreDamaged("file x"), StoreDamaged("file x"))
    watch = StoreWatch(store, None, dimension=DIMENSION, retry_s=0.001)
    await watch.open()
    assert (watch.answers, watch.tried.is_set(), store.opened) == (True, True, 1)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "store unavailable",
        "store damaged",
    ]


async def test_that_it_answers_does_not_spare_opening_it() -> None:
    store = Troubled(StoreUnavailable("away"))
    watch = StoreWatch(store, None, dimension=DIMENSION, retry_s=0.001)
    opening = Tasks().spawn("open", watch.open())
    await watch.tried.wait()
    await watch.look()
    assert watch.answers
    await asyncio.wait_for(opening, 5.0)
    assert store.opened == 1


async def test_a_store_that_does_not_fit_is_not_tried_again() -> None:
    watch = StoreWatch(Troubled(StoreMismatch("of another model")), None, dimension=DIMENSION)
    with pytest.raises(StoreMismatch):
        await watch.open()
    assert not watch.tried.is_set()


async def test_a_store_nobody_tried_to_open_is_not_asked() -> None:
    watch = StoreWatch(Troubled(), None, dimension=DIMENSION)
    await watch.look()
    assert not watch.answers


async def test_it_is_told_once_that_it_does_not_answer_and_once_that_it_does(caplog: pytest.LogCaptureFixture) -> None:
    store = Troubled()
    watch = StoreWatch(store, None, dimension=DIMENSION)
    await watch.open()
    store.troubles = iter([StoreUnavailable("away"), StoreUnavailable("away")])
    seen = []
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            await watch.look()
            seen.append(watch.answers)
    assert seen == [False, False, True, True]
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


async def test_a_full_disk_is_told_once_and_that_it_has_room_again(caplog: pytest.LogCaptureFixture) -> None:
    watch = StoreWatch(InProcessStore(), Troubled(StoreFull("full"), StoreFull("full")), dimension=DIMENSION)
    seen = []
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await watch.look()
            seen.append(watch.has_room)
    assert seen == [False, False, True]
    assert caplog.messages == [
        "disk full, memories are read but none is written: full",
        "the disk has room again",
    ]
