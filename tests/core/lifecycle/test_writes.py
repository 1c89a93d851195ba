"""A deleted memory never returns, whoever was writing it at that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Action, Candidate
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.lifecycle.writes import Writes
from semmem.memory import Fact, Forgetting, Memory, MemoryType, Scope, Turn
from tests.core.upkeep.life_world import EMBEDDER, NOW, LifeWorld
from tests.support.journal_samples import EAGER, answered, erase, turn

ADA = Scope("ada")
OLD = "User's budget for the big summer family vacation in Hawaii next year is 10000 dollars"
NEW = OLD.replace("10000", "15000")


class Interrupted(InProcessStore):
    """Lets somebody else work in the middle of a put: ``before`` or ``after`` its effect."""

    def __init__(self, world: LifeWorld, *, after: bool) -> None:
        super().__init__()
        self._world = world
        self._after = after
        self.meanwhile: Any = None

    async def put(self, scope: Scope, *memories: Memory) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None and not self._after:
            await meanwhile()
        await super().put(scope, *memories)
        if meanwhile is not None and self._after:
            await meanwhile()


@pytest.fixture(params=[False, True], ids=["before", "after"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LifeWorld]:
    made = LifeWorld(tmp_path)
    made.store = Interrupted(made, after=request.param)
    await made.open()
    yield made
    await made.close()


async def forget(world: LifeWorld, memory_id: str) -> None:
    """As the API does it."""
    await world.journal.forget_memories(ADA, [memory_id])
    await world.store.forget(ADA, memory_id)


async def forget_everything(world: LifeWorld) -> None:
    await erase(world.journal, ADA, at=NOW)
    await world.store.forget_scope(ADA)


async def claimed(world: LifeWorld) -> str:
    await world.journal.record([turn("t")], [answered("t")])
    batch = await world.journal.claim(EAGER, now=NOW)
    assert batch is not None
    return batch.id


async def candidate(content: str, batch: str) -> Candidate:
    said = Turn("t", Scope("ada", session="s1"), 0, content, opened_at=NOW)
    fact = Fact(MemoryType.SEMANTIC, content, "t")
    return Candidate("mem_new", fact, said, await EMBEDDER.embed(content), NOW, batch=batch)


async def test_an_update_of_a_memory_that_is_forgotten_meanwhile_brings_nothing_of_it_back(world: LifeWorld) -> None:
    await world.add("m", OLD)
    batch = await claimed(world)
    world.store.meanwhile = lambda: forget(world, "m")
    dedup = Dedup(Comparing(world.store), world.journal)
    assert await dedup.put(await candidate(NEW, batch)) is Action.CREATED
    assert {memory.id: memory.content for memory in (await world.every()).values()} == {"mem_new": NEW}
    assert await world.journal.recorded_ids("ada") == set()


async def test_a_fact_of_a_user_who_is_forgotten_meanwhile_is_not_stored(world: LifeWorld) -> None:
    batch = await claimed(world)
    world.store.meanwhile = lambda: forget_everything(world)
    dedup = Dedup(Comparing(world.store), world.journal)
    assert await dedup.put(await candidate(NEW, batch)) is Action.FORGOTTEN
    assert await dedup.quarantine(await candidate(NEW, batch), "instruction") is Action.FORGOTTEN
    assert await world.every() == {}


async def test_a_release_of_a_memory_that_is_forgotten_meanwhile_brings_nothing_back(world: LifeWorld) -> None:
    held = await world.add("m", OLD)
    hold_id = await world.hold()
    world.store.meanwhile = lambda: forget(world, "m")
    dedup = Dedup(Comparing(world.store), world.journal)
    await world.store.forget(ADA, "m")
    action, _ = await dedup.release(held, batch=hold_id, now=NOW)
    assert action is Action.FORGOTTEN
    assert (await world.every(), await world.journal.recorded_ids("ada")) == ({}, set())


async def test_what_was_forgotten_before_is_not_even_written(world: LifeWorld) -> None:
    memory = await world.add("m", OLD)
    batch = await claimed(world)
    await forget(world, "m")
    writes = Writes(world.store, world.journal, batch)
    world.store.meanwhile = lambda: pytest.fail("written")
    assert not await writes.put(replace(memory, version=2))
    assert not await writes.replace(memory, replace(memory, version=2))
    assert await world.journal.recorded_ids("ada") == set()


async def test_of_several_only_what_is_forgotten_goes(world: LifeWorld) -> None:
    told = [await world.add(f"m{number}", OLD) for number in range(4)]
    batch = await claimed(world)
    await forget(world, "m0")
    world.store.meanwhile = lambda: forget(world, "m2")
    later = [replace(memory, version=2) for memory in told]
    assert await Writes(world.store, world.journal, batch).put(*later) == {"m1", "m3"}
    assert {memory.id: memory.version for memory in (await world.every()).values()} == {"m1": 2, "m3": 2}


async def test_of_several_those_are_written_that_no_erasure_covers(world: LifeWorld) -> None:
    marks = Marks()
    marks.hold(Forgetting(Scope("ada", "p"), at=NOW))
    store = HidingStore(world.store, marks)
    told = [await world.add(f"m{number}", OLD, project="p" if number == 1 else None) for number in range(3)]
    await world.store.forget_scope(ADA)
    assert await Writes(store, world.journal, await claimed(world)).put(*told) == {"m0", "m2"}
    assert set(await world.every()) == {"m0", "m2"}


async def test_a_write_that_nobody_disturbs_stays(world: LifeWorld) -> None:
    memory = await world.add("m", OLD)
    writes = Writes(world.store, world.journal, await claimed(world))
    assert await writes.replace(memory, replace(memory, version=2))
    assert (await world.every())["m"].version == 2
    assert [old.version for old in await world.journal.versions(ADA, "m")] == [1]


async def test_a_batch_that_ended_writes_nothing_more_since_it_hears_of_nothing_forgotten(world: LifeWorld) -> None:
    memory = await world.add("m", OLD)
    batch = await claimed(world)
    await world.journal.finish(batch, "stored", now=NOW)
    await forget(world, "m")
    assert not await Writes(world.store, world.journal, batch).put(memory)
    assert await world.every() == {}


async def test_what_two_workers_of_one_batch_wrote_stays_when_one_of_them_ends_it(world: LifeWorld) -> None:
    batch = await claimed(world)
    world.store.meanwhile = lambda: world.journal.finish(batch, "stored", now=NOW)
    dedup = Dedup(Comparing(world.store), world.journal)
    assert await dedup.put(await candidate(NEW, batch)) is Action.CREATED
    assert set(await world.every()) == {"mem_new"}


async def test_what_has_a_key_and_is_said_again_after_it_was_forgotten_survives_upkeep(world: LifeWorld) -> None:
    memory = await world.add("mem_new", OLD)
    await claimed(world)
    await forget(world, memory.id)
    await world.journal.record([turn("later", opened_at=NOW)], [answered("later", at=NOW)])
    again = await world.journal.claim(EAGER, now=NOW + 20)  # the batch that was under way
    assert again is not None
    await world.journal.finish(again.id, "stored", now=NOW + 20)
    following = await world.journal.claim(EAGER, now=NOW + 20)
    assert following is not None
    dedup = Dedup(Comparing(world.store), world.journal)
    assert await dedup.put_keyed(await candidate(NEW, following.id)) is Action.CREATED
    await world.upkeep().run(NOW + 20)
    assert set(await world.every()) == {"mem_new"}
