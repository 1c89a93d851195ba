"""What becomes of provisional memories when the batch of their turns has learnt: nothing twice, nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from semmem.extraction.result import BatchResult
from semmem.extraction.settling import rewritten_by
from semmem.memory import (
    CONTRADICTED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNSETTLED,
    Fact,
    Forgetting,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Standing,
    TurnEnding,
)
from semmem.ports.errors import ModelRefused, ModelUnavailable, SemmemError
from semmem.ports.learning import Batch, Extracted
from semmem.ports.recording import TurnClosed
from semmem.text.quoting import quoted
from tests.core.extraction.crashes import Crash, Fuse, Interrupted, moments
from tests.core.extraction.fakes import GivenFacts
from tests.core.extraction.provisional_world import (
    BEES,
    BOSTON,
    BUDGET,
    KNEE,
    RULES,
    SEATTLE,
    ProvisionalWorld,
    by_word,
    provisional_world,
)
from tests.support.traced_journal import TracedJournal

OTHER = Scope("alice", session="s-2")
KNEE_SAID = "What shoes do you recommend, as my knee hurts whenever I climb stairs?"


@pytest.fixture
async def alice(journal: TracedJournal) -> ProvisionalWorld:
    return await provisional_world(journal)


def reasons(result: BatchResult) -> Counter[str]:
    return Counter(removal.reason for removal in result.removals)


def unavailable(error: SemmemError) -> GivenFacts:
    def facts(batch: Batch) -> list[Fact]:
        raise error

    return GivenFacts("llm", facts)


# --- learnt locally --------------------------------------------------------------------------------------------------


async def test_what_the_batch_says_as_well_is_confirmed_and_not_stored_again(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    before = {memory.content: memory for memory in await alice.memories()}
    result = await alice.learn()
    assert (result.status, result.actions, result.removals) == ("stored", {"confirmed": 2}, ())
    assert await alice.known() == {BEES: "settled", KNEE: "settled"}
    for memory in await alice.memories():
        told = before[memory.content]
        assert (memory.id, memory.version, memory.updated_at) == (told.id, 2, told.updated_at)
        assert await alice.versions(memory.content) == []


async def test_what_the_batch_finds_beyond_it_is_stored_beside_it(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    await alice.say("My budget is 10000 dollars")
    await alice.learner.drained(0.0)
    assert (await alice.learn()).actions == {"confirmed": 1, "created": 1}
    assert await alice.known() == {BEES: "settled", BUDGET: "settled"}


async def test_what_a_batch_has_no_room_for_stays(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", "My budget is 10000 dollars")
    await alice.say("My knee hurts whenever I climb stairs")
    await alice.learner.drained(0.0)
    result = await alice.learn(facts_max=1)
    assert (result.actions, result.rejected) == ({"confirmed": 2}, {"over_limit": 2})
    assert await alice.known() == {BEES: "settled", BUDGET: "settled"}


async def test_a_correction_holds_whatever_the_order_of_the_batch(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston", "Now I live in Seattle")
    assert await alice.known() == {SEATTLE: "provisional"}
    await alice.learn()
    assert await alice.known() == {SEATTLE: "settled"}
    assert await alice.gone() == {BOSTON: ("contradicted", SEATTLE)}


async def test_what_was_said_later_in_another_session_is_not_undone_by_an_older_batch(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston")
    await alice.tell("Now I live in Seattle", scope=OTHER)
    await alice.learn()
    assert await alice.known() == {SEATTLE: "provisional"}
    await alice.learn(session="s-2")
    assert await alice.known() == {SEATTLE: "settled"}
    assert not any(memory.is_provisional for memory in await alice.memories())


async def test_the_same_words_in_two_sessions_are_one_memory(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    await alice.tell("I keep bees", scope=OTHER)
    first = await alice.learn(session="s-2")
    second = await alice.learn()
    assert (first.actions, second.actions) == ({"confirmed": 1}, {})
    assert len(await alice.memories()) == 1
    assert await alice.known() == {BEES: "settled"}


async def test_a_turn_learnt_at_once_on_one_replica_and_batched_on_another_gives_one_memory(
    alice: ProvisionalWorld,
) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    other = ProvisionalWorld(alice.journal, alice.store)
    other.now = alice.now
    assert (await other.learn()).actions == {"confirmed": 2}
    assert await other.known() == {BEES: "settled", KNEE: "settled"}
    assert len(await other.memories()) == 2


# --- read at once, and not again -------------------------------------------------------------------------------------


@pytest.fixture
def searches(alice: ProvisionalWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of which users the store was searched."""
    found: list[str] = []
    search = alice.store.search

    async def noted(scope: Scope, *args: Any, **named: Any) -> Any:
        found.append(scope.user)
        return await search(scope, *args, **named)

    monkeypatch.setattr(alice.store, "search", noted)
    return found


