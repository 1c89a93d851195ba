"""A batch or hold that is cut off between its write and its look: what it wrote over was there before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.lifecycle.writes import Writes
from semmem.management.memories import NewMemory
from semmem.memory import Forgetting, Memory, MemoryType, Scope, Source
from semmem.ports.learning import BatchRules
from tests.core.lifecycle.erased_world import ErasedWorld, Store
from tests.support.empty_journal import empty_journal
from tests.support.memories import memory, put

OLD = memory("ada", "home", content="User lives in Oslo", source=Source(time=100.0), project="private")
NEW = replace(OLD, version=2, content="User lives in Ghent", source=Source(time=200.0))
USER, THERE, ELSEWHERE = Scope("ada"), Scope("ada", project="private"), Scope("ada", project="work")


class Interrupted(InProcessStore):
    """``then`` happens between the write of a new version and its writer's look."""

    then: Callable[[], Awaitable[object]] | None = None

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await super().put(scope, *memories)
        if self.then is not None and memories[0].version > 1:
            await self.then()


class World:
    def __init__(self, journal: SqlJournal, store: Interrupted) -> None:
        self.journal, self.store = journal, store

    async def written(self, then: Callable[[], Awaitable[object]]) -> bool:
        """Whether a hold's new version of the memory stays, when this comes between."""
        await put(self.store, OLD)
        hold = await self.journal.hold("ada", now=250.0, lease_s=60.0)
        assert hold is not None
        self.store.then = then
        return await Writes(self.store, self.journal, hold).replace(OLD, NEW)

    async def contents(self) -> list[str]:
        found = [*await self.store.list(USER), *await self.journal.versions(USER, OLD.id)]
        return [one.content for one in found]

    async def lease_over(self) -> None:
        """Whoever claims next ends a hold that has outlived its holder."""
        assert await self.journal.claim(BatchRules(), now=350.0) is None

    def erasure(self, scope: Scope, at: float) -> Callable[[], Awaitable[object]]:
        """Begun and finished, with nothing of it in the store by then: who writes late has to see it himself."""
        what = Forgetting(scope, at)

        async def erase() -> None:
            hold, _ = await self.journal.begin_erasure(what, now=at)
            await self.journal.finish_erasure(what, hold)

        return erase


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    journal, store = SqlJournal(empty_journal(tmp_path / "journal.db")), Interrupted()
    await journal.open()
    await store.open()
    yield World(journal, store)
    await journal.close()


async def test_what_is_erased_elsewhere_takes_nothing_with_it(world: World) -> None:
    assert await world.written(world.erasure(ELSEWHERE, 260.0))
    assert await world.contents() == [NEW.content, OLD.content]


@pytest.mark.parametrize("scope", [USER, THERE])
async def test_what_is_erased_itself_does_not_come_back(world: World, scope: Scope) -> None:
    assert not await world.written(world.erasure(scope, 260.0))
    assert await world.contents() == []


async def test_what_was_said_after_the_erasure_stays_and_what_was_said_before_is_gone(world: World) -> None:
    assert await world.written(world.erasure(THERE, 150.0))
    assert await world.contents() == [NEW.content]


async def test_a_single_memory_that_is_forgotten_is_marked_for_whoever_was_cut_off_before(world: World) -> None:
    async def forget() -> None:
        await world.erasure(ELSEWHERE, 260.0)()
        await world.journal.mark_memories([OLD], at=270.0)
        await world.journal.forget_memories(USER, [OLD.id])

    assert not await world.written(forget)
    assert await world.contents() == []


async def test_an_erasure_under_way_that_leaves_turns_is_seen_as_well(world: World) -> None:
    async def begin() -> None:
        await world.erasure(ELSEWHERE, 260.0)()
        await world.journal.begin_erasure(Forgetting(USER, 270.0, (MemoryType.SEMANTIC,)), now=270.0)

    assert not await world.written(begin)
    assert await world.store.list(USER) == []


async def test_a_hold_that_is_live_hears_of_what_is_forgotten(world: World) -> None:
    async def forget() -> None:
        await world.journal.forget_memories(USER, [OLD.id], shuts_turns=False)

    assert not await world.written(forget)
    assert await world.contents() == []


async def test_a_hold_whose_lease_ran_out_leaves_what_it_wrote(world: World) -> None:
    assert await world.written(world.lease_over)
    assert await world.contents() == [NEW.content, OLD.content]


async def test_what_is_forgotten_after_a_lease_ran_out_does_not_come_back(world: World) -> None:
    """A process that stood still: its hold was ended for it, and hears of nothing that is forgotten since."""

    async def forget() -> None:
        await world.lease_over()
        await world.journal.mark_memories([OLD], at=400.0)
        await world.journal.forget_memories(USER, [OLD.id])

    assert not await world.written(forget)
    assert await world.contents() == []


async def test_a_create_that_an_erasure_met_is_tried_again_under_another_id(tmp_path: Path) -> None:
    """Whatever took the first one away may have an eye on its id still."""

    class Met(Store):
        def __init__(self) -> None:
            super().__init__()
            self.ids: list[str] = []

        async def put(self, scope: Scope, *memories: Memory) -> None:
            await super().put(scope, *memories)
            self.ids += [memory.id for memory in memories]
            if len(self.ids) == 1:
                what = Forgetting(USER, memories[0].said_at)
                hold, _ = await journal.begin_erasure(what, now=memories[0].said_at)
                await journal.finish_erasure(what, hold)

    journal, store = SqlJournal(empty_journal(tmp_path / "journal.db")), Met()
    await journal.open()
    try:
        await store.open()
        world = ErasedWorld(tmp_path, store=store, journal=journal, extractor=None)
        made = await world.memories.create(USER, NewMemory(content="User lives in Ghent"))
        assert len(set(store.ids)) == 2
        assert made.id == store.ids[1]
    finally:
        await journal.close()
