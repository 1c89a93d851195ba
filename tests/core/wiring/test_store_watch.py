"""The store's troubles as the process sees them: not there yet, damaged, away for a while, no room on its disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.ports.errors import StoreDamaged, StoreError, StoreFull, StoreMismatch, StoreUnavailable
from semmem.wiring.store_watch import StoreWatch


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
        self.opened += 1

    async def health(self) -> None:
        self._fail()

    async def check_room(self) -> None:
        self._fail()


async def test_opening_goes_on_until_it_is_open_and_damage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Troubled(StoreUnavailable("away"), StoreDamaged("file x"), StoreDamaged("file x"))
    watch = StoreWatch(store, None, retry_s=0.001)
    await watch.open()
    assert (watch.answers, watch.tried.is_set(), store.opened) == (True, True, 1)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "store unavailable",
        "store damaged",
    ]


async def test_that_it_answers_does_not_spare_opening_it() -> None:
    store = Troubled(StoreUnavailable("away"))
    watch = StoreWatch(store, None, retry_s=0.001)
    opening = Tasks().spawn("open", watch.open())
    await watch.tried.wait()
    await watch.look()
    assert watch.answers
    await asyncio.wait_for(opening, 5.0)
    assert store.opened == 1


async def test_a_store_that_does_not_fit_is_not_tried_again() -> None:
    watch = StoreWatch(Troubled(StoreMismatch("of another model")), None)
    with pytest.raises(StoreMismatch):
        await watch.open()
    assert not watch.tried.is_set()


async def test_a_store_nobody_tried_to_open_is_not_asked() -> None:
    watch = StoreWatch(Troubled(), None)
    await watch.look()
    assert not watch.answers


async def test_it_is_told_once_that_it_does_not_answer_and_once_that_it_does(caplog: pytest.LogCaptureFixture) -> None:
    store = Troubled()
    watch = StoreWatch(store, None)
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
    watch = StoreWatch(InProcessStore(), Troubled(StoreFull("full"), StoreFull("full")))
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
