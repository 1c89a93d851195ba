"""What the journal keeps of turns that are learnt from at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Memory, MemoryType, Scope, Turn, TurnEnding
from semmem.ports.learning import BatchRules, Noted, TurnState
from semmem.ports.recording import TurnClosed
from tests.support.journal_samples import Place

ALICE = Scope("alice", session="s-1")
RULES = BatchRules(size=1, answer_wait_s=0.0)


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    opened = SqlJournal(place)
    await opened.open()
    yield opened
    await opened.close()


def turn(name: str = "t", at: float = 10.0, scope: Scope = ALICE) -> Turn:
    return Turn(name, scope, 1, "I keep bees", opened_at=at)


async def state(journal: SqlJournal, name: str = "t") -> TurnState:
    return (await journal.turn_state(name))[0]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (None, TurnState.OPEN),
        (TurnEnding.CONTINUES, TurnState.OPEN),
        (TurnEnding.ANSWERED, TurnState.CLOSED),
        (TurnEnding.ANSWER_LOST, TurnState.CLOSED),
        (TurnEnding.REFUSED, TurnState.REFUSED),
    ],
)
async def test_a_turn_is_as_far_as_its_answer(
    journal: SqlJournal, ending: TurnEnding | None, expected: TurnState
) -> None:
    closed = [] if ending is None else [TurnClosed("t", ending, 11.0, answer_id="a")]
    await journal.record([], closed)
    assert await journal.turn_state("t") == (TurnState.MISSING, None)
    await journal.record([turn()], [])
    found = await journal.turn_state("t")
    assert found == (expected, Turn("t", ALICE, 1, "I keep bees", opened_at=10.0))


async def test_a_turn_that_was_learnt_from_is_read_and_then_done(journal: SqlJournal) -> None:
    await journal.record([turn()], [TurnClosed("t", TurnEnding.ANSWERED, 11.0)])
    assert await journal.note_provisional("t", ["mem_1"])
    assert await state(journal) is TurnState.CLOSED
    await journal.note_read(turn(), wholly=True)
    assert await state(journal) is TurnState.READ
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    await journal.finish(batch.id, "stored", now=21.0)
    assert await state(journal) is TurnState.DONE


async def test_a_turn_was_read_if_its_words_are_still_those_that_were_read(journal: SqlJournal) -> None:
    names = ("whole", "part", "reworded", "cut off", "unread")
    turns = [turn(name, scope=Scope("alice", session=name)) for name in names]
    await journal.record(turns, [])
    whole, part, reworded, cut, _ = turns
    await journal.note_read(whole, wholly=True)
    await journal.note_read(part, wholly=False)
    await journal.note_read(structs.replace(reworded, user_text="I keep bees and geese"), wholly=True)
    await journal.note_read(cut, wholly=True, hold="hold_of_another_time")
    assert await journal.read_wholly(names) == {"whole"}
    assert [await state(journal, name) for name in names] == [
        *[TurnState.READ] * 2, TurnState.OPEN, TurnState.READ, TurnState.OPEN
    ]  # fmt: skip


async def test_what_a_turn_was_made_into_is_known_until_it_is_settled(journal: SqlJournal) -> None:
    await journal.record([turn(), turn("u", 12.0)], [])
    for _ in range(2):
        assert await journal.note_provisional("t", ["mem_1", "mem_2"])
    assert await journal.note_provisional("u", ["mem_1"])
    await journal.note_read(turn(), wholly=True)
    found = await journal.provisional(["t"])
    assert sorted(noted.memory_id for noted in found) == ["mem_1", "mem_2"]
    await journal.settle_provisional(["t"])
    assert len(await journal.provisional(["t"])) == 2, "it waits: its batch was ended before it had settled anything"
    assert await journal.claim(RULES, now=1e6) is not None
    await journal.settle_provisional(["t"])
    assert await journal.provisional(["t", "u"]) == [Noted("u", "mem_1")]
    assert await state(journal) is TurnState.READ


async def test_nothing_is_noted_of_a_turn_that_is_done_or_not_here(journal: SqlJournal) -> None:
    assert not await journal.note_provisional("t", ["mem_1"])
    await journal.record([turn()], [])
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    assert await journal.note_provisional("t", ["mem_1"])  # its batch rests, and somebody holds its place
    await journal.finish(batch.id, "stored", now=21.0)
    assert not await journal.note_provisional("t", ["mem_2"])
    await journal.note_read(turn(), wholly=True)
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1")]


async def test_of_a_refused_turn_what_was_made_of_it_is_noted_still_so_that_it_can_be_taken_back(
    journal: SqlJournal,
) -> None:
    await journal.record([turn()], [TurnClosed("t", TurnEnding.REFUSED, 11.0)])
    assert not await journal.note_provisional("t", ["mem_1"])
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1")]


async def test_a_memory_that_is_erased_tells_every_turn_that_was_made_into_it(journal: SqlJournal) -> None:
    bob = Scope("bob", session="s-1")
    await journal.record([turn(), turn("u", 12.0), turn("b", 12.0, bob)], [])
    for name in ("t", "u", "b"):
        await journal.note_provisional(name, ["mem_1"])
    await journal.note_provisional("t", ["mem_2"])
    await journal.forget_memories(Scope("alice"), ["mem_1"])
    found = {(noted.turn_id, noted.memory_id): noted.forgotten for noted in await journal.provisional(["t", "u", "b"])}
    assert found == {("t", "mem_1"): True, ("t", "mem_2"): False, ("u", "mem_1"): True, ("b", "mem_1"): False}


async def test_what_is_erased_with_its_scope_shuts_no_turn_of_another_one(journal: SqlJournal) -> None:
    await journal.record([turn()], [])
    await journal.note_provisional("t", ["mem_1"])
    await journal.forget_memories(Scope("alice"), ["mem_1"], shuts_turns=False)
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1")]


async def test_what_somebody_had_erased_stays_known_as_that_though_its_batch_removes_it(journal: SqlJournal) -> None:
    await journal.record([turn()], [])
    await journal.note_provisional("t", ["mem_1"])
    await journal.forget_memories(Scope("alice"), ["mem_1"])
    await journal.note_withdrawn("t", "mem_1")
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1", forgotten=True)]


async def test_what_was_taken_back_shuts_its_turn_whether_that_had_noted_it_or_not(journal: SqlJournal) -> None:
    await journal.record([turn(), turn("u", 12.0)], [])
    await journal.note_provisional("t", ["mem_1", "mem_2"])
    for name in ("t", "u", "unknown", ""):
        await journal.shut(name, "mem_1")
    found = {(noted.turn_id, noted.memory_id): noted.forgotten for noted in await journal.provisional(["t", "u"])}
    assert found == {("t", "mem_1"): True, ("t", "mem_2"): False, ("u", "mem_1"): True}


async def test_of_a_turn_that_is_learnt_from_nothing_is_noted_when_it_is_shut(journal: SqlJournal) -> None:
    await journal.record([turn()], [TurnClosed("t", TurnEnding.ANSWERED, 11.0)])
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    await journal.finish(batch.id, "stored", now=21.0)
    await journal.shut("t", "mem_1")
    assert await journal.provisional(["t"]) == []


async def test_what_goes_for_want_of_room_tells_no_turn(journal: SqlJournal) -> None:
    await journal.record([turn()], [])
    await journal.note_provisional("t", ["mem_1"])
    await journal.forget_memories(Scope("alice"), ["mem_1"], shuts_turns=False)
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1")]


async def test_of_an_erased_turn_nothing_is_known(journal: SqlJournal) -> None:
    await journal.record([turn(), turn("u", 12.0, Scope("alice", session="s-2"))], [])
    for name in ("t", "u"):
        await journal.note_provisional(name, ["mem_1"])
    await journal.begin_erasure(Forgetting(ALICE, 15.0), now=15.0)
    assert await journal.provisional(["t", "u"]) == [Noted("u", "mem_1")]
    assert await journal.turn_state("t") == (TurnState.DONE, None)
    assert not await journal.note_provisional("t", ["mem_2"])


async def test_turns_that_nobody_settled_are_overdue_once_they_are_over(journal: SqlJournal) -> None:
    turns = [turn(name, 10.0, Scope("alice", session=name)) for name in ("done", "refused", "waits")]
    await journal.record(turns, [])
    for each in turns:
        await journal.note_provisional(each.id, [f"mem_{each.id}", "mem_2"])
        await journal.note_read(each, wholly=True)
    await journal.record([], [TurnClosed("refused", TurnEnding.REFUSED, 11.0)])
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    assert [each.id for each in batch.turns] == ["done"]
    assert await journal.overdue("alice", limit=10) == ["refused"]
    await journal.finish(batch.id, "gave_up", now=21.0)
    assert sorted(await journal.overdue("alice", limit=10)) == ["done", "refused"]
    assert len(await journal.overdue("alice", limit=1)) == 1
    assert await journal.overdue("bob", limit=10) == []
    await journal.settle_provisional(["done", "refused"])
    assert await journal.overdue("alice", limit=10) == []


async def test_what_a_batch_removed_is_kept_as_a_version_until_its_turn_is_pruned(journal: SqlJournal) -> None:
    await journal.record([turn()], [TurnClosed("t", TurnEnding.ANSWERED, 11.0)])
    await journal.note_provisional("t", ["mem_1", "mem_2"])
    for memory_id in ("mem_1", "mem_2"):
        await journal.keep_version(Memory(memory_id, 1, MemoryType.SEMANTIC, "User keeps bees", user="alice"))
    await journal.note_withdrawn("t", "mem_1")
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    await journal.settle_provisional(["t"])
    await journal.finish(batch.id, "stored", now=21.0)
    assert await journal.overdue("alice", limit=10) == []
    assert len(await journal.versions(Scope("alice"), "mem_1")) == 1
    assert await journal.recorded_ids("alice") == {"mem_2"}
    await journal.prune(done_before=100.0)
    assert await journal.versions(Scope("alice"), "mem_1") == []
    assert len(await journal.versions(Scope("alice"), "mem_2")) == 1


async def test_with_a_pruned_turn_its_notes_go(journal: SqlJournal) -> None:
    await journal.record([turn()], [TurnClosed("t", TurnEnding.ANSWERED, 11.0)])
    await journal.note_provisional("t", ["mem_1"])
    batch = await journal.claim(RULES, now=20.0)
    assert batch is not None
    await journal.finish(batch.id, "gave_up", now=21.0)
    assert await journal.provisional(["t"]) == [Noted("t", "mem_1")]
    await journal.prune(done_before=100.0)
    assert await journal.provisional(["t"]) == []
