"""What is erased in one place takes nothing with it that the user said in another."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.background.at_once import AtOnceLearner
from semmem.extraction.at_once import AtOnce
from semmem.lifecycle.erasure import ErasurePending
from semmem.memory import MemoryStatus, Scope
from tests.core.extraction.fakes import GivenFacts
from tests.core.extraction.provisional_world import by_word
from tests.core.lifecycle.erased_world import ALICE, RULES, ErasedWorld, erased_world

HERE, THERE = ALICE, Scope("alice", session="there")
BEES = "User keeps bees"
BUDGET = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"
BOSTON, SEATTLE = "User lives in Boston", "User lives in Seattle"
LOCALLY = {
    "Boston": [BOSTON],
    "Seattle": [SEATTLE],
    "bees": [BEES],
    "10000": [BUDGET.format(10000)],
    "15000": [BUDGET.format(15000)],
}


class World:
    """Turns are learnt from at once, one after another, and by batches only when asked for."""

    def __init__(self, erased: ErasedWorld, extractor: GivenFacts) -> None:
        self.erased = erased
        self.erasure = erased.erasing.erasure
        at_once = AtOnce(erased.journal, extractor, erased.learning.storing)
        self.learner = AtOnceLearner(at_once, erased.learning.settling, erased.erasing.holds)
        erased.writer.committed = self.learner.committed

    async def tell(self, text: str, scope: Scope) -> None:
        self.erased.say(text, scope=scope)
        assert await self.erased.writer.drained(5.0)
        assert await self.learner.drained(10.0)

    async def stop_learning(self) -> None:
        await self.erased.erasing.tasks.cancel()
        self.erased.erasing.tasks.spawn("writer", self.erased.writer.run())

    async def retrieved(self) -> set[str]:
        memories = await self.erased.store.list(Scope("alice"))
        return {memory.content for memory in memories if memory.status is MemoryStatus.ACTIVE}

    async def learnt(self) -> set[str]:
        """What is known when the batches are through."""
        self.erased.erasing.tasks.spawn("learner", self.erased.learner.run())
        await self.erased.quiet()
        return await self.erased.contents()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    extractor = GivenFacts("rules", by_word(LOCALLY))
    async with erased_world(tmp_path, learning=False, extractor=extractor) as erased:
        yield World(erased, extractor)


async def test_a_turn_of_another_session_that_said_the_same_is_learnt_from(world: World) -> None:
    await world.tell("I keep bees", HERE)
    await world.tell("I keep bees", THERE)
    await world.erasure.forget_scope(HERE)
    assert await world.learnt() == {BEES}


async def test_a_turn_of_another_session_whose_words_had_been_replaced_is_learnt_from(world: World) -> None:
    await world.tell(BUDGET.format(10000).replace("User's", "My"), THERE)
    await world.tell(BUDGET.format(15000).replace("User's", "My"), HERE)
    assert await world.erased.contents() == {BUDGET.format(15000)}
    await world.erasure.forget_scope(HERE)
    assert await world.learnt() == {BUDGET.format(10000)}


async def test_what_another_session_said_is_there_when_batches_have_learnt_what_replaced_it(world: World) -> None:
    await world.tell(BUDGET.format(10000).replace("User's", "My"), THERE)
    await world.tell(BUDGET.format(15000).replace("User's", "My"), HERE)
    assert await world.learnt() == {BUDGET.format(15000)}
    await world.erasure.forget_scope(HERE)
    assert await world.erased.contents() == {BUDGET.format(10000)}
    await world.tell(BUDGET.format(15000).replace("User's", "My"), THERE)
    assert await world.erased.contents() == {BUDGET.format(15000)}


async def test_a_memory_of_another_session_that_batches_have_replaced_is_retrieved_again(world: World) -> None:
    await world.tell("I live in Boston", THERE)
    await world.tell("Now I live in Seattle", HERE)
    await world.learnt()
    assert await world.retrieved() == {SEATTLE}
    await world.erasure.forget_scope(HERE)
    assert await world.retrieved() == {BOSTON}


async def test_a_batch_of_another_session_that_is_under_way_is_waited_for(world: World) -> None:
    await world.tell("I live in Boston", THERE)
    await world.tell("Now I live in Seattle", HERE)
    await world.learnt()
    await world.stop_learning()
    world.erased.say("I keep bees", scope=Scope("alice", session="elsewhere"))
    assert await world.erased.writer.drained(5.0)
    batch = await world.erased.journal.claim(RULES, now=time.time())
    assert batch is not None
    with pytest.raises(ErasurePending):
        await world.erasure.forget_scope(HERE)
    assert await world.erased.contents() == {BOSTON}  # hidden, and nothing is taken yet
    await world.erased.learning.learn(batch)
    assert await world.erasure.finish_pending() == 0
    assert await world.retrieved() == {BOSTON, BEES}


async def test_what_was_said_since_is_learnt_though_it_is_what_was_said_before(world: World) -> None:
    """Only what is older goes, and the later turn waits for its batch."""
    await world.tell("I keep bees", HERE)
    [memory] = await world.erased.store.list(Scope("alice"))
    await world.tell("I keep bees", THERE)
    await world.erasure.forget_scope(Scope("alice"), until=memory.said_at)
    assert await world.learnt() == {BEES}


async def test_a_single_memory_that_is_deleted_does_not_come_back_from_another_session(world: World) -> None:
    await world.tell("I keep bees", HERE)
    await world.tell("I keep bees", THERE)
    [memory] = await world.erased.store.list(Scope("alice"))
    await world.erasure.forget_memory(Scope("alice"), memory.id)
    assert await world.learnt() == set()


async def test_what_was_said_to_one_agent_goes_with_it_where_it_had_replaced_what_another_one_was_told(
    world: World,
) -> None:
    one, other = (Scope("alice", agent=name, session="s") for name in ("one", "other"))
    await world.tell(BUDGET.format(10000).replace("User's", "My"), one)
    await world.tell(BUDGET.format(15000).replace("User's", "My"), other)
    await world.erasure.forget_scope(Scope("alice", agent="other"))
    assert await world.learnt() == {BUDGET.format(10000)}