async def test_turns_that_were_read_at_once_are_confirmed_without_being_read_or_compared_again(
    alice: ProvisionalWorld, searches: list[str]
) -> None:
    await alice.tell("I live in Boston", "I keep bees", "hello", "Now I live in Seattle")
    read, compared = len(alice.local.batches), len(searches)
    result = await alice.learn()
    assert (len(alice.local.batches), len(searches)) == (read, compared)
    assert (result.status, result.engine, result.actions) == ("stored", "rules", {"confirmed": 3})
    assert await alice.known() == {BEES: "settled", SEATTLE: "settled"}
    assert await alice.gone() == {BOSTON: ("contradicted", SEATTLE)}
    assert await alice.journal.overdue("alice", limit=9) == []
    assert not any(memory.is_provisional for memory in await alice.memories())


async def test_what_may_contradict_another_memory_still_may_when_it_is_confirmed(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    [memory] = await alice.memories()
    doubtful = replace(memory, version=2, metadata=memory.metadata | {UNSETTLED: ["mem_else"]})
    await alice.store.put(Scope("alice"), doubtful)
    assert (await alice.learn()).actions == {"confirmed": 1}
    assert [memory.unsettled for memory in await alice.memories()] == [["mem_else"]]


async def test_a_turn_that_nobody_read_at_once_has_its_whole_batch_read(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    await alice.say("I live in Boston")
    await alice.learner.drained(0.0)
    read = len(alice.local.batches)
    assert (await alice.learn()).actions == {"confirmed": 1, "created": 1}
    assert len(alice.local.batches) == read + 1


async def test_what_was_rejected_at_once_is_counted_by_its_reason_with_the_batch(journal: TracedJournal) -> None:
    alice = await provisional_world(
        journal, local={"bees": [BEES], "key": ["User's key is sk-ant-api03-" + "a1B2" * 23]}
    )
    await alice.tell("I keep bees", "my key is sk-ant-api03-" + "a1B2" * 23)
    result = await alice.learn()
    assert (result.actions, result.rejected) == ({"confirmed": 1}, {"secret": 1})


async def test_what_could_be_read_only_in_part_is_read_again(alice: ProvisionalWorld) -> None:
    class Hurried(GivenFacts):
        async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
            return Extracted([], partly=True)

    alice.at_once.extractor = Hurried("rules", by_word({}))
    await alice.tell("I keep bees")
    assert await alice.known() == {}
    assert (await alice.learn()).actions == {"created": 1}
    assert await alice.known() == {BEES: "settled"}


async def test_what_another_session_said_as_well_is_still_known_when_that_one_is_erased(
    alice: ProvisionalWorld,
) -> None:
    await alice.tell("I keep bees")
    await alice.tell("I keep bees", scope=OTHER)
    what = Forgetting(Scope("alice", session="s-1"), alice.now)
    hold_id, _ = await alice.journal.begin_erasure(what, now=alice.now)
    await alice.store.forget_scope(what.scope, said_until=what.at)
    await alice.journal.finish_erasure(what, hold_id)
    assert await alice.known() == {}
    await alice.learn(session="s-2")
    assert await alice.known() == {BEES: "settled"}


@pytest.mark.parametrize("call", ["allows", "may_stay", "note_read"])
async def test_what_was_cut_off_while_it_was_read_at_once_is_compared_by_the_batch(
    call: str, alice: ProvisionalWorld
) -> None:
    """Something of another project is erased meanwhile: what this turn ends may not have ended yet."""
    await alice.tell("I live in Boston", scope=OTHER)
    turn = await alice.say("Now I live in Seattle", ending=None)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])

    async def erase_elsewhere() -> None:
        what = Forgetting(Scope("alice", project="elsewhere"), alice.now)
        hold_id, _ = await alice.journal.begin_erasure(what, now=alice.now)
        await alice.journal.finish_erasure(what, hold_id)

    cut = ProvisionalWorld(Interrupted(alice.journal, call, erase_elsewhere), alice.store)
    async with alice.holds.held("alice") as hold_id:
        await cut.at_once.learn(turn.id, hold_id)
    assert cut.journal.interrupted
    await alice.learn()
    assert await alice.known() == {SEATTLE: "settled"}


