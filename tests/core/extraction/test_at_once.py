"""Learning from one turn at once: what is stored, what is not, and that nothing is doubled or brought back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from semmem.extraction.at_once import provisional_id
from semmem.extraction.lasting.classifier import SIGNATURES
from semmem.extraction.reading import Reader
from semmem.memory import Fact, Forgetting, MemoryStatus, MemoryType, Scope, Standing, Turn, TurnEnding, Vector
from semmem.ports.errors import EmbedderError, StoreUnavailable
from semmem.ports.learning import TurnState
from semmem.ports.recording import TurnClosed
from tests.core.extraction.crashes import Crash, Fuse, Interrupted, moments
from tests.core.extraction.fakes import all_own
from tests.core.extraction.provisional_world import (
    ALICE,
    BEES,
    BOSTON,
    BUDGET,
    SAID,
    SEATTLE,
    ProvisionalWorld,
    provisional_world,
)
from tests.support.fakes import HashEmbedder
from tests.support.memories import memory
from tests.support.traced_journal import TracedJournal

HAWAII = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"


@pytest.fixture
async def alice(journal: TracedJournal) -> ProvisionalWorld:
    return await provisional_world(journal)


async def test_what_a_turn_says_is_a_provisional_memory_when_its_answer_has_ended(alice: ProvisionalWorld) -> None:
    [turn] = await alice.tell("I keep bees")
    [memory] = await alice.memories()
    assert (memory.content, memory.is_provisional, memory.version) == (BEES, True, 1)
    assert (memory.source.turn, memory.session, memory.source.time) == (turn.id, "s-1", turn.opened_at)
    assert alice.results() == ["stored"]


async def test_it_carries_what_the_extractor_says_of_it(journal: TracedJournal) -> None:
    nuts = Fact(MemoryType.SEMANTIC, "User is allergic to nuts", "t-1", 0.9, 500.0, standing=Standing.MUST)
    alice = await provisional_world(journal, local={"nuts": [nuts]})
    await alice.tell("I am allergic to nuts")
    [memory] = await alice.memories()
    assert (memory.standing, memory.importance, memory.occurred_at) == (Standing.MUST, 0.9, 500.0)


async def test_a_turn_whose_answer_was_lost_is_learnt_from(alice: ProvisionalWorld) -> None:
    await alice.say("I keep bees", ending=TurnEnding.ANSWER_LOST)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {BEES: "provisional"}


async def test_a_refused_turn_is_not_learnt_from(alice: ProvisionalWorld) -> None:
    await alice.say("I keep bees", ending=TurnEnding.REFUSED)
    assert await alice.learner.drained(10.0)
    assert await alice.memories() == []
    assert alice.results() == []


async def test_a_turn_that_is_refused_after_all_is_taken_back(alice: ProvisionalWorld) -> None:
    await alice.tell("I live in Boston")
    turn = await alice.say("Now I live in Seattle", ending=TurnEnding.ANSWER_LOST)
    await asyncio.sleep(0)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {SEATTLE: "provisional"}
    await alice.close(turn, TurnEnding.REFUSED)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {BOSTON: "provisional"}
    assert await alice.gone() == {SEATTLE: ("refused", "")}
    assert alice.results() == ["stored", "stored", "refused"]


async def test_an_open_turn_waits_for_its_answer(alice: ProvisionalWorld) -> None:
    turn = await alice.say("I keep bees", ending=None)
    assert await alice.learner.drained(10.0)
    assert await alice.memories() == []
    await alice.close(turn, TurnEnding.ANSWERED)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {BEES: "provisional"}


async def test_where_nobody_tells_of_answers_a_turn_is_learnt_from_when_it_is_opened(journal: TracedJournal) -> None:
    alice = await provisional_world(journal, unanswered=True)
    await alice.say("I keep bees", ending=None)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {BEES: "provisional"}


async def test_an_answer_that_comes_before_its_question_waits_for_it(alice: ProvisionalWorld) -> None:
    turn = Turn("t-late", ALICE, 1, "I keep bees", opened_at=alice.now)
    await alice.close(turn, TurnEnding.ANSWERED)
    await asyncio.sleep(0.05)
    assert await alice.memories() == []
    await alice.journal.record([turn], [])
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {BEES: "provisional"}


# --- nothing twice ---------------------------------------------------------------------------------------------------


async def test_a_turn_that_is_closed_again_is_not_learnt_from_again(alice: ProvisionalWorld) -> None:
    turn = await alice.say("I live in Boston", ending=TurnEnding.ANSWER_LOST)
    assert await alice.learner.drained(10.0)
    await alice.tell("Now I live in Seattle")
    await alice.close(turn, TurnEnding.ANSWERED)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {SEATTLE: "provisional"}
    assert len(alice.local.batches) == 2


async def test_two_replicas_that_are_told_of_one_turn_store_one_memory(alice: ProvisionalWorld) -> None:
    other = ProvisionalWorld(alice.journal, alice.store)
    turn = await alice.say("I keep bees")
    other.learner.committed([turn], [])
    await other.close(turn, TurnEnding.ANSWERED)
    assert await alice.learner.drained(10.0)
    assert await other.learner.drained(10.0)
    assert len(await alice.memories()) == 1
    assert (*alice.results(), *other.results()).count("stored") == 1  # both may have read it


async def test_turns_of_one_user_are_learnt_from_one_after_another_in_their_order(alice: ProvisionalWorld) -> None:
    for _ in range(3):
        await alice.say("I live in Boston")
        await alice.say("Now I live in Seattle")
    assert await alice.learner.drained(20.0)
    assert await alice.known() == {SEATTLE: "provisional"}


async def test_what_is_known_already_is_not_stored_again(alice: ProvisionalWorld) -> None:
    await alice.tell("I keep bees", "Did I say that I keep bees?")
    assert len(await alice.memories()) == 1
    assert alice.results() == ["stored", "unchanged"]


# --- what fails ------------------------------------------------------------------------------------------------------


async def test_a_store_that_fails_leaves_the_turn_to_its_batch(alice: ProvisionalWorld) -> None:
    class Down:
        def __getattr__(self, name: str) -> Any:
            return getattr(alice.store, name)

        async def search(self, *_args: object, **_named: object) -> None:
            raise StoreUnavailable("down")

    other = ProvisionalWorld(alice.journal, Down())
    await other.tell("I keep bees")
    assert other.results() == ["failed"]
    assert await alice.memories() == []
    alice.now = other.now
    assert (await alice.learn()).actions == {"created": 1}
    assert await alice.known() == {BEES: "settled"}


async def test_a_secret_is_not_stored_and_a_suspicious_fact_is_left_to_the_batch(journal: TracedJournal) -> None:
    alice = await provisional_world(journal, local={"key": ["User's key is sk-proj-abcdefghijklmnopqrstuvwxyz123456"]})
    await alice.tell("My key is sk-proj-abcdefghijklmnopqrstuvwxyz123456")
    assert await alice.memories() == []
    assert alice.results() == ["rejected"]


async def test_what_no_store_takes_costs_the_turns_other_facts_nothing(journal: TracedJournal) -> None:
    alice = await provisional_world(journal)
    await alice.tell("I keep bees", scope=Scope("alice", session="x" * 2000))
    assert await alice.memories() == []
    assert alice.results() == ["rejected"]


@pytest.mark.parametrize("call", ["allows", "keep_version"])
async def test_a_turn_that_is_refused_while_it_is_learnt_from_costs_nothing_that_was_known_before(
    call: str, journal: TracedJournal
) -> None:
    """What it replaced, and what it said in the place of an older version, come back with the refusal."""
    local = {"Boston": [BOSTON], "Seattle": [SEATTLE], "10000": [HAWAII.format(10000)], "15000": [HAWAII.format(15000)]}
    alice = await provisional_world(journal, local=local)
    said = HAWAII.replace("User's", "My")
    await alice.tell("I live in Boston", said.format(10000))
    await alice.learn()
    for text in ("Now I live in Seattle", said.format(15000)):
        turn = await alice.say(text, ending=None)
        await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWER_LOST, alice.now)])

        async def refuse(turn_id: str = turn.id) -> None:
            await journal.record([], [TurnClosed(turn_id, TurnEnding.REFUSED, alice.now)])

        other = ProvisionalWorld(Interrupted(journal, call, refuse), alice.store, local=local)
        async with alice.holds.held("alice") as hold_id:
            await other.at_once.learn(turn.id, hold_id)
        await alice.close(turn, TurnEnding.REFUSED)
        assert await alice.learner.drained(10.0)
        assert await alice.known() == dict.fromkeys((BOSTON, HAWAII.format(10000)), "settled")
        assert await journal.overdue("alice", limit=9) == []


async def refused(alice: ProvisionalWorld) -> Turn:
    """A turn that was learnt from at once, and refused when nobody was there to hear of it."""
    turn = await alice.say("Now I live in Seattle", ending=TurnEnding.ANSWER_LOST)
    assert await alice.learner.drained(10.0)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.REFUSED, alice.now)])
    assert await alice.known() == {SEATTLE: "provisional"}
    return turn


async def taken_back_later(alice: ProvisionalWorld) -> None:
    """With the user's next batch."""
    await alice.say("I keep bees", scope=Scope("alice", session="s-2"))
    await alice.learner.drained(0.0)
    await alice.learn(session="s-2")
    assert await alice.known() == {BOSTON: "settled", BEES: "settled"}
    assert await alice.journal.overdue("alice", limit=9) == []


