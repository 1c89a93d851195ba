"""While a model thinks about a batch, its user's memories are free for others; then they are the batch's again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from semmem.extraction.model_judge import ModelJudge
from semmem.extraction.result import BatchResult
from semmem.memory import Forgetting, Memory, Message, Scope, TurnEnding
from semmem.ports.errors import ModelRefused, ModelUnavailable
from semmem.ports.learning import Batch, Extracted
from semmem.ports.recording import TurnClosed
from tests.core.extraction.crashes import Interrupted
from tests.core.extraction.fakes import GivenFacts
from tests.core.extraction.provisional_world import (
    BEES,
    BOSTON,
    BUDGET,
    LOCALLY,
    SAID,
    SEATTLE,
    ProvisionalWorld,
    by_word,
    provisional_world,
)
from tests.support.traced_journal import TracedJournal

HAWAII = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"

Meanwhile = Callable[[], Awaitable[object]]


@pytest.fixture
async def alice(journal: TracedJournal) -> ProvisionalWorld:
    return await provisional_world(journal)


class Thinking:
    """A model that finds what the rules find, while something else happens."""

    name = "llm"

    def __init__(self, meanwhile: Meanwhile, *, error: Exception | None = None) -> None:
        self._meanwhile, self._error = meanwhile, error

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        await self._meanwhile()
        if self._error is not None:
            raise self._error
        return Extracted(by_word(LOCALLY)(batch))


class ThinkingJudge:
    """A language model that finds no pair the same, while something else happens."""

    def __init__(self, meanwhile: Meanwhile) -> None:
        self._meanwhile = meanwhile
        self.asked = 0

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        self.asked += 1
        await self._meanwhile()
        return '{"replaces": [], "repeats": []}'

    async def close(self) -> None:
        pass


async def test_what_is_said_meanwhile_is_learnt_at_once(alice: ProvisionalWorld) -> None:
    await alice.tell(SAID[BEES])
    seen: list[dict[str, str]] = []

    async def tell() -> None:
        await alice.tell(SAID[BUDGET])
        seen.append(await alice.known())

    result = await alice.learning(Thinking(tell)).learn(await alice.claim())
    assert seen == [dict.fromkeys((BEES, BUDGET), "provisional")]
    assert (result.status, result.actions) == ("stored", {"confirmed": 1})
    assert await alice.known() == {BEES: "settled", BUDGET: "provisional"}
    await alice.learn()
    assert await alice.known() == dict.fromkeys((BEES, BUDGET), "settled")


async def test_the_last_turn_of_a_batch_is_learnt_from_at_once_as_well(alice: ProvisionalWorld) -> None:
    """Its batch begins with its answer, and may be first."""
    turn = await alice.say(SAID[BEES], ending=None)
    assert await alice.learner.drained(10.0)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    batch = await alice.claim()
    seen: list[dict[str, str]] = []

    async def learn_at_once() -> None:
        async with alice.holds.held("alice") as hold_id:
            await alice.at_once.learn(turn.id, hold_id)
        seen.append(await alice.known())

    await alice.learning(Thinking(learn_at_once)).learn(batch)
    assert seen == [{BEES: "provisional"}]
    assert await alice.known() == {BEES: "settled"}


async def test_what_is_said_meanwhile_is_newer_than_what_the_batch_says(alice: ProvisionalWorld) -> None:
    await alice.say(SAID[BOSTON], ending=None)
    assert await alice.learner.drained(10.0)
    batch = await alice.claim()
    await alice.learning(Thinking(lambda: alice.tell(SAID[SEATTLE]))).learn(batch)
    assert await alice.known() == {SEATTLE: "provisional"}
    assert await alice.gone() == {BOSTON: ("contradicted", SEATTLE)}


@pytest.mark.parametrize("error", [None, ModelUnavailable("down"), ModelRefused("garbage")], ids=str)
async def test_a_batch_waits_for_who_holds_its_user_when_the_model_has_answered(
    error: Exception | None, alice: ProvisionalWorld
) -> None:
    await alice.tell(SAID[BEES])
    batch = await alice.claim()
    held, done = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with alice.holds.held("alice"):
            held.set()
            await done.wait()

    async def held_meanwhile() -> None:
        group.create_task(hold())
        await held.wait()

    async with asyncio.TaskGroup() as group:
        learning = group.create_task(alice.learning(Thinking(held_meanwhile, error=error)).learn(batch))
        await held.wait()
        for _ in range(5):
            await asyncio.sleep(0.03)
            assert await alice.journal.hold("alice", now=alice.now, lease_s=60.0) is None, "one at a time"
        assert await alice.known() == {BEES: "provisional"}
        assert not learning.done()
        done.set()
    status = learning.result().status
    assert status == ("stored" if error is None else "postponed" if is_passing(error) else "extraction_failed")


def is_passing(error: Exception) -> bool:
    return isinstance(error, ModelUnavailable)


async def test_nobody_waits_while_a_model_compares(alice: ProvisionalWorld) -> None:
    """Two values that resemble each other are a doubt."""
    held: list[str] = []

    async def hold() -> None:
        async with alice.holds.held("alice", wait_s=0.0) as hold_id:
            held.append(hold_id)

    judge = ThinkingJudge(hold)
    await alice.tell("I keep bees")
    await alice.learn()
    await alice.say("I keep many bees", ending=None)
    assert await alice.learner.drained(10.0)
    found = {"many": [f"{BEES} in many hives"]}
    result = await alice.learn(found, model_judge=ModelJudge(judge))
    assert (judge.asked, len(held)) == (1, 1)
    assert result.status == "stored"
    assert await alice.journal.allows(held[0], "m") == set(), "the batch has ended"


@pytest.fixture
async def budgets(journal: TracedJournal) -> ProvisionalWorld:
    return await provisional_world(journal, local={"15000": [HAWAII.format(15000)], "10000": [HAWAII.format(10000)]})


async def test_what_another_turn_had_replaced_is_learnt_where_that_is_erased_while_a_model_compares(
    budgets: ProvisionalWorld,
) -> None:
    alice, elsewhere = budgets, Scope("alice", session="s-2")
    await alice.tell(HAWAII.replace("User's", "My").format(10000))
    await alice.tell(HAWAII.replace("User's", "My").format(15000), scope=elsewhere)
    assert await alice.known() == {HAWAII.format(15000): "provisional"}

    async def erase() -> None:
        what = Forgetting(elsewhere, alice.now)
        hold_id, _ = await alice.journal.begin_erasure(what, now=alice.now)
        ids = [memory.id for memory in await alice.store.list(elsewhere)]
        await alice.journal.forget_memories(Scope("alice"), ids, shuts_turns=False)
        await alice.store.forget_scope(elsewhere, said_until=what.at)
        await alice.journal.finish_erasure(what, hold_id)

    judge = ThinkingJudge(erase)
    found = {"10000": [HAWAII.format(10000), HAWAII.format(10000) + " or less"]}
    await alice.learn(found, model_judge=ModelJudge(judge))
    assert judge.asked == 1
    assert HAWAII.format(10000) in await alice.known()


async def test_what_a_turn_was_made_into_while_a_model_compares_and_somebody_erased_then_is_not_learnt(
    alice: ProvisionalWorld,
) -> None:
    await alice.tell("I keep bees", scope=Scope("alice", session="s-2"))
    await alice.learn(session="s-2")
    turn = await alice.say("I keep many bees, and my budget is 10000 dollars", ending=None)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    batch = await alice.claim()

    async def learn_at_once_and_forget() -> None:
        async with alice.holds.held("alice") as hold_id:
            await alice.at_once.learn(turn.id, hold_id)
        [memory] = [memory for memory in await alice.memories() if memory.content == BUDGET]
        await alice.journal.forget_memories(Scope("alice"), [memory.id])
        await alice.store.forget(Scope("alice"), memory.id)

    judge = ThinkingJudge(learn_at_once_and_forget)
    found = by_word({"many": [f"{BEES} in many hives", "User's budget comes to 10000 dollars"]})
    model = GivenFacts("llm", found)
    result = await alice.learning(model, model_judge=ModelJudge(judge)).learn(batch)
    assert (judge.asked, result.actions) == (1, {"forgotten": 2})
    assert await alice.known() == {BEES: "settled"}


async def test_what_a_turn_was_made_into_while_a_model_compares_is_settled_with_its_batch(
    alice: ProvisionalWorld,
) -> None:
    await alice.tell("I keep bees", scope=Scope("alice", session="s-2"))
    await alice.learn(session="s-2")
    turn = await alice.say("I keep many bees, and my budget is 10000 dollars", ending=None)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    batch = await alice.claim()

    async def learn_at_once() -> None:
        async with alice.holds.held("alice") as hold_id:
            await alice.at_once.learn(turn.id, hold_id)

    judge = ThinkingJudge(learn_at_once)
    model = GivenFacts("llm", by_word({"many": [f"{BEES} in many hives"]}))
    await alice.learning(model, model_judge=ModelJudge(judge)).learn(batch)
    assert judge.asked == 1
    assert (await alice.known())[BUDGET] == "settled"
    assert await alice.journal.provisional([turn.id]) == []


async def test_rules_hold_their_user_all_the_time(journal: TracedJournal) -> None:
    async def nothing() -> None:
        pass

    watched = Interrupted(journal, "set_aside", nothing)
    alice = await provisional_world(watched)  # type: ignore[arg-type]
    await alice.tell(SAID[BEES])
    result: BatchResult = await alice.learn()
    assert result.status == "stored"
    assert not watched.interrupted
    await alice.tell(SAID[BUDGET])
    await alice.learn({"budget": [BUDGET]})
    assert watched.interrupted, "a model was asked"