async def test_what_is_left_of_a_turn_that_words_were_taken_out_of_is_read_again(alice: ProvisionalWorld) -> None:
    [turn] = await alice.tell("I keep bees and live in Boston")
    await alice.journal.reword("alice", {turn.id: (turn.user_text, "I keep bees")}, [])
    read = len(alice.local.batches)
    await alice.learn()
    assert [batch.turns[0].user_text for batch in alice.local.batches[read:]] == ["I keep bees"]


# --- learnt by a model -----------------------------------------------------------------------------------------------


async def test_what_a_model_says_in_other_words_takes_its_place(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston")
    [told] = await alice.memories()
    result = await alice.learn({"Boston": ["User resides in Boston"]})
    assert (result.status, result.actions, reasons(result)) == ("stored", {"rewritten": 1}, {"rewritten": 1})
    assert await alice.known() == {"User resides in Boston": "settled"}
    [memory] = await alice.memories()
    assert (memory.id, memory.version) == (told.id, 2)
    assert [old.content for old in await alice.journal.versions(Scope("alice"), memory.id)] == [BOSTON]


async def test_what_another_memory_says_already_gives_way_to_it(alice: ProvisionalWorld) -> None:
    resides = "User resides in Boston"
    await alice.say("I live in Boston", scope=OTHER, ending=None)
    await alice.learn({"Boston": [resides]}, session="s-2")
    await alice.tell("I live in Boston")
    assert await alice.known() == {resides: "settled", BOSTON: "provisional"}
    result = await alice.learn({"Boston": [resides]})
    assert (result.status, reasons(result)) == ("unchanged", {"repeated": 1, "rewritten": 1})
    assert await alice.known() == {resides: "settled"}
    assert await alice.gone() == {BOSTON: ("rewritten", resides)}


async def test_a_model_that_says_the_same_confirms(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston")
    result = await alice.learn({"Boston": ["user lives in boston."]})
    assert (result.actions, result.removals) == ({"confirmed": 1}, ())
    assert await alice.known() == {BOSTON: "settled"}


async def test_a_fact_of_the_model_is_not_dropped_for_what_is_then_rewritten(alice: ProvisionalWorld) -> None:
    """Both are known before and after: at no moment is the only memory of it the one that goes."""
    told = "User keeps bees in two hives"
    await alice.tell("I keep bees in two hives")
    await alice.learn({"bees": [told]})
    assert await alice.known() == {told: "settled"}
    await alice.tell("I keep bees in two hives", scope=OTHER)
    await alice.learn({"bees": [told]}, session="s-2")
    assert await alice.known() == {told: "settled"}


async def test_what_a_model_says_nothing_of_stays(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    result = await alice.learn({"no such": []})
    assert (result.actions, result.removals) == ({"confirmed": 2}, ())
    assert await alice.known() == {BEES: "settled", KNEE: "settled"}


async def test_what_a_model_names_as_wrong_goes_and_is_kept_in_history(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    [knee] = [memory for memory in await alice.memories() if memory.content == KNEE]
    result = await alice.learn({"no such": []}, wrong=[KNEE])
    assert await alice.known() == {BEES: "settled"}
    assert await alice.gone() == {KNEE: ("model_dropped", "")}
    assert (result.actions, reasons(result)) == ({"confirmed": 1}, {"model_dropped": 1})
    assert [old.content for old in await alice.journal.versions(Scope("alice"), knee.id)] == [KNEE]


@pytest.mark.parametrize("standing", Standing)
async def test_what_stands_is_not_shown_to_be_dropped_and_stays_whatever_a_model_names(
    journal: TracedJournal, standing: Standing
) -> None:
    knee = Fact(MemoryType.SEMANTIC, KNEE, "t-1", standing=standing)
    alice = await provisional_world(journal, local={"knee": [knee], "bees": [BEES]})
    await alice.tell(KNEE_SAID, "I keep bees")
    model = GivenFacts("llm", by_word({}), [KNEE])
    await alice.learning(model).learn(await alice.claim())
    assert model.notes == [BEES]
    assert await alice.known() == {KNEE: "settled", BEES: "settled"}


async def test_what_has_changed_since_a_model_read_it_stays(alice: ProvisionalWorld) -> None:
    await alice.tell(KNEE_SAID)
    stands = "User must not climb stairs"

    class Slow(GivenFacts):
        async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
            [knee] = await alice.memories()
            await alice.store.put(Scope("alice"), replace(knee, version=5, content=stands))
            return await super().extract(batch, notes)

    await alice.learning(Slow("llm", by_word({}), [KNEE])).learn(await alice.claim())
    assert await alice.known() == {stands: "settled"}


async def test_what_a_model_says_itself_stays_though_it_names_it_as_wrong(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    await alice.learn({"bees": [BEES]}, wrong=[BEES])
    assert await alice.known() == {BEES: "settled"}


async def test_what_was_replaced_comes_back_when_its_replacement_is_dropped(journal: TracedJournal) -> None:
    seattle = '"now I live in Seattle"'
    alice = await provisional_world(journal, local={"Boston": [BOSTON], "Seattle": [seattle]})
    await alice.tell("I live in Boston")
    await alice.learn()
    await alice.tell("Now I live in Seattle")
    [boston] = [memory for memory in await alice.memories() if memory.content == BOSTON]
    [other] = [memory for memory in await alice.memories() if memory.content == seattle]
    why = {SUPERSEDED_BY: other.id, SUPERSEDED_WHY: CONTRADICTED}
    replaced = replace(boston, version=9, status=MemoryStatus.SUPERSEDED, metadata=why)
    await alice.store.put(Scope("alice"), replaced)
    await alice.learn({"no such": []}, wrong=[seattle])
    assert await alice.known() == {BOSTON: "settled"}
    assert await alice.gone() == {seattle: ("model_dropped", "")}


LONG = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"


def says(number: int) -> str:
    return LONG.format(number).replace("User's", "My")


@pytest.fixture
async def spender(journal: TracedJournal) -> ProvisionalWorld:
    """What is said is near what was said before: a new version of the same memory."""
    told = {f"{number} dollars": [LONG.format(number)] for number in (10000, 12000, 15000)}
    unsure = {"Perhaps": [quoted(LONG.format(20000))]}
    return await provisional_world(journal, local=told | unsure)


async def test_a_changed_value_is_a_new_version_at_once_and_after_its_batch(spender: ProvisionalWorld) -> None:
    await spender.tell(says(10000))
    await spender.learn()
    [first] = await spender.memories()
    await spender.tell(says(15000))
    assert await spender.known() == {LONG.format(15000): "provisional"}
    await spender.learn()
    assert await spender.known() == {LONG.format(15000): "settled"}
    [memory] = await spender.memories()
    assert memory.id == first.id
    assert {old.content for old in await spender.journal.versions(Scope("alice"), memory.id)} == {LONG.format(10000)}


@pytest.mark.parametrize("model", [None, {"10000": [LONG.format(10000)], "15000": [LONG.format(15000)]}])
async def test_two_values_of_one_batch_do_not_come_apart_again(spender: ProvisionalWorld, model: Any) -> None:
    await spender.tell(says(10000), says(12000), says(15000))
    result = await spender.learn(model)
    assert result.status == "stored"
    assert await spender.known() == {LONG.format(15000): "settled"}
    assert len(await spender.memories()) == 1


@pytest.mark.parametrize("session", ["s-1", "s-2"])
async def test_an_older_value_of_another_session_does_not_come_back(spender: ProvisionalWorld, session: str) -> None:
    await spender.tell(says(10000))
    await spender.tell(says(15000), scope=OTHER)
    other = {"s-1": "s-2", "s-2": "s-1"}[session]
    await spender.learn(session=session)
    assert list(await spender.known()) == [LONG.format(15000)]
    await spender.learn(session=other)
    assert await spender.known() == {LONG.format(15000): "settled"}
    assert len(await spender.memories()) == 1


async def test_the_value_before_comes_back_when_the_new_one_is_dropped(spender: ProvisionalWorld) -> None:
    await spender.tell(says(10000))
    await spender.learn()
    [first] = await spender.memories()
    turn = await spender.say(f"Perhaps: {says(20000)}", ending=TurnEnding.ANSWER_LOST)
    await spender.learner.drained(10.0)
    [now] = [memory for memory in await spender.memories() if memory.is_provisional]
    if now.id != first.id:  # where the comparison keeps a quoted sentence apart, it is put there by hand
        source = replace(first.source, turn=turn.id)
        await spender.journal.keep_version(first)
        content, vector = now.content, now.embedding
        provisional = {"provisional": True}
        changed = replace(first, version=9, content=content, source=source, metadata=provisional, embedding=vector)
        await spender.store.put(Scope("alice"), changed)
        await spender.journal.note_provisional(turn.id, [first.id])
        await spender.store.forget(Scope("alice"), now.id)
    result = await spender.learn({"no such": []}, wrong=[quoted(LONG.format(20000))])
    assert reasons(result) == {"model_dropped": 1}
    assert await spender.known() == {LONG.format(10000): "settled"}
    [memory] = await spender.memories()
    assert memory.id == first.id
    assert memory.embedding is not None
    assert memory.source == first.source


async def test_the_value_before_does_not_come_back_where_something_newer_has_replaced_both(
    alice: ProvisionalWorld,
) -> None:
    perhaps = quoted("perhaps I live in Austin")
    await alice.tell("I live in Boston")
    await alice.learn()
    [boston] = await alice.memories()
    austin = await alice.say("perhaps I live in Austin")
    source = replace(boston.source, turn=austin.id, time=austin.opened_at)
    changed = replace(boston, version=8, content=perhaps, source=source, metadata={"provisional": True})
    await alice.journal.note_provisional(austin.id, [boston.id])
    await alice.tell("Now I live in Seattle")
    [seattle] = [memory for memory in await alice.memories() if memory.content == SEATTLE]
    why = {SUPERSEDED_BY: seattle.id, SUPERSEDED_WHY: CONTRADICTED}
    replaced = replace(changed, version=9, status=MemoryStatus.SUPERSEDED, metadata=changed.metadata | why)
    for version in (boston, changed):
        await alice.journal.keep_version(version)
    await alice.store.put(Scope("alice"), replaced)
    await alice.learn({"Seattle": [SEATTLE]}, wrong=[perhaps])
    assert await alice.known() == {SEATTLE: "settled"}
    assert await alice.gone() == {perhaps: (CONTRADICTED, SEATTLE)}


async def test_an_older_batch_of_a_model_does_not_undo_what_was_said_later(alice: ProvisionalWorld) -> None:
    await alice.say("I live in Boston", ending=None)
    await alice.tell("Now I live in Seattle", scope=OTHER)
    await alice.learn({"Boston": ["User lives in Boston"]})
    assert await alice.known() == {SEATTLE: "provisional"}
    assert await alice.gone() == {BOSTON: ("contradicted", SEATTLE)}


async def test_of_two_values_in_one_turn_the_models_stays(spender: ProvisionalWorld) -> None:
    await spender.tell(f"{says(10000)}. No, 15000 dollars")
    result = await spender.learn({"15000": [LONG.format(15000)]})
    assert result.status == "stored"
    assert LONG.format(15000) in await spender.known()


async def test_a_memory_that_a_fact_has_changed_is_not_confirmed_as_it_was(spender: ProvisionalWorld) -> None:
    await spender.tell(f"{says(10000)}, which was 15000")
    result = await spender.learn({"10000": [LONG.format(15000), LONG.format(10000)]})
    assert result.actions == {"updated": 2}
    [memory] = await spender.memories()
    assert (memory.version, memory.content) == (3, LONG.format(10000))


async def test_what_the_batch_of_another_session_says_is_confirmed(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees")
    await alice.say("My bees are well, which I keep", scope=OTHER, ending=None)
    await alice.learner.drained(0.0)
    result = await alice.learn({"are well": [BEES]}, session="s-2")
    assert result.actions == {"confirmed": 1}
    assert await alice.known() == {BEES: "settled"}


async def test_what_rules_have_no_room_for_stays_though_no_rule_could_phrase_it(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    assert (await alice.learn(facts_max=1)).actions == {"confirmed": 2}
    assert await alice.known() == {BEES: "settled", KNEE: "settled"}


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_model_that_is_away_drops_nothing(alice: ProvisionalWorld, attempts: int) -> None:
    """The local extractor takes over on the last try, and confirms."""
    await alice.tell("I keep bees", KNEE_SAID)
    batch = await alice.claim()
    model = unavailable(ModelUnavailable("down"))
    learning = alice.learning(model, fallback=alice.local, attempts_max=attempts, backoff_s=1.0)
    result = await learning.learn(batch)
    if attempts == 2:
        assert result.status == "postponed"
        assert set((await alice.known()).values()) == {"provisional"}
        result = await learning.learn(replace(batch, attempt=2))
    assert result.actions == {"confirmed": 2}
    assert await alice.known() == {BEES: "settled", KNEE: "settled"}


@pytest.mark.parametrize("error", [ModelRefused("garbage"), ModelUnavailable("down")], ids=["refuses", "is away"])
async def test_without_a_fallback_a_batch_that_ends_in_nothing_keeps_what_was_learnt_at_once(
    alice: ProvisionalWorld, error: SemmemError
) -> None:
    await alice.tell("I keep bees", KNEE_SAID)
    result = await alice.learning(unavailable(error), attempts_max=1).learn(await alice.claim())
    assert result.status in ("extraction_failed", "gave_up")
    assert await alice.known() == {BEES: "settled", KNEE: "settled"}


async def test_what_could_not_be_settled_is_settled_with_the_users_next_batch(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston")
    refused = await alice.say("Now I live in Seattle", scope=OTHER, ending=TurnEnding.ANSWER_LOST)
    await alice.learner.drained(10.0)
    batch = await alice.claim()
    await alice.journal.finish(batch.id, "gave_up", now=alice.now)
    await alice.journal.record([], [TurnClosed(refused.id, TurnEnding.REFUSED, alice.now)])
    assert await alice.known() == {SEATTLE: "provisional"}
    await alice.say("I keep bees", scope=Scope("alice", session="s-3"), ending=TurnEnding.ANSWER_LOST)
    await alice.learner.drained(0.0)
    await alice.learn(session="s-3")
    assert await alice.known() == {BOSTON: "settled", BEES: "settled"}
    assert await alice.gone() == {SEATTLE: ("refused", "")}


# --- erased meanwhile ------------------------------------------------------------------------------------------------


async def forget(alice: ProvisionalWorld, content: str) -> None:
    """As the API does: the turn is told first."""
    [memory] = [memory for memory in await alice.memories() if memory.content == content]
    await alice.journal.forget_memories(Scope("alice"), [memory.id])
    await alice.store.forget(Scope("alice"), memory.id)


@pytest.mark.parametrize("model", [None, {"bees": ["User is a bee keeper", BEES], "budget": [BUDGET]}])
async def test_what_was_erased_is_not_learnt_again_by_the_batch_of_its_turn(
    alice: ProvisionalWorld, model: Any
) -> None:
    await alice.tell("I keep bees, and my budget is 10000 dollars", "I live in Boston")
    await forget(alice, BEES)
    await alice.learn(model)
    assert await alice.known() == {BUDGET: "settled", BOSTON: "settled"}
    assert len(await alice.memories()) == 2


async def test_the_words_of_such_a_turn_are_not_shown_to_the_model(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", "I live in Boston")
    await forget(alice, BEES)
    model = GivenFacts("llm", by_word({}))
    await alice.learning(model).learn(await alice.claim())
    [shown] = model.batches
    assert [turn.user_text for turn in shown.turns] == ["I live in Boston"]


async def test_what_repeats_an_erased_memory_is_not_learnt_again_either(alice: ProvisionalWorld) -> None:
    """The turn was made into nothing, since the memory said the same."""
    await alice.tell("I keep bees")
    await alice.learn()
    await alice.tell("I keep bees", scope=OTHER)
    await forget(alice, BEES)
    await alice.learn(session="s-2")
    assert await alice.memories() == []


@pytest.mark.parametrize("call", ["save_facts", "provisional", "allows", "mark_applied", "settle_provisional"])
async def test_what_is_erased_while_the_batch_is_at_work_does_not_come_back(call: str, journal: TracedJournal) -> None:
    alice = await provisional_world(journal)
    await alice.tell("I keep bees", "I live in Boston")
    batch = await alice.claim()
    interrupted = Interrupted(journal, call, lambda: forget(alice, BEES))
    other = ProvisionalWorld(interrupted, alice.store)
    other.now = alice.now
    facts = {"bees": ["User is a bee keeper", "User has been keeping bees"], "Boston": [BOSTON]}
    await other.learning(GivenFacts("llm", by_word(facts))).learn(batch)
    assert interrupted.interrupted
    known = await alice.known()
    if call in ("save_facts", "provisional", "allows"):
        assert known == {BOSTON: "settled"}
    assert BEES not in known


async def test_what_is_erased_while_another_fact_of_its_turn_is_written_takes_that_along(
    alice: ProvisionalWorld,
) -> None:
    await alice.tell("I keep bees in my hives", "I live in Boston")
    batch = await alice.claim()
    interrupted = Interrupted(alice.store, "search", lambda: forget(alice, BEES))
    other = ProvisionalWorld(alice.journal, interrupted)
    other.now = alice.now
    facts = {"bees": ["User has hives"], "Boston": [BOSTON]}
    await other.learning(GivenFacts("llm", by_word(facts))).learn(batch)
    assert interrupted.interrupted
    assert await alice.known() == {BOSTON: "settled"}


BIG = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"


@pytest.mark.parametrize(
    "said", [BIG.format(15000), "User keeps bees and lives in Boston"], ids=["an update", "other words"]
)
async def test_what_is_erased_while_its_turn_becomes_what_another_memory_says_leaves_that_as_it_was(
    said: str, journal: TracedJournal
) -> None:
    alice = await provisional_world(journal, local={"bees": [BEES], "Boston": [BOSTON], "10000": [BIG.format(10000)]})
    await alice.tell(BIG.format(10000).replace("User's", "My"), scope=OTHER)
    await alice.learn(session="s-2")
    my_budget = BIG.format(15000).replace("User's", "My")
    await alice.tell(f"I keep bees and live in Boston. {my_budget}")
    batch = await alice.claim()
    interrupted = Interrupted(alice.store, "search", lambda: forget(alice, BEES))
    other = ProvisionalWorld(alice.journal, interrupted)
    other.now = alice.now
    await other.learning(GivenFacts("llm", by_word({"bees": [said]}))).learn(batch)
    assert interrupted.interrupted
    assert await alice.known() == dict.fromkeys((BIG.format(10000), BOSTON), "settled")
    versions = [old for each in await alice.memories() for old in await journal.versions(Scope("alice"), each.id)]
    assert said not in {old.content for old in versions}


async def test_what_is_erased_while_it_is_found_to_be_outdated_is_no_history(journal: TracedJournal) -> None:
    alice = await provisional_world(journal, local={"bees": [BEES], "in Seattle": [SEATTLE]})
    await alice.tell("I keep bees in Boston")
    await alice.tell("Now I live in Seattle", scope=OTHER)
    batch = await alice.claim()
    interrupted = Interrupted(alice.store, "search", lambda: forget(alice, BEES))
    other = ProvisionalWorld(alice.journal, interrupted)
    other.now = alice.now
    await other.learning(GivenFacts("llm", by_word({"bees": [BOSTON]}))).learn(batch)
    assert interrupted.interrupted
    assert [memory.content for memory in await alice.memories()] == [SEATTLE]


async def test_a_model_that_thinks_while_a_memory_is_erased_brings_nothing_of_it(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", "I live in Boston")

    class Slow(GivenFacts):
        async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
            found = await super().extract(batch)
            await forget(alice, BEES)
            return Extracted([*found.facts, Fact(MemoryType.SEMANTIC, BEES, "t-2")])

    await alice.learning(Slow("llm", by_word({"bees": ["User keeps many bees"]}))).learn(await alice.claim())
    assert await alice.known() == {BOSTON: "settled"}


async def test_what_was_erased_is_not_learnt_by_the_batch_after_one_that_was_cut_off_at_its_end(
    alice: ProvisionalWorld,
) -> None:
    """Something else of the turn is erased when everything is settled and the batch is not yet over."""
    [turn] = await alice.tell("I keep bees, and my budget is 10000 dollars")
    await forget(alice, BEES)
    batch = await alice.claim()
    edits = {turn.id: (turn.user_text, "I keep bees")}
    interrupted = Interrupted(alice.journal, "finish", lambda: alice.journal.reword("alice", edits, ["mem_else"]))
    other = ProvisionalWorld(interrupted, alice.store)
    other.now = alice.now
    await other.learning(GivenFacts("llm", by_word({}))).learn(batch)
    assert interrupted.interrupted
    await alice.learn({"bees": [BEES]})
    assert await alice.known() == {BUDGET: "settled"}


# --- crashes ---------------------------------------------------------------------------------------------------------

MODEL = {
    "Boston": ["User resides in Boston"],
    "bees": [BEES],
    "budget": ["User's budget is 10000 dollars for hives"],
}
STORE = ("search", "put", "get", "forget", "forget_scope")
JOURNAL = (
    "provisional",
    "save_facts",
    "mark_applied",
    "keep_version",
    "settle_provisional",
    "finish",
    "set_aside",
    "take_up",
)
UNHARMED = """
    provisional get get get set_aside extract take_up save_facts provisional get get get get search keep_version put
    provisional mark_applied get search put mark_applied get search keep_version put provisional mark_applied finish
    settle_provisional
""".split()


async def crash_and_recover(journal: TracedJournal, blows_at: int, *, after: bool) -> tuple[ProvisionalWorld, Fuse]:
    alice = await provisional_world(journal)
    await alice.tell("I live in Boston", "I keep bees", "My budget is 10000 dollars for hives")
    batch = await alice.claim()
    fuse = Fuse(blows_at, after=after)
    dying = ProvisionalWorld(fuse.guard(journal, *JOURNAL), fuse.guard(alice.store, *STORE))
    try:
        with fuse.watching(journal):
            await dying.learning(fuse.guard(GivenFacts("llm", by_word(MODEL)), "extract")).learn(batch)
    except Crash:
        alice.now += 61.0
        again = await journal.claim(RULES, now=alice.now)
        if again is not None:
            await alice.learning(GivenFacts("llm", by_word(MODEL))).learn(again)
        else:  # it was over: what is left to be forgotten is the next batch's
            async with alice.holds.held("alice") as hold_id:
                await alice.batches.settling.settle_overdue("alice", batch=hold_id, now=alice.now)
    return alice, fuse


ENDS_IN = {
    "User resides in Boston": "settled",
    BEES: "settled",
    "User's budget is 10000 dollars for hives": "settled",
}


async def test_the_crash_story_covers_every_write(journal: TracedJournal) -> None:
    alice, fuse = await crash_and_recover(journal, 0, after=False)
    assert (fuse.calls, fuse.unguarded) == (UNHARMED, 0)
    assert await alice.known() == ENDS_IN


@pytest.mark.parametrize(("blows_at", "after"), moments(UNHARMED))
async def test_a_crash_between_any_two_writes_of_a_batch_ends_in_the_same_memories(
    blows_at: int, after: bool, journal: TracedJournal
) -> None:
    alice, _ = await crash_and_recover(journal, blows_at, after=after)
    assert await alice.known() == ENDS_IN
    memories = await alice.memories()
    versions = [await journal.versions(Scope("alice"), memory.id) for memory in memories]
    assert sorted(old.content for earlier in versions for old in earlier) == sorted([BOSTON, BUDGET])
    assert await journal.provisional(["t-1", "t-2", "t-3"]) == []


# --- the comparison --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said", "is_rewritten"),
    [
        ("User's daughter is called Mia", "User has a daughter named Mia", True),
        ("User works at Globex", "User is employed by Globex as a nurse", True),
        ('"my daughter Mia turned 7"', "User's daughter Mia has turned 7", True),
        ("User's daughter Mia is 7", "User's daughter Mia is 8", False),
        ("User's daughter Mia loves horses", "User's daughter Mia loves cats", False),
        ("User does not eat fish", "User eats fish", False),
        ("User lives in Boston", "User lives in Seattle", False),
        ("User keeps bees", "User has 2 hives", False),
    ],
)
def test_only_what_says_all_of_it_takes_its_place(told: str, said: str, is_rewritten: bool) -> None:
    assert rewritten_by(told, {"mem_1": said}) == ("mem_1" if is_rewritten else None)


def test_several_facts_may_say_it_together() -> None:
    says = {"mem_1": "User has a dog called Rufus", "mem_2": "Rufus the dog is 3 years old", "mem_3": "User keeps bees"}
    assert rewritten_by('"Rufus, my dog, is 3 years old"', says) == "mem_2"
    assert rewritten_by('"Rufus, my dog, is 4 years old"', says) is None