@pytest.fixture
async def bostonian(journal: TracedJournal) -> ProvisionalWorld:
    answers = {"in Boston": [BOSTON], "in Seattle": [SEATTLE], "bees": [BEES]}
    alice = await provisional_world(journal, local=answers)
    await alice.tell(SAID[BOSTON])
    await alice.learn()
    return alice


@pytest.mark.parametrize("call", ["provisional", "allows", "keep_version"])
async def test_a_refused_turn_is_taken_back_later_where_the_hold_is_cut_off(
    call: str, bostonian: ProvisionalWorld
) -> None:
    """By an erasure in another project."""
    alice, journal = bostonian, bostonian.journal
    turn = await refused(alice)

    async def erase_elsewhere() -> None:
        what = Forgetting(Scope("alice", project="elsewhere"), alice.now)
        hold_id, _ = await journal.begin_erasure(what, now=alice.now)
        await journal.finish_erasure(what, hold_id)

    cut = ProvisionalWorld(Interrupted(journal, call, erase_elsewhere), alice.store)
    async with alice.holds.held("alice") as hold_id:
        await cut.batches.settling.take_back(turn, batch=hold_id, now=alice.now)
    assert cut.journal.interrupted
    await taken_back_later(alice)


CALLS_OF_A_REFUSAL = 8


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("blows_at", range(1, CALLS_OF_A_REFUSAL + 1))
async def test_a_refused_turn_is_taken_back_later_where_the_process_dies(
    blows_at: int, after: bool, bostonian: ProvisionalWorld
) -> None:
    alice, journal = bostonian, bostonian.journal
    turn = await refused(alice)
    fuse = Fuse(blows_at, after=after)
    writes = "keep_version", "note_withdrawn", "settle_provisional"
    dying = ProvisionalWorld(fuse.guard(journal, *writes), fuse.guard(alice.store, "get", "list", "put", "forget"))
    async with alice.holds.held("alice") as hold_id:
        with pytest.raises(Crash):
            await dying.batches.settling.take_back(turn, batch=hold_id, now=alice.now)
    await taken_back_later(alice)


