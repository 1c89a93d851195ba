"""What goes by itself, why, and that all that is kept beside it goes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.memory import REPEATED, Forgetting, Memory, MemoryStatus, MemoryType, Scope, Source, Turn
from semmem.ports.errors import StoreError
from semmem.ports.learning import Noted
from semmem.ports.memory_records import Uses
from tests.core.upkeep.life_world import DAY, EMBEDDER, NOW, LifeWorld
from tests.support.journal_samples import EAGER, answered, turn


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[LifeWorld]:
    made = await LifeWorld(tmp_path).open()
    yield made
    await made.close()


# --- expiry ----------------------------------------------------------------------------------------------------------


async def test_an_expired_memory_goes_with_its_history_and_its_statistics(world: LifeWorld) -> None:
    old = await world.add("m", "User likes tea", expires_at=NOW)
    await world.add("n", "User likes milk", expires_at=NOW + 1)
    await world.journal.keep_version(old)
    await world.journal.record_uses([("ada", "m", Uses(1, 1.0)), ("ada", "n", Uses(1, 1.0))])
    await world.journal.mark_maintained("ada", now=NOW)  # not due: expiry does not wait for the user's turn
    await world.upkeep().run(NOW)
    assert set(await world.every()) == {"n"}
    assert await world.journal.recorded_ids("ada") == {"n"}
    assert world.removed["expired"] == 1


async def test_an_expired_memory_is_not_found_before_it_is_swept(world: LifeWorld) -> None:
    memory = await world.add("m", "User likes tea", expires_at=NOW)
    vector = await EMBEDDER.embed(memory.content)
    assert await world.store.search(Scope("ada"), vector, limit=5, now=NOW) == []
    assert len(await world.store.search(Scope("ada"), vector, limit=5, now=NOW - 1)) == 1


class Lagging(InProcessStore):
    """Says that everything is over: as Milvus, of which a lower version may be."""

    async def expired(self, now: float, *, limit: int) -> list[tuple[str, str]]:
        return [("ada", "m"), ("ada", "gone")]


async def test_a_memory_whose_newer_version_lives_on_stays(world: LifeWorld) -> None:
    world.store = Lagging()
    await world.store.open()
    await world.add("m", "User likes tea", version=2, expires_at=NOW + 1)
    await world.upkeep().run(NOW)
    assert set(await world.every()) == {"m"}


# --- age -------------------------------------------------------------------------------------------------------------


async def test_what_was_not_said_for_longer_than_retention_goes(world: LifeWorld) -> None:
    await world.add("old", "User likes tea", age_days=31, importance=1.0)
    await world.add("new", "User likes milk", age_days=29)
    await world.upkeep(retention_s=30 * DAY).run(NOW)
    assert set(await world.every()) == {"new"}
    assert world.removed["retention"] == 1


async def test_what_matters_little_and_was_never_used_goes_when_it_is_old(world: LifeWorld) -> None:
    await world.add("never used", "User likes tea", age_days=200)
    await world.add("used", "User likes milk", age_days=200)
    await world.add("vital", "User is allergic to nuts", age_days=200, importance=0.9)
    await world.add("young", "User likes rain", age_days=10)
    await world.journal.record_uses([("ada", "used", Uses(1, 1.0))])
    upkeep = world.upkeep(never_used_s=180 * DAY, importance_max=0.5)
    await upkeep.run(NOW)
    assert set(await world.every()) == {"used", "vital", "young"}
    assert world.removed["never_used"] == 1


@pytest.mark.parametrize("rules", [{"retention_s": 30 * DAY}, {"never_used_s": 30 * DAY}], ids=str)
async def test_what_was_said_again_stays_though_nothing_was_stored_for_it(
    world: LifeWorld, rules: dict[str, float]
) -> None:
    for name, days in (("again", 5), ("long ago", 31), ("never", 0)):
        await world.add(name, f"User likes tea {name}", age_days=40, importance=0.1)
        if days:
            await world.journal.note_dropped(Scope("ada"), name, REPEATED, now=NOW - days * DAY)
    await world.upkeep(**rules).run(NOW)
    assert set(await world.every()) == {"again"}


async def test_by_default_nothing_goes_for_its_age(world: LifeWorld) -> None:
    await world.add("m", "User likes tea", age_days=36_000, importance=0.0)
    await world.upkeep().run(NOW)
    assert set(await world.every()) == {"m"}


async def test_a_run_removes_a_bounded_number_and_the_next_goes_on(world: LifeWorld) -> None:
    for number in range(5):
        await world.add(f"m{number}", f"User has {number} cats", age_days=40)
    upkeep = world.upkeep(retention_s=30 * DAY, removed_max=2, interval_s=0.0)
    left = []
    for later in range(1, 5):
        await upkeep.run(NOW + later)
        left.append(len(await world.every()))
    assert left == [3, 1, 0, 0]


# --- users -----------------------------------------------------------------------------------------------------------


async def test_a_user_is_gone_through_once_in_an_interval(world: LifeWorld) -> None:
    upkeep = world.upkeep(retention_s=30 * DAY, interval_s=DAY)
    await world.add("m", "User likes tea")
    await upkeep.run(NOW)
    await world.add("n", "User likes milk", age_days=31)
    await upkeep.run(NOW + DAY - 1)
    assert set(await world.every()) == {"m", "n"}
    await upkeep.run(NOW + DAY + 1)
    assert set(await world.every()) == {"m"}


async def test_a_run_goes_through_a_bounded_number_of_users(world: LifeWorld) -> None:
    for user in ("ada", "bob", "eve"):
        await world.add("m", "User likes tea", user=user, age_days=31)
    upkeep = world.upkeep(retention_s=30 * DAY, users_max=2)
    await upkeep.run(NOW)
    assert world.removed["retention"] == 2
    await upkeep.run(NOW)
    assert world.removed["retention"] == 3


async def test_a_user_whose_batch_is_under_way_waits_for_the_next_run(world: LifeWorld) -> None:
    await world.add("m", "User likes tea", age_days=31)
    await world.journal.record([turn("t")], [answered("t")])
    batch = await world.journal.claim(EAGER, now=NOW)
    assert batch is not None
    upkeep = world.upkeep(retention_s=30 * DAY)
    await upkeep.run(NOW)
    assert set(await world.every()) == {"m"}
    await world.journal.finish(batch.id, "stored", now=NOW)
    await upkeep.run(NOW)
    assert await world.every() == {}
    assert await world.journal.hold("ada", now=NOW, lease_s=1.0) is not None


# --- what was left ---------------------------------------------------------------------------------------------------


async def test_rows_without_their_memory_go(world: LifeWorld) -> None:
    kept = await world.add("m", "User likes tea")
    await world.journal.keep_version(kept)
    await world.journal.record_uses([("ada", "m", Uses(1, 1.0)), ("ada", "forgotten", Uses(1, 1.0))])
    await world.journal.keep_version(await world.add("x", "User likes milk"))
    await world.store.forget(Scope("ada"), "x")
    await world.upkeep().run(NOW)
    assert await world.journal.recorded_ids("ada") == {"m"}


async def test_what_is_left_of_a_memory_that_went_by_itself_shuts_no_turn_that_said_the_same(world: LifeWorld) -> None:
    await world.add("m", "User likes tea")
    said = Turn("t", Scope("ada", session="s"), 1, "I keep bees", NOW)
    await world.journal.record([said], [])
    await world.journal.note_provisional("t", ["gone"])
    await world.journal.record_uses([("ada", "gone", Uses(1, 1.0))])
    await world.upkeep().run(NOW)
    assert await world.journal.uses("ada") == {}
    assert await world.journal.provisional(["t"]) == [Noted("t", "gone")]


async def test_what_a_batch_removed_stays_in_history_as_long_as_its_turn(world: LifeWorld) -> None:
    await world.add("m", "User likes tea")
    removed = await world.add("removed", "User keeps bees")
    await world.journal.record([Turn("t", Scope("ada", session="s"), 1, "I keep bees", NOW)], [])
    await world.journal.note_provisional("t", ["removed"])
    await world.journal.keep_version(removed)
    await world.store.forget(Scope("ada"), "removed")
    await world.journal.note_withdrawn("t", "removed")
    await world.upkeep().run(NOW)
    assert [old.content for old in await world.journal.versions(Scope("ada"), "removed")] == ["User keeps bees"]


class Behind(InProcessStore):
    """As a server's replica: the first look at a user does not show what was just written."""

    looks = 0

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        self.looks += 1
        return (
            []
            if self.looks == 1
            else await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        )


