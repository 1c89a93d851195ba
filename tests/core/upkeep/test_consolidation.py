"""Doubles become one; what only looks alike does not; nothing is lost on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from semmem.memory import MemoryStatus, MemoryType, Scope
from tests.core.upkeep.life_world import NOW, LifeWorld

MERGED_INTO_NEW = {"superseded_by": "new", "superseded_why": "merged"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[LifeWorld]:
    made = await LifeWorld(tmp_path).open()
    yield made
    await made.close()


async def grouped(world: LifeWorld, **rules: Any) -> list[tuple[str, set[str]]]:
    groups = await world.consolidator(**rules).groups(list((await world.every()).values()), NOW)
    return [(group.kept.id, {memory.id for memory in group.merged}) for group in groups]


async def merge(world: LifeWorld) -> int:
    consolidator = world.consolidator()
    groups = await consolidator.groups(list((await world.every()).values()), NOW)
    hold_id = await world.hold()
    try:
        return await consolidator.merge(groups, hold_id=hold_id, now=NOW)
    finally:
        await world.journal.release(hold_id)


async def test_the_same_words_are_one_group_and_the_newest_stays(world: LifeWorld) -> None:
    await world.add("old", "User likes green tea", age_days=3)
    await world.add("new", "User likes green tea.", age_days=1)
    await world.add("older", "user likes GREEN tea", age_days=9)
    await world.add("other", "User drives a truck")
    assert await grouped(world) == [("new", {"old", "older"})]


async def test_articles_and_the_spelling_of_numbers_make_no_difference(world: LifeWorld) -> None:
    await world.add("digits", "User has the 2 parrots of 1,000 dollars", age_days=3)
    await world.add("words", "The user has two parrots of 1000 dollars", age_days=1)
    assert await grouped(world) == [("words", {"digits"})]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User is allergic to the peanuts of that shop", "User is not allergic to the peanuts of that shop"),
        ("User's budget for the summer trip is 10000 dollars", "User's budget for the summer trip is 15000 dollars"),
        ("User meets the trainer every week on Tuesday", "User meets the trainer every week on Thursday"),
        ("User's sister is called Emma and lives far away", "User's sister is called Nora and lives far away"),
        ("User enjoys hiking trails in mountains", "User enjoys hiking in mountains alone"),
        ("User flew to Oslo with the whole family", "User flew to Rome with the whole family"),
        ("User works as a senior nurse in a hospital", "User works as a nurse in a hospital"),
        ("User paid 10 dollars for the ticket", "User paid 12 dollars for the ticket"),
        ("User walked the dog in the park", "User walked the dog in the park with Anna"),
        ("User enjoys hiking in the mountains", "User enjoys mountains in hiking the"),
    ],
)
async def test_what_differs_in_what_matters_stays_apart(world: LifeWorld, one: str, other: str) -> None:
    await world.add("one", one)
    await world.add("other", other)
    assert await grouped(world, cosine_min=0.5) == []


@pytest.mark.parametrize(
    "difference",
    [
        {"type": MemoryType.EPISODIC},
        {"project": "p"},
        {"status": MemoryStatus.SUPERSEDED},
        {"status": MemoryStatus.QUARANTINED},
        {"expires_at": NOW},
    ],
)
async def test_only_what_is_retrieved_together_is_compared(world: LifeWorld, difference: dict[str, Any]) -> None:
    await world.add("one", "User likes green tea")
    await world.add("other", "User likes green tea", **difference)
    assert await grouped(world) == []


async def test_merging_keeps_the_best_of_all_and_the_others_in_history(world: LifeWorld) -> None:
    await world.add("old", "User likes green tea", age_days=3, importance=0.9, expires_at=NOW + 50)
    await world.add("new", "User likes green tea.", age_days=1, expires_at=NOW + 10, metadata={"a": 1})
    assert await merge(world) == 1
    memories = await world.every()
    kept, gone = memories["new"], memories["old"]
    assert (kept.version, kept.importance, kept.expires_at) == (2, 0.9, NOW + 50)
    assert kept.metadata == {"a": 1, "merged": ["old"]}
    assert (gone.version, gone.status, gone.metadata) == (2, MemoryStatus.SUPERSEDED, MERGED_INTO_NEW)
    for memory_id in ("old", "new"):
        (before,) = await world.journal.versions(Scope("ada"), memory_id)
        assert (before.version, before.status) == (1, MemoryStatus.ACTIVE)
    assert await merge(world) == 0


async def test_one_that_never_ends_makes_the_merged_one_last(world: LifeWorld) -> None:
    await world.add("old", "User likes green tea", age_days=3)
    await world.add("new", "User likes green tea.", age_days=1, expires_at=NOW + 10)
    await merge(world)
    assert (await world.active())["new"].expires_at is None


async def test_what_changed_since_it_was_looked_at_is_left_alone(world: LifeWorld) -> None:
    await world.add("old", "User likes green tea", age_days=3)
    await world.add("new", "User likes green tea.", age_days=1)
    consolidator = world.consolidator()
    groups = await consolidator.groups(list((await world.every()).values()), NOW)
    await world.add("old", "User likes black tea", version=2)
    assert await consolidator.merge(groups, hold_id=await world.hold(), now=NOW) == 0
    assert {memory.content for memory in (await world.active()).values()} == {
        "User likes green tea.",
        "User likes black tea",
    }


async def test_what_is_forgotten_under_the_hold_does_not_come_back(world: LifeWorld) -> None:
    await world.add("old", "User likes green tea", age_days=3)
    await world.add("new", "User likes green tea.", age_days=1)
    consolidator = world.consolidator()
    groups = await consolidator.groups(list((await world.every()).values()), NOW)
    hold_id = await world.hold()
    await world.journal.forget_memories(Scope("ada"), ["new"], shuts_turns=False)  # the store's row is still to go
    assert await consolidator.merge(groups, hold_id=hold_id, now=NOW) == 0
    await world.store.forget(Scope("ada"), "new")
    assert set(await world.every()) == {"old"}
    assert await world.journal.recorded_ids("ada") == set()


async def test_many_doubles_are_merged_in_bounded_steps(world: LifeWorld) -> None:
    for number in range(6):
        await world.add(f"a{number}", f"User has {number} green canoes", age_days=2)
        await world.add(f"b{number}", f"User has {number} green canoes!", age_days=1)
    assert len(await grouped(world, groups_max=4)) == 4
    assert len(await grouped(world)) == 6


@pytest.mark.parametrize("rules", [{"cosine_min": 0.0}, {"memories_max": 1}, {"groups_max": 0}])
def test_nonsense_limits_are_refused(tmp_path: Path, rules: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cosine_min must be"):
        LifeWorld(tmp_path).consolidator(**rules)


async def test_a_bounded_number_of_pairs_is_compared_across_all_buckets(world: LifeWorld) -> None:
    many = [await world.add(f"m{number}", "User likes green tea", project=f"{number % 2}") for number in range(20)]
    groups = await world.consolidator(pairs_max=6).groups(many, NOW)
    assert sum(len(group.merged) for group in groups) == 6