async def undecided(journal: TracedJournal) -> ProvisionalWorld:
    """Two budgets, which the next one replaces both, and one that was replaced long ago."""
    alice = await provisional_world(journal, local={"15000": [HAWAII.format(15000)]})
    for number, by in ((10000, ""), (12000, ""), (9000, "mem_10000")):
        why = {"superseded_by": by, "superseded_why": "contradicted"} if by else {}
        status = MemoryStatus.SUPERSEDED if by else MemoryStatus.ACTIVE
        said = memory("alice", f"mem_{number}", content=HAWAII.format(number), metadata=why, status=status)
        vector = await HashEmbedder().embed(said.content)
        await alice.store.put(Scope("alice"), replace(said, embedding=vector, created_at=900.0, updated_at=900.0))
    return alice


async def test_all_that_a_refused_turn_replaced_comes_back_and_nothing_else(journal: TracedJournal) -> None:
    alice = await undecided(journal)
    turn = await alice.say(HAWAII.replace("User's", "My").format(15000), ending=TurnEnding.ANSWER_LOST)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == {HAWAII.format(15000): "provisional"}
    await alice.close(turn, TurnEnding.REFUSED)
    assert await alice.learner.drained(10.0)
    assert await alice.known() == dict.fromkeys((HAWAII.format(10000), HAWAII.format(12000)), "settled")