async def test_a_read_that_lags_behind_costs_no_history(world: LifeWorld) -> None:
    world.store = Behind()
    await world.store.open()
    await world.journal.keep_version(await world.add("m", "User likes tea"))
    await world.upkeep().run(NOW)
    assert await world.journal.recorded_ids("ada") == {"m"}
    assert world.store.looks == 2


async def test_a_note_that_came_after_a_user_was_forgotten_leaves_no_trace(world: LifeWorld) -> None:
    await world.journal.record_uses([("ada", "m", Uses(1, 1.0))])
    await world.upkeep().run(NOW)
    assert await world.journal.uses("ada") == {}
    assert await world.journal.users_due(maintained_before=NOW + 1, limit=9) == []


async def test_what_a_dead_worker_wrote_after_it_was_forgotten_goes(world: LifeWorld) -> None:
    forgotten = await world.add("m", "User likes tea")
    held = await world.hold()
    await world.journal.mark_memories([forgotten], at=NOW)
    await world.journal.forget_memories(Scope("ada"), ["m"], shuts_turns=False)
    upkeep = world.upkeep()
    await upkeep.run(NOW)
    assert set(await world.every()) == {"m"}  # its batch is still under way
    await world.journal.release(held)
    await upkeep.run(NOW)
    assert await world.every() == {}
    assert await world.journal.orphans(limit=9) == []


