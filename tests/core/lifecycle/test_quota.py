"""At the limit the least valuable memory goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.lifecycle.quota import UNCOUNTED_MAX, Decay, Quota, value
from semmem.memory import Memory, MemoryStatus, MemoryType, Scope, Types
from semmem.ports.events import Event, MemoriesRemoved
from semmem.ports.memory_records import Uses
from tests.support.examples import examples
from tests.support.traced_journal import TracedJournal

BASE = Memory(id="m", version=1, type=MemoryType.SEMANTIC, content="User likes tea", user="ada", updated_at=100.0)


async def left(journal: TracedJournal, *memories: Memory, memories_max: int, user: str = "ada") -> tuple[int, set[str]]:
    store = InProcessStore()
    await store.open()
    for memory in memories:
        await store.put(Scope(memory.user), memory)
    gone = await Quota(store, journal, memories_max=memories_max).make_room(user)
    return gone, {memory.id for memory in await store.list(Scope("ada"))}


async def test_below_the_limit_nothing_goes(journal: TracedJournal) -> None:
    assert await left(journal, BASE, replace(BASE, id="n"), memories_max=2) == (0, {"m", "n"})


async def test_what_is_not_retrieved_goes_first_then_what_matters_least_then_what_is_oldest(
    journal: TracedJournal,
) -> None:
    memories = [
        replace(BASE, id="retired", status=MemoryStatus.SUPERSEDED, importance=1.0, updated_at=900.0),
        replace(BASE, id="trifle", importance=0.1, updated_at=900.0),
        replace(BASE, id="old", updated_at=100.0),
        replace(BASE, id="new", updated_at=200.0),
        replace(BASE, id="vital", importance=0.9, updated_at=1.0),
    ]
    order = ["retired", "trifle", "old", "new"]
    for number, first in enumerate(order, start=1):
        gone, ids = await left(journal, *memories, memories_max=len(memories) - number)
        assert gone == number
        assert ids == {memory.id for memory in memories} - set(order[:number]), first


async def test_what_was_used_outlasts_what_was_not_and_what_went_is_counted(journal: TracedJournal) -> None:
    store = InProcessStore()
    await store.open()
    for memory_id in ("used", "b", "c"):
        await store.put(Scope("ada"), replace(BASE, id=memory_id, updated_at=50.0 if memory_id == "used" else 100.0))
    announced: list[Event] = []
    await journal.record_uses([("ada", "used", Uses(3, 900.0))])
    quota = Quota(
        store,
        journal,
        memories_max=1,
        decay=Decay(half_life_s=100.0),
        clock=lambda: 1000.0,
        announce=announced.append,
    )
    assert await quota.make_room("ada") == 2
    assert [memory.id for memory in await store.list(Scope("ada"))] == ["used"]
    assert announced == [MemoriesRemoved("quota", 2)]


async def test_another_users_memories_do_not_count(journal: TracedJournal) -> None:
    assert await left(journal, BASE, replace(BASE, id="n", user="bob"), memories_max=1) == (0, {"m"})
    assert await left(journal, BASE, replace(BASE, id="n"), memories_max=1, user="bob") == (0, {"m", "n"})


@given(there=st.integers(0, 45), replicas=st.lists(st.integers(0, 1), max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30), deadline=None)
async def test_who_writes_one_after_another_seldom_counts_and_keeps_the_limit(
    journal: TracedJournal, there: int, replicas: list[int]
) -> None:
    store = InProcessStore()
    await store.open()
    quotas = [Quota(store, journal, memories_max=40) for _ in range(2)]
    for number in range(there):
        await store.put(Scope("ada"), replace(BASE, id=f"old {number}"))
    for number, which in enumerate(replicas):
        await store.put(Scope("ada"), replace(BASE, id=f"new {number}"))
        await quotas[which].grown("ada")
        allowed = 40 if len(set(replicas)) == 1 else 40 + UNCOUNTED_MAX
        assert await store.count(Scope("ada")) <= allowed


async def test_while_there_is_room_the_users_memories_are_not_counted_at_each_write(journal: TracedJournal) -> None:
    class Counted(InProcessStore):
        counted = 0

        async def count(self, scope: Scope, *, types: Types = ()) -> int:
            self.counted += 1
            return await super().count(scope, types=types)

    store = Counted()
    await store.open()
    quota = Quota(store, journal, memories_max=1000)
    for number in range(2 * UNCOUNTED_MAX):
        await store.put(Scope("ada"), replace(BASE, id=f"m{number}"))
        await quota.grown("ada")
    assert store.counted == 2


async def test_no_room_at_all_is_refused(journal: TracedJournal) -> None:
    with pytest.raises(ValueError, match="memories_max"):
        Quota(InProcessStore(), journal, memories_max=0)


# --- what a memory is worth: it fades, slower the more it is used, and never below its floor --------------------------

DAY = 86_400.0
AT_ZERO = Memory(id="m", version=1, type=MemoryType.SEMANTIC, content="User likes tea", user="ada", updated_at=0.0)
HALVING = Decay(half_life_s=30 * DAY, floor=0.0)


def test_half_of_it_is_left_after_a_half_life() -> None:
    assert value(AT_ZERO, Uses(), 0.0, HALVING) == pytest.approx(0.5)
    assert value(AT_ZERO, Uses(), 30 * DAY, HALVING) == pytest.approx(0.25)
    assert value(AT_ZERO, Uses(), 60 * DAY, HALVING) == pytest.approx(0.125)


def test_the_floor_never_fades() -> None:
    assert value(AT_ZERO, Uses(), 1e6 * DAY, Decay(half_life_s=DAY, floor=0.2)) == pytest.approx(0.1)


def test_use_makes_young_again_and_lasting() -> None:
    at = 30 * DAY
    unused = value(AT_ZERO, Uses(), at, HALVING)
    used_once_long_ago = value(AT_ZERO, Uses(1, 0.0), at, HALVING)
    used_often_long_ago = value(AT_ZERO, Uses(100, 0.0), at, HALVING)
    used_today = value(AT_ZERO, Uses(1, at), at, HALVING)
    assert unused < used_once_long_ago < used_often_long_ago < used_today
    assert used_once_long_ago == pytest.approx(0.5 * 2 ** (-1 / 1.6931), rel=1e-3)
    assert used_today == pytest.approx(0.5)


@given(
    importance=st.floats(allow_nan=False, allow_infinity=False),
    updated_at=st.floats(0, 4e9),
    uses=st.builds(Uses, st.integers(0, 10**9), st.floats(0, 4e9)),
    now=st.floats(0, 4e9),
)
def test_whatever_is_stored_the_worth_is_a_share_of_one(
    importance: float, updated_at: float, uses: Uses, now: float
) -> None:
    memory = replace(AT_ZERO, importance=importance, updated_at=updated_at)
    assert 0.0 <= value(memory, uses, now, Decay()) <= 1.0


@pytest.mark.parametrize(("half_life_s", "floor"), [(0.0, 0.1), (1.0, -0.1), (1.0, 1.1)])
def test_nonsense_is_refused(half_life_s: float, floor: float) -> None:
    with pytest.raises(ValueError, match="half_life_s must"):
        Decay(half_life_s=half_life_s, floor=floor)