# --- erasure ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["note_provisional", "keep_version", "note_read"])
async def test_a_turn_that_is_erased_while_it_is_learnt_from_leaves_nothing(call: str, journal: TracedJournal) -> None:
    """Even where the hold outlives the erasure: that of a batch which rests, of another session."""
    alice = await provisional_world(journal)
    await alice.tell("I live in Boston")
    turn = Turn("t-2", Scope("alice", session="s-2"), 2, "Now I live in Seattle. I keep bees", opened_at=alice.now)
    await journal.record([turn], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])

    async def erase() -> None:
        what = Forgetting(turn.scope, alice.now)
        hold_id, _ = await journal.begin_erasure(what, now=alice.now)
        await alice.store.forget_scope(turn.scope, said_until=what.at)
        await journal.finish_erasure(what, hold_id)

    other = ProvisionalWorld(Interrupted(journal, call, erase), alice.store)
    await other.at_once.learn(turn.id, "")
    assert {memory.content for memory in await alice.memories()} == {BOSTON}
    assert await journal.provisional([turn.id]) == []


async def test_a_memory_that_was_erased_is_not_brought_back_by_the_same_turn(alice: ProvisionalWorld) -> None:
    turn = await alice.say("I keep bees", ending=TurnEnding.ANSWER_LOST)
    assert await alice.learner.drained(10.0)
    [memory] = await alice.memories()
    await alice.journal.forget_memories(Scope("alice"), [memory.id])
    await alice.store.forget(Scope("alice"), memory.id)
    async with alice.holds.held("alice") as hold_id:
        await alice.at_once.learn(turn.id, hold_id)
    assert await alice.memories() == []


async def test_a_memory_that_was_erased_between_two_tries_is_not_written_by_the_second(
    alice: ProvisionalWorld,
) -> None:
    turn = await alice.say("I keep bees and live in Boston", ending=None)
    await alice.learner.drained(10.0)
    await alice.journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    erased = provisional_id(turn, BEES)
    await alice.journal.note_provisional(turn.id, [erased])
    await alice.journal.forget_memories(Scope("alice"), [erased])
    async with alice.holds.held("alice") as hold_id:
        await alice.at_once.learn(turn.id, hold_id)
    assert await alice.known() == {BOSTON: "provisional"}


@pytest.mark.parametrize("before", ["", HAWAII.format(10000)], ids=["new", "an update"])
async def test_what_a_batch_has_confirmed_meanwhile_stays(before: str, journal: TracedJournal) -> None:
    """An erasure in another project cuts the hold off, and a batch is through before the write is looked at again."""
    local = {number: [HAWAII.format(number)] for number in ("10000", "15000")}
    alice = await provisional_world(journal, local=local)
    if before:
        await alice.tell(before.replace("User's", "My"))
        await alice.learn()
    turn = await alice.say(HAWAII.replace("User's", "My").format(15000), ending=None)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])

    async def erase_elsewhere_and_learn() -> None:
        what = Forgetting(Scope("alice", project="elsewhere"), alice.now)
        hold_id, _ = await journal.begin_erasure(what, now=alice.now)
        await journal.finish_erasure(what, hold_id)
        await alice.learn()

    slow = ProvisionalWorld(Interrupted(journal, "may_stay", erase_elsewhere_and_learn), alice.store, local=local)
    async with alice.holds.held("alice") as hold_id:
        await slow.at_once.learn(turn.id, hold_id)
    assert slow.journal.interrupted
    assert await alice.known() == {HAWAII.format(15000): "settled"}
    [memory] = await alice.memories()
    assert [old.content for old in await journal.versions(Scope("alice"), memory.id) if old.content == before] == (
        [before] if before else []
    )