async def test_what_is_said_again_under_its_id_while_its_batch_is_under_way_stays(world: LifeWorld) -> None:
    """The session is erased while a batch of another one is under way; then the same is said in it once more."""
    await world.journal.record([turn("t")], [answered("t")])
    batch = await world.journal.claim(EAGER, now=NOW)
    assert batch is not None
    what = Forgetting(Scope("ada", session="erased"), NOW)
    hold_id, _ = await world.journal.begin_erasure(what, now=NOW)
    await world.journal.forget_memories(Scope("ada"), ["again", "left"], shuts_turns=False)
    await world.journal.finish_erasure(what, hold_id)
    for name, said_at in (("again", NOW + 1), ("left", NOW - 1)):
        await world.add(name, "User likes tea", session="erased", source=Source(time=said_at))
    await world.journal.finish(batch.id, "stored", now=NOW)
    await world.upkeep().run(NOW + 2)
    assert set(await world.every()) == {"again"}
    assert await world.journal.orphans(limit=9) == []


async def test_what_is_put_in_again_after_it_went_for_want_of_room_stays(world: LifeWorld) -> None:
    held = await world.hold()
    await world.journal.forget_memories(Scope("ada"), ["m"], shuts_turns=False)
    await world.journal.release(held)
    await world.add("m", "User likes tea")
    await world.upkeep().run(NOW)
    assert set(await world.every()) == {"m"}


# --- consolidation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("consolidate_from", "active"), [(3, {"b", "c"}), (4, {"a", "b", "c"}), (None, {"a", "b", "c"})]
)
async def test_doubles_are_merged_from_a_number_of_memories_on(
    world: LifeWorld, consolidate_from: int | None, active: set[str]
) -> None:
    await world.add("a", "User likes green tea", age_days=2)
    await world.add("b", "User likes green tea.", age_days=1)
    await world.add("c", "User drives a truck")
    await world.add("d", "User drives a van", status=MemoryStatus.SUPERSEDED)
    rules: dict[str, Any] = {"consolidate_from": consolidate_from}
    await world.upkeep(**rules).run(NOW)
    assert set(await world.active()) == active
    assert world.removed["merged"] == 3 - len(active)


class Unreadable(InProcessStore):
    """Cannot read the memories of some users."""

    async def list(self, scope: Scope, **rest: Any) -> list[Memory]:
        if scope.user.startswith("broken"):
            raise StoreError("unreadable")
        return await super().list(scope, **rest)


@pytest.mark.parametrize(("failures_max", "left"), [(3, set()), (2, {"old"})])
async def test_a_user_whose_memories_cannot_be_read_does_not_keep_the_others_waiting(
    world: LifeWorld, failures_max: int, left: set[str]
) -> None:
    world.store = Unreadable()
    await world.store.open()
    for user in ("broken-1", "broken-2", "ada"):
        await world.add("old", "User likes tea", user=user, age_days=31)
    await world.journal.mark_maintained("ada", now=1.0)  # after the others
    with pytest.raises(StoreError, match="unreadable"):
        await world.upkeep(retention_s=30 * DAY, failures_max=failures_max).run(NOW)
    assert set(await world.every()) == left
    assert set(await world.journal.users_due(maintained_before=NOW, limit=9)) >= {"broken-1", "broken-2"}
