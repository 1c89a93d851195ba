"""Who learns from turns at once: bounded, patient, fair, and never in the way of whoever changes memories."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.background.at_once import AtOnceLearner
from semmem.background.learner import PatientEmbedder
from semmem.background.writers import JournalWriter
from semmem.extraction.result import TurnLearnt
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.recording import TurnClosed
from tests.core.extraction.provisional_world import ALICE, BEES, BOSTON, SEATTLE, ProvisionalWorld
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder
from tests.support.traced_journal import TracedJournal

BOB = Scope("bob", session="b-1")


@pytest.fixture
async def journal(tmp_path: Path) -> Any:
    opened = TracedJournal(empty_journal(tmp_path / "journal.db"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def world(journal: TracedJournal) -> ProvisionalWorld:
    store = InProcessStore()
    await store.open()
    return ProvisionalWorld(journal, store)


def learner(world: ProvisionalWorld, **limits: Any) -> AtOnceLearner:
    made = AtOnceLearner(
        world.at_once,
        world.batches.settling,
        world.holds,
        clock=lambda: world.now,
        announce=world.announced.append,
        **limits,
    )
    world.learner = made
    return made


async def knows(world: ProvisionalWorld, user: str) -> list[str]:
    return [memory.content for memory in await world.store.list(Scope(user))]


async def test_a_committed_half_is_learnt_from_and_one_that_is_not_committed_is_not(
    world: ProvisionalWorld, journal: SqlJournal
) -> None:
    told: list[tuple[list[str], list[str]]] = []
    writer = JournalWriter(
        journal, committed=lambda opened, closed: told.append(([t.id for t in opened], [c.turn_id for c in closed]))
    )
    writer.offer(Turn("t-1", ALICE, 1, "I keep bees", 1000.0))
    writer.offer(TurnClosed("t-1", TurnEnding.ANSWERED, 1001.0))
    tasks = Tasks()
    tasks.spawn("writer", writer.run())
    assert await writer.drained(5.0)
    await tasks.cancel()
    assert told == [(["t-1"], ["t-1"])]


async def test_the_seconds_are_counted_from_the_end_of_the_answer(world: ProvisionalWorld) -> None:
    turn = await world.say("I keep bees", ending=None)
    closed = TurnClosed(turn.id, TurnEnding.ANSWERED, world.now - 3.0)
    await world.journal.record([], [closed])
    world.learner.committed([], [closed])
    assert await world.learner.drained(5.0)
    assert [event.seconds for event in world.announced if isinstance(event, TurnLearnt)] == [3.0]


async def test_beyond_the_queue_turns_are_counted_and_left_to_their_batch(world: ProvisionalWorld) -> None:
    learner(world, queue_max=1)
    await world.say("I keep bees")
    await world.say("I live in Boston")
    assert len(world.learner) == 1
    assert await world.learner.drained(5.0)
    assert sorted(world.results()) == ["overflow", "stored"]
    assert await world.known() == {BEES: "provisional"}
    await world.learn()
    assert await world.known() == {BEES: "settled", BOSTON: "settled"}


async def test_a_user_whose_memories_are_being_changed_waits_and_the_others_do_not(world: ProvisionalWorld) -> None:
    learner(world, concurrency=1)
    async with world.holds.held("alice"):
        await world.say("I keep bees")
        await world.say("I keep bees", scope=BOB)
        async with asyncio.timeout(60):
            while not await knows(world, "bob"):
                await asyncio.sleep(0.01)
        assert await knows(world, "alice") == []
    assert await world.learner.drained(5.0)
    assert await knows(world, "alice") == [BEES]


async def test_what_waited_for_its_user_is_learnt_from_in_the_order_it_was_said(world: ProvisionalWorld) -> None:
    """A correction comes after what it corrects."""
    async with world.holds.held("alice"):
        await world.say("I live in Boston")
        await asyncio.sleep(1.4)  # it looks less often by now
        await world.say("Now I live in Seattle")
        await asyncio.sleep(0.05)
    assert await world.learner.drained(20.0)
    assert [batch.turns[0].ordinal for batch in world.local.batches] == [1, 2]
    assert await world.known() == {SEATTLE: "provisional"}


async def test_a_batch_and_a_turn_at_once_never_overlap(world: ProvisionalWorld) -> None:
    await world.say("I live in Boston", ending=None)
    batch = await world.claim()
    await world.say("I keep bees")
    assert not await world.learner.drained(0.3)
    assert await world.memories() == []
    assert (await world.batches.learn(batch)).status == "stored"
    learner(world)
    world.learner.committed([], [TurnClosed("t-2", TurnEnding.ANSWERED, world.now)])
    assert await world.learner.drained(5.0)
    assert await world.known() == {BOSTON: "settled", BEES: "provisional"}


async def test_a_turn_that_waits_too_long_is_left_to_its_batch(world: ProvisionalWorld) -> None:
    learner(world, wait_s=0.2)
    async with world.holds.held("alice"):
        await world.say("I keep bees")
        assert await world.learner.drained(5.0)
    assert world.results() == ["left"]


async def test_a_turn_that_its_batch_has_learnt_meanwhile_is_let_be(world: ProvisionalWorld) -> None:
    learner(world, can_learn=lambda: False)
    await world.say("I keep bees")
    await world.learn()
    world.learner.can_learn = lambda: True
    assert await world.learner.drained(5.0)
    assert world.results() == ["late"]
    assert await world.known() == {BEES: "settled"}


async def test_while_nothing_can_be_stored_turns_wait(world: ProvisionalWorld) -> None:
    learner(world, can_learn=lambda: False)
    await world.say("I keep bees")
    await asyncio.sleep(0.2)
    assert world.results() == []
    world.learner.can_learn = lambda: True
    assert await world.learner.drained(5.0)
    assert await world.known() == {BEES: "provisional"}


async def test_at_the_end_of_the_process_what_waits_is_left_to_the_batch(world: ProvisionalWorld) -> None:
    learner(world, can_learn=lambda: False)
    await world.say("I keep bees")
    assert not await world.learner.drained(0.05)
    assert len(world.learner) == 0
    other = ProvisionalWorld(world.journal, world.store)
    other.now = world.now
    await other.learn()
    assert await other.known() == {BEES: "settled"}


async def left_by_a_process_that_ended(world: ProvisionalWorld, text: str, turn_id: str) -> None:
    world.now += 1.0
    turn = Turn(turn_id, ALICE, 1, text, opened_at=world.now)
    await world.journal.record([turn], [TurnClosed(turn_id, TurnEnding.ANSWERED, world.now)])


async def test_what_a_process_left_that_ended_is_learnt_from_by_another_one(world: ProvisionalWorld) -> None:
    await left_by_a_process_that_ended(world, "I keep bees", "gone-1")
    for seconds, known in ((5.0, {}), (10.0, {BEES: "provisional"})):
        world.now += seconds
        await world.learner.take_up()
        assert await world.learner.drained(5.0)
        assert await world.known() == known
    world.now += 10.0
    await world.learner.take_up()
    assert len(world.learner) == 0  # it is not read twice


async def test_what_was_left_long_ago_or_is_with_a_batch_or_erased_is_not_taken_up(world: ProvisionalWorld) -> None:
    await left_by_a_process_that_ended(world, "I keep bees", "gone-1")
    world.now += 400.0
    await world.learner.take_up()
    assert len(world.learner) == 0
    await left_by_a_process_that_ended(world, "I live in Boston", "gone-2")
    await world.claim()
    world.now += 20.0
    await world.learner.take_up()
    assert len(world.learner) == 0


async def test_what_was_left_is_not_taken_up_by_who_cannot_learn_and_once_by_who_is_at_it(
    world: ProvisionalWorld,
) -> None:
    await left_by_a_process_that_ended(world, "I keep bees", "gone-1")
    world.now += 20.0
    world.learner.can_learn = lambda: False
    await world.learner.take_up()
    assert len(world.learner) == 0
    world.learner.can_learn = lambda: True
    async with world.holds.held("alice"):
        for _ in range(3):
            await world.learner.take_up()
            await asyncio.sleep(0.05)
        assert len(world.learner) == 1
    assert await world.learner.drained(5.0)
    assert await world.known() == {BEES: "provisional"}


async def test_many_users_at_once_are_learnt_from_in_bounded_company(world: ProvisionalWorld) -> None:
    at_work, most = 0, 0
    extract = world.local.extract

    async def counted(batch: Any, notes: Any = ()) -> Any:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01)
        at_work -= 1
        return await extract(batch)

    world.local.extract = counted  # type: ignore[method-assign]
    learner(world, concurrency=3)
    for number in range(12):
        await world.say("I keep bees", scope=Scope(f"user-{number}", session="s"))
    assert await world.learner.drained(20.0)
    assert world.results() == ["stored"] * 12
    assert 1 < most <= 3


async def test_no_more_texts_of_learning_are_embedded_at_a_time_than_allowed() -> None:
    under_way, most = 0, 0

    class Slow(HashEmbedder):
        async def embed(self, text: str, *, within_s: float | None = None) -> Any:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.005)
            under_way -= 1
            return await super().embed(text)

    patient = PatientEmbedder(Slow(), texts_max=2)
    vectors = await asyncio.gather(*(patient.embed(f"text {number}") for number in range(9)))
    assert (len(vectors), most) == (9, 2)
    assert patient.signature == HashEmbedder().signature