@pytest.fixture
async def outdated(journal: TracedJournal) -> tuple[ProvisionalWorld, Turn]:
    """A turn that nobody has learnt from yet, and what another session said since instead of it."""
    alice = await provisional_world(journal)
    turn = await alice.say("I live in Boston", ending=None)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    await alice.tell("Now I live in Seattle", scope=Scope("alice", session="s-2"))
    return alice, turn


@pytest.mark.parametrize("call", ["note_provisional", "allows", "may_stay", "note_read"])
async def test_what_is_erased_while_it_is_found_to_be_outdated_takes_nothing_with_it(
    call: str, outdated: tuple[ProvisionalWorld, Turn]
) -> None:
    alice, turn = outdated

    async def erase() -> None:
        what = Forgetting(turn.scope, alice.now)
        hold_id, _ = await alice.journal.begin_erasure(what, now=alice.now)
        await alice.store.forget_scope(turn.scope, said_until=what.at)
        await alice.journal.finish_erasure(what, hold_id)

    slow = ProvisionalWorld(Interrupted(alice.journal, call, erase), alice.store)
    async with alice.holds.held("alice") as hold_id:
        await slow.at_once.learn(turn.id, hold_id)
    assert slow.journal.interrupted
    assert [memory.content for memory in await alice.memories()] == [SEATTLE]


async def test_what_is_taken_out_of_a_turn_while_it_is_found_to_be_outdated_is_no_history(
    outdated: tuple[ProvisionalWorld, Turn],
) -> None:
    alice, turn = outdated
    edits = {turn.id: (turn.user_text, "")}
    slow = ProvisionalWorld(
        Interrupted(alice.journal, "may_stay", lambda: alice.journal.reword("alice", edits, ["mem_else"])), alice.store
    )
    async with alice.holds.held("alice") as hold_id:
        await slow.at_once.learn(turn.id, hold_id)
    assert slow.journal.interrupted
    assert [memory.content for memory in await alice.memories()] == [SEATTLE]


async def test_what_is_taken_out_of_a_turn_while_it_replaces_something_is_said_no_more(
    journal: TracedJournal,
) -> None:
    alice = await undecided(journal)
    turn = await alice.say(HAWAII.replace("User's", "My").format(15000), ending=None)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    edits = {turn.id: (turn.user_text, "")}
    slow = ProvisionalWorld(
        Interrupted(journal, "may_stay", lambda: journal.reword("alice", edits, ["mem_else"])),
        alice.store,
        local={"15000": [HAWAII.format(15000)]},
    )
    async with alice.holds.held("alice") as hold_id:
        await slow.at_once.learn(turn.id, hold_id)
    assert slow.journal.interrupted
    assert await alice.known() == dict.fromkeys((HAWAII.format(10000), HAWAII.format(12000)), "settled")
    memories = await alice.memories()
    versions = [old for memory in memories for old in await journal.versions(Scope("alice"), memory.id)]
    assert all("15000" not in each.content for each in [*memories, *versions])


# --- crashes ---------------------------------------------------------------------------------------------------------

GUARDED = (
    ("search", "put", "get", "forget", "forget_scope"),
    ("turn_state", "provisional", "note_provisional", "note_read", "keep_version"),
)


class Silent(HashEmbedder):
    """Of a model that voices were learnt with, and does not answer."""

    signature = SIGNATURES[0]

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        raise EmbedderError("none")


@pytest.mark.parametrize(("embedder", "whole"), [(HashEmbedder(), True), (Silent(), False)], ids=["words", "no answer"])
async def test_a_turn_whose_voices_the_embedder_did_not_tell_is_left_to_its_batch(
    embedder: HashEmbedder, whole: bool, alice: ProvisionalWorld
) -> None:
    alice.at_once.reader = Reader(embedder, hear=all_own)
    [turn] = await alice.tell("hello")
    assert await alice.journal.read_wholly([turn.id]) == (frozenset({turn.id}) if whole else frozenset())


UNHARMED = """
    turn_state provisional note_provisional search put keep_version put turn_state note_provisional search put
    turn_state note_provisional search put turn_state note_read
""".split()


