"""Users who are loaded before anybody asks: not in a request's way, not in anybody's place, not out of date."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from semmem.background.in_process import Warming
from semmem.memory import Scope
from semmem.ports.errors import JournalUnavailable, StoreUnavailable
from semmem.retrieval.index.kept import Preloaded
from tests.support.shelf import ADA, Shelf


class Names:
    """Who was active."""

    def __init__(self, *users: str) -> None:
        self.users, self.asked = list(users), 0

    async def users_active(self, *, limit: int) -> list[str]:
        self.asked += 1
        return self.users[:limit]


async def test_who_was_loaded_beforehand_is_found_without_a_reading() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    assert await shelf.hot.preload("ada") is Preloaded.LOADED
    assert await shelf.contents() == ["tea"]
    assert await shelf.hot.preload("ada") is Preloaded.LOADED
    assert shelf.store.readings == 1


async def test_nobody_goes_for_somebody_who_was_not_asked_for() -> None:
    shelf = Shelf(users_max=1)
    await shelf.contents("bob")
    assert await shelf.hot.preload("ada") is Preloaded.NO_ROOM
    assert shelf.hot.at_hand("bob") is not None


async def test_who_is_asked_for_while_being_loaded_is_kept_as_any_other() -> None:
    shelf = Shelf(users_max=1)
    await shelf.contents("bob")
    shelf.store.open_doors.clear()
    loading = asyncio.ensure_future(shelf.hot.preload("ada"))  # noqa: TID251
    await asyncio.sleep(0.01)
    shelf.hot.warm("ada")
    shelf.store.open_doors.set()
    assert await loading is Preloaded.LOADED
    assert (shelf.hot.at_hand("ada") is not None, shelf.hot.at_hand("bob")) == (True, None)


async def test_it_waits_while_a_request_waits_for_its_load() -> None:
    shelf = Shelf()
    shelf.store.open_doors.clear()
    assert await shelf.hot.index("bob", wait_s=0.001) is None
    loading = shelf.tasks.spawn("preload", shelf.hot.preload("ada"))
    await asyncio.sleep(0.01)
    assert shelf.store.readings == 1
    shelf.store.open_doors.set()
    assert await loading is Preloaded.LOADED
    assert shelf.store.readings == 2


async def test_those_loaded_beforehand_outlive_a_walk_over_many() -> None:
    shelf = Shelf(users_max=10)
    for number in range(5):
        await shelf.hot.preload(f"user {number}")
    for number in range(100):
        await shelf.contents(f"stranger {number}")
    assert all(shelf.hot.at_hand(f"user {number}") is not None for number in range(5))


@pytest.mark.parametrize("change", ["erase", "forget", "put"])
async def test_what_changes_while_it_is_loaded_beforehand_does_not_come_back(change: str) -> None:
    shelf = Shelf()
    memory = await shelf.knows(1, "secret")
    shelf.store.open_doors.clear()
    loading = shelf.tasks.spawn("preload", shelf.hot.preload("ada"))
    while not shelf.store.readings:
        await asyncio.sleep(0)
    if change == "erase":
        await shelf.store.forget_scope(ADA)  # elsewhere, as erasure does
        shelf.hot.forget_user("ada")
    elif change == "forget":
        await shelf.hot.forget(ADA, "mem_1")
    else:
        await shelf.hot.put(ADA, replace(memory, version=2, content="tea"))
    shelf.store.open_doors.set()
    assert await loading is Preloaded.LOADED
    assert await shelf.contents() == (["tea"] if change == "put" else [])


async def test_a_store_that_fails_is_told_and_the_user_is_read_when_they_come() -> None:
    shelf = Shelf()
    shelf.store.error = StoreUnavailable("down")
    assert await shelf.hot.preload("ada") is Preloaded.FAILED
    shelf.store.error = None
    assert await shelf.contents() == []


# --- all of them, after a start --------------------------------------------------------------------------------------


async def test_after_a_start_the_latest_active_users_are_loaded_in_order_until_there_is_no_room() -> None:
    shelf, names = Shelf(users_max=3), Names("a", "b", "c", "d", "e", "f")
    warming = Warming(shelf.hot, names, users_max=5)
    await warming.run(lambda: True)
    assert [user for user in names.users if shelf.hot.at_hand(user) is not None] == ["a", "b", "c"]
    assert dict(warming.counts) == {Preloaded.LOADED: 3, Preloaded.NO_ROOM: 1}


async def test_no_more_are_loaded_than_was_asked_for() -> None:
    shelf, names = Shelf(), Names("a", "b", "c")
    await Warming(shelf.hot, names, users_max=2).run(lambda: True)
    assert shelf.hot.taken.users == 2


async def test_it_begins_when_the_store_answers_and_rests_while_it_does_not() -> None:
    shelf, names, answers = Shelf(), Names("a", "b"), False
    running = shelf.tasks.spawn("warming", Warming(shelf.hot, names, users_max=9, look_s=0.001).run(lambda: answers))
    await asyncio.sleep(0.02)
    assert (names.asked, shelf.store.readings) == (0, 0)
    answers = True
    await running
    assert shelf.hot.taken.users == 2


async def test_it_rests_when_the_store_goes_away_and_goes_on_where_it_was() -> None:
    shelf, names, answers = Shelf(), Names("a", "b", "c"), [True, True, False, False, True, True]

    def can_load() -> bool:
        return answers.pop(0) if answers else True

    read_when_away: list[int] = []

    def look() -> bool:
        can = can_load()
        if not can:
            read_when_away.append(shelf.store.readings)
        return can

    await Warming(shelf.hot, names, users_max=9, look_s=0.001).run(look)
    assert read_when_away == [1, 1]
    assert (shelf.hot.taken.users, shelf.store.readings) == (3, 3)


async def test_an_erasure_between_the_list_and_the_load_leaves_nothing_to_load() -> None:
    shelf, names = Shelf(), Names("bob", "ada")
    await shelf.knows(1, "secret")
    shelf.store.open_doors.clear()
    running = shelf.tasks.spawn("warming", Warming(shelf.hot, names, users_max=9).run(lambda: True))
    while not shelf.store.readings:
        await asyncio.sleep(0)
    assert await shelf.hot.forget_scope(Scope("ada")) == 1
    shelf.store.open_doors.set()
    await running
    index = shelf.hot.at_hand("ada")
    assert index is not None
    assert index.memories == ()


async def test_without_the_journal_everybody_is_loaded_when_they_come(caplog: pytest.LogCaptureFixture) -> None:
    class Away(Names):
        async def users_active(self, *, limit: int) -> list[str]:
            raise JournalUnavailable("away")

    shelf = Shelf()
    await Warming(shelf.hot, Away(), users_max=9).run(lambda: True)
    assert "each is loaded when they come" in caplog.text


async def test_progress_is_told_without_a_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    shelf, names = Shelf(), Names(*(f"somebody {number}" for number in range(101)))
    await Warming(shelf.hot, names, users_max=101).run(lambda: True)
    assert [record.getMessage().split()[1] for record in caplog.records] == ["100", "101"]
    assert "somebody" not in caplog.text
