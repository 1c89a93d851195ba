"""Active users' memories in process: what a write shows, what a load may miss, what is kept and what goes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.background import OffloadThreads
from semmem.memory import Hit, Memory, MemoryStatus, MemoryType, Scope
from semmem.ports.errors import StoreTimeout, StoreUnavailable
from semmem.retrieval.index import kept
from semmem.retrieval.index.hot_memories import AHEAD_S, READS_MAX
from semmem.retrieval.index.kept import ALL_DOUBT_S, DOUBT_S, LATE_S
from semmem.retrieval.index.memory_index import MemoryIndex
from tests.support.examples import examples
from tests.support.fakes import HashEmbedder
from tests.support.shelf import ADA, BOB, Shelf


async def test_a_user_is_read_once_and_then_served_from_here() -> None:
    shelf = Shelf()
    await shelf.knows(1)
    for _ in range(3):
        assert await shelf.contents() == ["tea"]
    assert (shelf.store.readings, shelf.hot.taken.users, shelf.hot.taken.memories) == (1, 1, 1)


async def test_users_never_share_an_index() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    await shelf.knows(1, "coffee", BOB)
    assert (await shelf.contents("ada"), await shelf.contents("bob")) == (["tea"], ["coffee"])
    assert await shelf.contents("nobody") == []


async def test_every_kind_of_write_shows_at_the_next_search_without_a_reading() -> None:
    shelf = Shelf()
    assert await shelf.contents() == []
    first = await shelf.knows(1, "tea")
    assert await shelf.contents() == ["tea"]
    await shelf.hot.put(ADA, replace(first, version=2, content="coffee"))
    await shelf.knows(2, "milk")
    assert await shelf.contents() == ["coffee", "milk"]
    await shelf.hot.put(ADA, first)  # an older version, late
    assert await shelf.contents() == ["coffee", "milk"]
    await shelf.hot.put(ADA, replace(first, version=3, status=MemoryStatus.SUPERSEDED))
    assert await shelf.contents() == ["milk"]
    assert shelf.store.readings == 1


async def test_what_is_forgotten_is_gone() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    await shelf.knows(2, "coffee")
    assert len(await shelf.contents()) == 2
    assert await shelf.hot.forget(ADA, "mem_1")
    assert await shelf.contents() == ["coffee"]
    assert await shelf.hot.forget_scope(ADA) == 1
    assert await shelf.contents() == []
    assert await shelf.hot.count(ADA) == 0


async def test_a_write_that_failed_is_read_again_since_it_may_have_been_written() -> None:
    shelf = Shelf()
    assert await shelf.contents() == []
    shelf.store.fails_after_writing = True
    with pytest.raises(StoreTimeout):
        await shelf.knows(1, "tea")
    assert await shelf.contents() == ["tea"]


async def test_a_write_that_overtakes_a_reading_is_not_missed() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    shelf.store.open_doors.clear()
    assert await shelf.hot.index("ada", wait_s=0.01) is None
    await shelf.knows(2, "coffee")
    await shelf.hot.forget(ADA, "mem_1")
    shelf.store.open_doors.set()
    assert await shelf.contents() == ["coffee"]
    assert shelf.store.readings == 2
    assert await shelf.contents() == ["coffee"]


async def test_what_was_forgotten_meanwhile_is_never_served_however_often_writes_overtake() -> None:
    shelf = Shelf()
    await shelf.knows(0, "secret")
    shelf.store.open_doors.clear()
    asked = shelf.tasks.spawn("ask", shelf.hot.index("ada", wait_s=5))
    await shelf.hot.forget(ADA, "mem_0")
    for number in range(READS_MAX):
        while shelf.store.readings <= number:
            await asyncio.sleep(0)
        await shelf.knows(number + 1, f"tea {number}")
        shelf.store.open_doors.set()
        await asyncio.sleep(0)
        shelf.store.open_doors.clear()
    shelf.store.open_doors.set()
    assert await asked is None
    assert "secret" not in await shelf.contents()


async def test_who_cannot_wait_goes_without_and_the_load_goes_on() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    shelf.store.open_doors.clear()
    assert await shelf.hot.index("ada", wait_s=0.01) is None
    assert await shelf.hot.index("ada", wait_s=0.01) is None
    shelf.store.open_doors.set()
    assert await shelf.contents() == ["tea"]
    assert shelf.store.readings == 1


async def test_a_cancelled_request_does_not_end_the_load_of_others() -> None:
    shelf = Shelf()
    shelf.store.open_doors.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shelf.hot.index("ada", wait_s=5)
    shelf.store.open_doors.set()
    assert await shelf.contents() == []
    assert shelf.store.readings == 1


async def test_a_failure_of_the_store_is_raised_and_not_kept() -> None:
    shelf = Shelf()
    shelf.store.error = StoreUnavailable("down")
    with pytest.raises(StoreUnavailable):
        await shelf.hot.index("ada", wait_s=5)
    shelf.store.error = None
    assert await shelf.contents() == []


async def test_users_in_process_keep_their_memories_while_the_store_is_down() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    assert await shelf.contents() == ["tea"]
    shelf.store.error = StoreUnavailable("down")
    assert await shelf.contents() == ["tea"]


async def test_a_load_has_a_deadline_of_its_own() -> None:
    shelf = Shelf(load_timeout_s=0.01)
    shelf.store.open_doors.clear()
    with pytest.raises(StoreTimeout, match=r"within 0\.01 s"):
        await shelf.hot.index("ada", wait_s=5)


async def test_only_so_many_load_at_once() -> None:
    shelf = Shelf(loads_max=2)
    shelf.store.open_doors.clear()
    for number in range(5):
        assert await shelf.hot.index(f"user {number}", wait_s=0.001) is None
    assert shelf.store.readings == 2
    shelf.store.open_doors.set()
    assert await shelf.contents("user 4") == []


async def test_when_too_many_wait_for_their_memories_the_next_ones_go_without() -> None:
    shelf = Shelf(loads_max=1, loads_waiting_max=3)
    shelf.store.open_doors.clear()
    for number in range(5):
        assert await shelf.hot.index(f"user {number}", wait_s=0.001) is None
    assert len(shelf.tasks) == 3
    shelf.store.open_doors.set()
    assert await shelf.tasks.wait(5)
    assert shelf.hot.taken.users == 3


async def test_what_others_wrote_shows_when_the_index_is_too_old() -> None:
    shelf = Shelf(staleness_s=10.0)
    memory = await shelf.knows(1, "tea")
    assert await shelf.contents() == ["tea"]
    await shelf.store.put(ADA, replace(memory, id="mem_2", content="coffee"))
    shelf.clock.now += 4
    assert await shelf.contents() == ["tea"]
    assert shelf.store.readings == 1
    shelf.clock.now += 6
    assert await shelf.contents() == ["coffee", "tea"]


async def test_while_changes_elsewhere_are_told_the_index_may_grow_older() -> None:
    shelf, told = Shelf(staleness_s=5.0, told_staleness_s=60.0), [True]
    shelf.hot.trust(lambda: told[0])
    memory = await shelf.knows(1, "tea")
    assert await shelf.contents() == ["tea"]
    await shelf.store.put(ADA, replace(memory, id="mem_2", content="coffee"))
    shelf.clock.now += 25
    assert await shelf.contents() == ["tea"]
    assert shelf.store.readings == 1
    told[0] = False
    assert await shelf.contents() == ["coffee", "tea"]


async def test_an_index_of_middling_age_is_renewed_behind_the_request() -> None:
    shelf = Shelf(staleness_s=10.0)
    assert await shelf.contents() == []
    shelf.clock.now += 6
    shelf.store.open_doors.clear()
    assert await shelf.contents() == []  # nobody waits for it
    shelf.store.open_doors.set()
    assert await shelf.tasks.wait(5)
    assert shelf.store.readings == 2


async def test_without_any_staleness_every_search_reads() -> None:
    shelf = Shelf(staleness_s=0.0)
    for _ in range(3):
        assert await shelf.contents() == []
    assert (shelf.store.readings, shelf.hot.taken.users) == (3, 0)


async def test_what_is_kept_is_bounded_by_users_and_by_memories() -> None:
    shelf = Shelf(users_max=2, memories_max=5)
    for user, count in (("ada", 2), ("bob", 2), ("eve", 2), ("max", 6)):
        for number in range(count):
            await shelf.knows(number, f"tea {number}", Scope(user))
        await shelf.contents(user)
        assert (shelf.hot.taken.users <= 2, shelf.hot.taken.memories <= 5) == (True, True)
    assert (shelf.hot.taken.users, shelf.hot.taken.memories) == (2, 4)  # one user alone with too many is not kept
    readings = shelf.store.readings
    await shelf.contents("eve")
    assert shelf.store.readings == readings
    await shelf.contents("ada")
    assert shelf.store.readings == readings + 1


async def test_writes_to_what_is_kept_stay_within_the_bound() -> None:
    shelf = Shelf(memories_max=3)
    await shelf.contents()
    for number in range(5):
        await shelf.knows(number, f"tea {number}")
        assert shelf.hot.taken.memories <= 3
    assert len(await shelf.contents()) == 5  # read again each time, and not kept


async def test_what_is_kept_is_bounded_in_bytes_and_by_what_searches_leave_behind() -> None:
    shelf = Shelf(bytes_max=150_000)
    for user in range(20):
        for number in range(10):
            await shelf.knows(number, f"tea {number}", Scope(f"user {user}"))
        await shelf.contents(f"user {user}")
        assert shelf.hot.taken.bytes <= 150_000
    users, last = shelf.hot.taken.users, "user 19"
    assert 2 <= users < 20
    index = shelf.hot.at_hand(last)
    assert index is not None
    before = shelf.hot.taken.bytes
    shelf.hot.found(last, index, [Hit(memory, 0.5, 0.5) for memory in index.memories])
    assert shelf.hot.taken.bytes > before or shelf.hot.taken.users < users
    shelf.hot.found(last, MemoryIndex([]), [])  # of an index that is kept no longer nothing is
    for _ in range(200):
        shelf.hot.found(last, index, [Hit(memory, 0.5, 0.5) for memory in index.memories])
        assert shelf.hot.taken.bytes <= 150_000


async def test_of_a_write_the_bytes_are_counted_and_of_a_new_index_no_more_than_it_takes() -> None:
    shelf = Shelf()
    await shelf.contents()
    empty = shelf.hot.taken.bytes
    for number in range(10):
        await shelf.knows(number, f"tea {number}")
    assert shelf.hot.taken.bytes > empty + 10 * 4 * 384
    await shelf.contents()
    ten = shelf.hot.taken.bytes
    for version in range(2, 30):  # the same memory again and again
        await shelf.knows(0, "tea 0", version=version)
    await shelf.contents()
    assert abs(shelf.hot.taken.bytes - ten) < 100


async def test_a_search_keeps_the_index_it_has_while_its_user_is_thrown_out() -> None:
    shelf = Shelf(users_max=1)
    await shelf.knows(1, "tea")
    index = await shelf.hot.index("ada", wait_s=5)
    await shelf.contents("bob")
    assert shelf.hot.at_hand("ada") is None
    assert index is not None
    assert index.scores("tea", index.vectors[0]).cosine[0] == pytest.approx(1.0)
    assert [memory.content for memory in index.memories] == ["tea"]


async def test_two_users_with_as_many_memories_as_are_allowed_load_at_once_and_one_is_kept() -> None:
    shelf = Shelf(bytes_max=3_000_000)
    for user in ("ada", "bob"):
        for number in range(1000):
            await shelf.knows(number, f"tea number {number} of {user}", Scope(user))
    found = await asyncio.gather(shelf.contents("ada"), shelf.contents("bob"))
    assert [len(contents) for contents in found] == [1000, 1000]
    assert (shelf.hot.taken.users, shelf.hot.taken.bytes <= 3_000_000) == (1, True)


async def test_vectors_are_kept_once_and_nobody_can_write_into_them() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    index = await shelf.hot.index("ada", wait_s=5)
    assert index is not None
    embedding = index.memories[0].embedding
    assert embedding is not None
    assert np.shares_memory(embedding, index.vectors)
    with pytest.raises(ValueError, match="read-only"):
        embedding[0] = 1.0


async def test_warming_begins_to_read_before_anybody_waits() -> None:
    shelf = Shelf()
    shelf.hot.warm("ada")
    assert await shelf.tasks.wait(5)
    assert (shelf.store.readings, shelf.hot.taken.users) == (1, 1)
    shelf.hot.warm("ada")
    assert len(shelf.tasks) == 0


@pytest.mark.parametrize("options", [{"staleness_s": 0.0}, {"memories_max": 1}, {"bytes_max": 2, "rows_max": 2}])
async def test_what_was_read_ahead_serves_the_search_it_was_read_for_and_no_other(options: dict[str, Any]) -> None:
    shelf = Shelf(**options)
    for number in range(2):
        await shelf.knows(number, f"tea {number}")
    shelf.hot.warm("ada")
    assert await shelf.tasks.wait(5)
    assert await shelf.contents() == ["tea 0", "tea 1"]
    assert (shelf.store.readings, shelf.hot.taken.users) == (1, 0)
    await shelf.contents()
    assert shelf.store.readings == 2


async def test_a_search_that_waits_for_its_reading_leaves_nothing_behind() -> None:
    shelf = Shelf(staleness_s=0.0)
    shelf.hot.warm("ada")
    await shelf.contents()
    await shelf.contents()
    assert shelf.store.readings == 2


async def test_what_was_read_ahead_is_too_old_after_a_while() -> None:
    shelf = Shelf(staleness_s=0.0)
    shelf.hot.warm("ada")
    assert await shelf.tasks.wait(5)
    shelf.clock.now += AHEAD_S
    await shelf.contents()
    assert shelf.store.readings == 2


@pytest.mark.parametrize("change", ["put", "forget", "erase"])
async def test_nothing_that_was_read_ahead_outlives_a_change(change: str) -> None:
    shelf = Shelf(staleness_s=0.0)
    await shelf.knows(1, "tea")
    shelf.hot.warm("ada")
    assert await shelf.tasks.wait(5)
    if change == "put":
        await shelf.knows(2, "milk")
    elif change == "forget":
        await shelf.hot.forget(ADA, "mem_1")
    else:
        await shelf.store.forget_scope(ADA)  # elsewhere, as erasure does
        shelf.hot.forget_user("ada")
    assert await shelf.contents() == (["milk", "tea"] if change == "put" else [])
    assert shelf.store.readings == 2


async def test_a_deletion_that_comes_late_is_not_hidden_by_what_was_read_ahead() -> None:
    shelf = Shelf(staleness_s=0.0)
    await shelf.knows(1, "tea")
    shelf.store.fails_after_writing = True
    with pytest.raises(StoreTimeout):
        await shelf.hot.forget(ADA, "mem_1")
    shelf.clock.now += LATE_S - AHEAD_S / 2
    shelf.hot.warm("ada")
    assert await shelf.tasks.wait(5)
    await InProcessStore.forget(shelf.store, ADA, "mem_1")
    shelf.clock.now += AHEAD_S * 0.75
    assert await shelf.contents() == []


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.sampled_from(["put", "old", "hide", "forget", "all", "ask"]), st.integers(0, 3)), max_size=20)
)
def test_after_any_writes_the_index_holds_what_the_store_does(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        shelf, versions = Shelf(staleness_s=math.inf), dict.fromkeys(range(4), 0)
        for word, number in steps:
            if word == "ask":
                await shelf.contents()
            elif word == "forget":
                await shelf.hot.forget(ADA, f"mem_{number}")
            elif word == "all":
                await shelf.hot.forget_scope(ADA)
            else:
                versions[number] += word != "old"
                status = MemoryStatus.SUPERSEDED if word == "hide" else MemoryStatus.ACTIVE
                content = f"tea {number} {versions[number]}"
                await shelf.knows(number, content, version=max(versions[number], 1), status=status)
        stored = await shelf.store.list(ADA)
        alive = sorted(memory.content for memory in stored if memory.status is MemoryStatus.ACTIVE)
        assert await shelf.contents() == alive

    asyncio.run(play())


class SlowIndex(MemoryIndex):
    """Takes longer than a reading may, and knows how many are built at once."""

    building = most = 0

    def __init__(self, memories: Sequence[Memory], hidden: Sequence[Memory] = ()) -> None:
        SlowIndex.building += 1
        SlowIndex.most = max(SlowIndex.most, SlowIndex.building)
        time.sleep(0.06)
        super().__init__(memories, hidden)
        SlowIndex.building -= 1


async def test_an_index_that_takes_long_is_built_to_its_end_and_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MemoryIndex", SlowIndex)
    monkeypatch.setattr(SlowIndex, "most", 0)
    thread = OffloadThreads()
    shelf = Shelf(load_timeout_s=0.05, offload=thread)
    names = [Scope(f"user {number}") for number in range(4)]
    for number, scope in enumerate(names):
        await shelf.knows(number, "tea", scope)
    found = await asyncio.gather(*(shelf.contents(scope.user) for scope in names))
    assert found == [["tea"]] * 4
    assert (SlowIndex.most, shelf.store.readings) == (1, 4)
    await thread.close()


async def test_a_deletion_that_failed_here_and_is_done_late_is_seen() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    shelf.store.fails_after_writing = True
    with pytest.raises(StoreTimeout):
        await shelf.hot.forget(ADA, "mem_1")
    shelf.store.fails_after_writing = False
    assert await shelf.contents() == ["tea"]
    await shelf.store.forget(ADA, "mem_1")  # the store gets to it
    shelf.clock.now += LATE_S
    assert await shelf.contents() == []
    readings = shelf.store.readings
    assert await shelf.contents() == []
    assert shelf.store.readings == readings  # once is enough


async def test_writes_since_a_failed_one_do_not_hide_that_it_came_late() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    shelf.store.fails_after_writing = True
    with pytest.raises(StoreTimeout):
        await shelf.hot.forget(ADA, "mem_1")
    shelf.store.fails_after_writing = False
    assert await shelf.contents() == ["tea"]
    await shelf.store.forget(ADA, "mem_1")
    shelf.clock.now += LATE_S
    await shelf.knows(2, "coffee")
    assert await shelf.contents() == ["coffee"]


# --- what other processes write --------------------------------------------------------------------------------------


async def wrote_elsewhere(shelf: Shelf, number: int, content: str) -> None:
    """Another process has written; nobody is told yet."""
    embedding = await HashEmbedder().embed(content)
    memory = Memory(f"mem_{number}", 1, MemoryType.SEMANTIC, content, "ada", embedding=embedding)
    await shelf.store.put(ADA, memory)


async def test_what_another_process_wrote_is_read_behind_the_requests_as_soon_as_it_is_told() -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    await shelf.contents()
    await wrote_elsewhere(shelf, 2, "milk")
    assert await shelf.contents() == ["tea"]  # nobody has told
    shelf.hot.changed_elsewhere("ada")
    assert await shelf.contents() == ["tea"]  # sooner than nothing
    await shelf.tasks.wait(5)
    assert await shelf.contents() == ["milk", "tea"]
    assert shelf.store.readings == 2


async def test_a_reading_under_way_when_another_process_writes_is_read_again() -> None:
    shelf = Shelf()
    shelf.store.open_doors.clear()
    asking = shelf.tasks.spawn("ask", shelf.contents())
    while not shelf.store.readings:
        await asyncio.sleep(0)
    await wrote_elsewhere(shelf, 1, "milk")
    shelf.hot.changed_elsewhere("ada")
    shelf.store.open_doors.set()
    assert await asking == ["milk"]
    assert shelf.store.readings == 2


async def test_a_reading_under_way_when_anything_may_have_changed_is_read_again() -> None:
    shelf = Shelf()
    shelf.store.open_doors.clear()
    asking = shelf.tasks.spawn("ask", shelf.contents())
    while not shelf.store.readings:
        await asyncio.sleep(0)
    await wrote_elsewhere(shelf, 1, "milk")
    shelf.hot.all_changed_elsewhere()
    shelf.store.open_doors.set()
    assert await asking == ["milk"]


@pytest.mark.parametrize("told", ["one", "all"])
async def test_an_own_write_does_not_end_the_doubt_that_another_processs_began(told: str) -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    await shelf.contents()
    await wrote_elsewhere(shelf, 2, "milk")
    shelf.hot.changed_elsewhere("ada") if told == "one" else shelf.hot.all_changed_elsewhere()
    await shelf.knows(3, "coffee")
    assert await shelf.contents() == ["coffee", "milk", "tea"]


@pytest.mark.parametrize(("told", "doubt_s"), [("one", DOUBT_S), ("all", ALL_DOUBT_S)])
async def test_what_is_doubted_and_cannot_be_read_is_not_shown_for_long(told: str, doubt_s: float) -> None:
    shelf = Shelf()
    await shelf.knows(1, "tea")
    await shelf.contents()
    shelf.store.error = StoreUnavailable("gone")
    shelf.hot.changed_elsewhere("ada") if told == "one" else shelf.hot.all_changed_elsewhere()
    shelf.clock.now += doubt_s * 0.9
    assert await shelf.contents() == ["tea"]
    await shelf.tasks.wait(5)
    shelf.clock.now += doubt_s * 0.2
    with pytest.raises(StoreUnavailable):
        await shelf.contents()
    shelf.store.error = None
    await wrote_elsewhere(shelf, 2, "milk")
    assert await shelf.contents() == ["milk", "tea"]


async def test_when_anything_may_have_changed_each_is_read_anew_as_it_is_asked_for() -> None:
    shelf = Shelf()
    for scope in (ADA, BOB):
        await shelf.knows(1, "tea", scope)
        await shelf.contents(scope.user)
    await wrote_elsewhere(shelf, 2, "milk")
    shelf.clock.now += 1.0
    shelf.hot.all_changed_elsewhere()
    shelf.clock.now += 1.0
    assert await shelf.contents() == ["tea"]
    await shelf.tasks.wait(5)
    assert await shelf.contents() == ["milk", "tea"]
    assert shelf.store.readings == 3  # Bob did not ask


async def test_who_was_not_in_use_is_not_read_for_the_news_of_another_process() -> None:
    shelf = Shelf(staleness_s=10.0)
    await shelf.knows(1, "tea")
    await shelf.contents()
    shelf.clock.now += 10.0
    assert shelf.hot.holds("ada")
    shelf.hot.changed_elsewhere("ada")
    shelf.hot.changed_elsewhere("bob")
    await shelf.tasks.wait(5)
    assert (shelf.store.readings, shelf.hot.holds("ada"), shelf.hot.holds("bob")) == (1, False, False)


@pytest.mark.parametrize("told", ["one", "all"])
async def test_news_end_what_was_read_ahead(told: str) -> None:
    shelf = Shelf(staleness_s=0.0)
    shelf.hot.warm("ada")
    await shelf.tasks.wait(5)
    assert shelf.hot.holds("ada")
    shelf.hot.changed_elsewhere("ada") if told == "one" else shelf.hot.all_changed_elsewhere()
    assert not shelf.hot.holds("ada")