async def crashed(journal: TracedJournal, blows_at: int, *, after: bool) -> tuple[ProvisionalWorld, Fuse]:
    """Three turns, the second of which dies at once at the process's ``blows_at``-th port call."""
    alice = await provisional_world(journal)
    await alice.tell(SAID[BOSTON])
    fuse = Fuse(blows_at, after=after)
    dying = ProvisionalWorld(fuse.guard(journal, *GUARDED[1]), fuse.guard(alice.store, *GUARDED[0]))
    turn = await alice.say(f"{SAID[SEATTLE]}. {SAID[BEES]}. {SAID[BUDGET]}", ending=None)
    assert await alice.learner.drained(10.0)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    async with alice.holds.held("alice") as hold_id:
        with fuse.watching(journal), suppress(Crash):
            await dying.at_once.learn(turn.id, hold_id)
    return alice, fuse


async def test_the_crash_story_covers_every_write(journal: TracedJournal) -> None:
    alice, fuse = await crashed(journal, 0, after=False)
    assert (fuse.calls, fuse.unguarded) == (UNHARMED, 0)
    assert await alice.known() == dict.fromkeys((SEATTLE, BEES, BUDGET), "provisional")


@pytest.mark.parametrize("again", [False, True], ids=["the batch", "again at once"])
@pytest.mark.parametrize(("blows_at", "after"), moments(UNHARMED))
async def test_after_a_crash_between_any_two_writes_the_batch_ends_in_the_same_memories(
    blows_at: int, after: bool, again: bool, journal: TracedJournal
) -> None:
    alice, _ = await crashed(journal, blows_at, after=after)
    if again:
        async with alice.holds.held("alice") as hold_id:
            await alice.at_once.learn("t-2", hold_id)
    await alice.learn()
    assert await alice.known() == dict.fromkeys((SEATTLE, BEES, BUDGET), "settled")
    assert await alice.gone() == {BOSTON: ("contradicted", SEATTLE)}
    state, _ = await journal.turn_state("t-2")
    assert state is TurnState.DONE
    assert await journal.provisional(["t-1", "t-2"]) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("blows_at", range(1, 13))
async def test_after_a_crash_in_an_update_of_several_nothing_is_lost_that_nobody_contradicts(
    blows_at: int, after: bool, journal: TracedJournal
) -> None:
    """Its batch is learnt from by a model that finds nothing."""
    alice = await undecided(journal)
    fuse = Fuse(blows_at, after=after)
    dying = ProvisionalWorld(
        fuse.guard(journal, *GUARDED[1]),
        fuse.guard(alice.store, *GUARDED[0]),
        local={"15000": [HAWAII.format(15000)]},
    )
    turn = await alice.say(HAWAII.replace("User's", "My").format(15000), ending=None)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    async with alice.holds.held("alice") as hold_id:
        with suppress(Crash):
            await dying.at_once.learn(turn.id, hold_id)
    await alice.learn({})
    assert await alice.known() in (
        {HAWAII.format(15000): "settled"},
        dict.fromkeys((HAWAII.format(10000), HAWAII.format(12000)), "settled"),
    )


CALLS_OF_AN_UPDATE = 9


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("blows_at", range(1, CALLS_OF_AN_UPDATE + 1))
async def test_what_was_erased_after_a_crash_does_not_come_back_though_it_was_an_older_memory_before(
    blows_at: int, after: bool, journal: TracedJournal
) -> None:
    """A turn's words become a new version of a memory. Who erases what he then sees is heard by the turn's batch."""
    local = {"10000": [HAWAII.format(10000)], "15000": [HAWAII.format(15000)]}
    alice = await provisional_world(journal, local=local)
    await alice.tell(HAWAII.replace("User's", "My").format(10000))
    await alice.learn()
    fuse = Fuse(blows_at, after=after)
    dying = ProvisionalWorld(fuse.guard(journal, *GUARDED[1]), fuse.guard(alice.store, *GUARDED[0]), local=local)
    turn = await alice.say(HAWAII.replace("User's", "My").format(15000), ending=None)
    await journal.record([], [TurnClosed(turn.id, TurnEnding.ANSWERED, alice.now)])
    async with alice.holds.held("alice") as hold_id:
        with pytest.raises(Crash):
            await dying.at_once.learn(turn.id, hold_id)
    [seen] = await alice.memories()
    await journal.forget_memories(Scope("alice"), [seen.id])
    await alice.store.forget(Scope("alice"), seen.id)
    await alice.learn()
    assert seen.content not in await alice.known()
