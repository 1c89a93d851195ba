"""Contract of every journal: an answer that may say what is erased is shown to no question, and stays in the record."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.withholding import BEGINNING, Reach, spread
from semmem.memory import Forgetting, Memory, MemoryType, Role, Scope, Source
from semmem.ports.conversations import FIRST_ANSWER, Said, SaidHalf, Step, Wanted, conversation_id
from tests.core.backends.test_journal_conversations import LIMITS, asked, journal
from tests.support.empty_journal import empty_journal
from tests.support.journal_samples import HOSTILE, erase, turn

__all__ = ["journal"]
ADA = Scope("ada")
ONE, TWO, THREE = (Scope("ada", session=name) for name in ("one", "two", "three"))
WORK = Scope("ada", "work", session="w")


def answer(turn_id: str, text: str, at: float, *shown: str, said_at: float | None = None) -> SaidHalf:
    """``at``: when it was asked for."""
    said = Said(FIRST_ANSWER, Role.ASSISTANT, text, at + 1.0 if said_at is None else said_at)
    return SaidHalf(turn_id, Step("", FIRST_ANSWER, at, shown=shown), (said,))


async def ask(journal: SqlJournal, turn_id: str, scope: Scope, at: float) -> None:
    """What the user says is recorded, and nothing is answered yet."""
    await journal.record([turn(turn_id, scope, opened_at=at, text=f"asks {turn_id}")], [])
    await journal.record_said([asked(turn_id, at)], LIMITS)


async def say(journal: SqlJournal, turn_id: str, scope: Scope, at: float, *shown: str) -> None:
    await ask(journal, turn_id, scope, at)
    await journal.record_said([answer(turn_id, f"answers {turn_id}", at, *shown)], LIMITS)


async def shown(journal: SqlJournal, scope: Scope = ADA) -> list[str]:
    """The turns whose answers a question is shown: to whoever reads, and to whoever looks for words."""
    talks = await journal.conversations(Scope(scope.user), Wanted(limit=100), LIMITS)
    found = [
        said.text
        for talk in await journal.read_talks(scope, {each.id: "" for each in talks}, messages_max=99, chars_max=99)
        for said in talk.said
        if said.role is Role.ASSISTANT
    ]
    for text in found:
        assert await holding(journal, text, scope)
    return sorted(text.removeprefix("answers ") for text in found)


async def holding(journal: SqlJournal, text: str, scope: Scope = ADA) -> list[str]:
    return list(await journal.talks_holding(scope, [text], messages_max=99, chars_max=99, limit=99))


async def recorded(journal: SqlJournal, scope: Scope) -> list[str]:
    return [said.content for said in await journal.messages(scope, conversation_id(scope))]


def memory(memory_id: str = "mem_1", turn_id: str = "", user: str = "ada") -> Memory:
    return Memory(memory_id, 1, MemoryType.SEMANTIC, "x", user, source=Source(turn=turn_id, time=100.0))


# --- what an erasure withholds ---------------------------------------------------------------------------------------


async def test_an_answer_that_was_shown_an_erased_memory_is_recorded_and_shown_to_no_question(
    journal: SqlJournal,
) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1", "mem_2")
    await say(journal, "t_2", TWO, 110.0, "mem_2")
    await say(journal, "t_3", THREE, 120.0)
    assert await shown(journal) == ["t_1", "t_2", "t_3"]
    await journal.mark_memories([memory()], at=150.0)
    assert await shown(journal) == ["t_2", "t_3"]
    assert await holding(journal, "answers t_1") == []
    assert await holding(journal, "asks t_1") == [conversation_id(ONE)]
    assert await recorded(journal, ONE) == ["asks t_1", "answers t_1"]


async def test_nobody_else_is_touched_who_was_shown_something_of_the_same_name(journal: SqlJournal) -> None:
    for number, name in enumerate(HOSTILE):
        await say(journal, f"t_{number}", Scope(name, session="s"), 100.0, "mem_1")
    for gone, name in enumerate(HOSTILE):
        await journal.mark_memories([memory(user=name)], at=150.0)
        left = [each for each in HOSTILE if await shown(journal, Scope(each))]
        assert left == HOSTILE[gone + 1 :]


async def test_answers_behind_an_erased_turn_are_withheld_and_those_before_it_or_asked_for_later_are_not(
    journal: SqlJournal,
) -> None:
    for number in range(4):
        await say(journal, f"t_{number}", ONE, 100.0 + 10 * number)
    await journal.mark_memories([memory(turn_id="t_1")], at=150.0)
    await say(journal, "t_4", ONE, 160.0)
    assert await shown(journal) == ["t_0", "t_4"]
    assert len(await recorded(journal, ONE)) == 8


async def test_so_are_those_behind_an_erased_turn_that_is_in_no_record(journal: SqlJournal) -> None:
    await journal.record([turn("t_1", ONE, opened_at=100.0, text="asks t_1")], [])
    await say(journal, "t_2", ONE, 110.0)
    await say(journal, "t_3", TWO, 120.0, conversation_id(ONE))
    await journal.mark_memories([memory(turn_id="t_1")], at=150.0)
    assert await shown(journal) == []


async def test_so_are_those_behind_an_erased_turn_that_the_record_alone_knows(
    journal: SqlJournal, tmp_path: Path
) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", ONE, 110.0)
    other = SqlJournal(empty_journal(tmp_path / "other.db"))
    await other.open()
    for kept, messages in await journal.kept_conversations(after="", limit=9):
        await other.put_conversation(kept, messages, LIMITS)
    assert await shown(other) == ["t_1", "t_2"]
    assert await other.mark_memories([memory(turn_id="t_1")], at=150.0) == 2
    assert await shown(other) == []
    await other.close()


async def test_an_erasure_that_took_its_time_reaches_what_was_answered_meanwhile(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    await say(journal, "t_2", TWO, 160.0, conversation_id(ONE))
    await say(journal, "t_3", ONE, 170.0)
    await say(journal, "t_4", ONE, 190.0)
    await journal.mark_memories([memory()], at=150.0, now=180.0)
    assert await shown(journal) == ["t_4"]


async def test_answers_behind_one_that_is_withheld_are_too_and_those_before_it_are_not(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", ONE, 110.0, "mem_1")
    await say(journal, "t_3", ONE, 120.0)
    await journal.mark_memories([memory()], at=150.0)
    assert await shown(journal) == ["t_1"]


async def test_an_answer_that_was_shown_a_note_of_a_note_of_it_is_withheld(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    await say(journal, "t_2", TWO, 110.0, conversation_id(ONE))
    await say(journal, "t_3", THREE, 120.0, conversation_id(TWO))
    await say(journal, "t_0", WORK, 100.0)
    await say(journal, "t_4", Scope("ada", session="four"), 130.0, conversation_id(WORK))
    await journal.mark_memories([memory()], at=150.0)
    assert await shown(journal) == ["t_0", "t_4"]
    await say(journal, "t_5", Scope("ada", session="six"), 160.0, conversation_id(ONE))  # it holds nothing of it now
    await journal.mark_memories([memory("mem_9")], at=170.0)
    assert await shown(journal) == ["t_0", "t_4", "t_5"]


async def test_what_was_shown_a_conversation_is_withheld_when_that_one_is_removed(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", TWO, 110.0, conversation_id(ONE))
    await journal.forget_conversation(ADA, conversation_id(ONE), now=150.0)
    assert await shown(journal) == []


async def test_what_was_shown_a_conversation_is_withheld_when_a_turn_is_taken_out_of_that_one(
    journal: SqlJournal,
) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", TWO, 110.0, conversation_id(ONE))
    await journal.mark_memories([memory(turn_id="t_1")], at=150.0)
    assert await shown(journal) == []


@pytest.mark.parametrize("scope", [Scope("ada", "work"), WORK])
async def test_of_an_erased_project_nothing_comes_back_by_answers_elsewhere(journal: SqlJournal, scope: Scope) -> None:
    await say(journal, "t_1", WORK, 100.0)
    await say(journal, "t_2", ONE, 110.0, conversation_id(WORK))
    await say(journal, "t_3", TWO, 120.0, "mem_w")
    await say(journal, "t_4", THREE, 130.0, "mem_1")
    await erase(journal, scope, at=150.0)
    assert await shown(journal) == ["t_3", "t_4"]
    await journal.withhold_answers("ada", ["mem_w"], now=151.0)
    assert await shown(journal) == ["t_4"]


async def test_of_a_conversation_that_is_erased_up_to_a_day_the_rest_of_the_answers_are_withheld(
    journal: SqlJournal,
) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", ONE, 200.0)
    await say(journal, "t_3", TWO, 210.0)
    await journal.begin_erasure(Forgetting(ADA, 150.0), now=300.0)
    assert await shown(journal) == ["t_3"]
    assert await recorded(journal, ONE) == ["asks t_2", "answers t_2"]


async def test_a_second_erasure_withholds_more_and_gives_nothing_back(journal: SqlJournal) -> None:
    for number in range(3):
        await say(journal, f"t_{number}", ONE, 100.0 + 10 * number, f"mem_{number}")
    await journal.mark_memories([memory("mem_2")], at=150.0)
    assert await shown(journal) == ["t_0", "t_1"]
    await say(journal, "t_3", ONE, 160.0)
    await journal.mark_memories([memory("mem_1")], at=155.0)
    assert await shown(journal) == ["t_0", "t_3"]
    await journal.mark_memories([memory("mem_2")], at=200.0)
    assert await shown(journal) == ["t_0"]


# --- what comes late -------------------------------------------------------------------------------------------------


async def test_a_late_answer_that_was_shown_an_erased_memory_is_withheld(journal: SqlJournal) -> None:
    await ask(journal, "t_1", ONE, 140.0)
    await journal.mark_memories([memory()], at=150.0)
    await ask(journal, "t_2", TWO, 160.0)
    await journal.record_said(
        [answer("t_1", "answers t_1", 140.0, "mem_1"), answer("t_2", "answers t_2", 160.0, "mem_2")], LIMITS
    )
    assert await shown(journal) == ["t_2"]
    assert await recorded(journal, ONE) == ["asks t_1", "answers t_1"]


@pytest.mark.parametrize("turns", [("t_a", "t_b"), ("t_b", "t_a")], ids="-".join)
async def test_of_a_memory_that_was_erased_twice_the_later_time_counts(
    journal: SqlJournal, turns: tuple[str, str]
) -> None:
    await ask(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", ONE, 200.0)
    for turn_id, at in zip(turns, (150.0, 250.0), strict=True):
        await journal.mark_memories([memory(turn_id=turn_id)], at=at)
    await journal.record_said([answer("t_1", "answers t_1", 100.0, "mem_1")], LIMITS)
    await say(journal, "t_3", ONE, 260.0)
    assert await shown(journal) == ["t_3"]


async def test_a_late_answer_behind_an_erased_turn_is_withheld_also_where_that_turn_was_in_no_record(
    journal: SqlJournal,
) -> None:
    for recorded_first in (True, False):
        scope = Scope("ada", session=f"s{recorded_first}")
        first, second, third = (f"t_{number}_{recorded_first}" for number in range(3))
        for name, at in ((first, 100.0), (second, 110.0)):
            await journal.record([turn(name, scope, opened_at=at, text=f"asks {name}")], [])
        if recorded_first:
            await journal.record_said([asked(first, 100.0)], LIMITS)
        await journal.mark_memories([memory(turn_id=first)], at=150.0)
        await journal.record([turn(third, scope, opened_at=160.0, text=f"asks {third}")], [])
        await journal.record_said([answer(second, f"answers {second}", 110.0)], LIMITS)
        await journal.record_said([answer(third, f"answers {third}", 160.0)], LIMITS)
    assert await shown(journal) == ["t_2_False", "t_2_True"]


async def test_a_late_answer_behind_one_that_is_withheld_is_too(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    await ask(journal, "t_2", ONE, 110.0)
    await ask(journal, "t_3", TWO, 120.0)
    await journal.mark_memories([memory()], at=150.0)
    shown_one = conversation_id(ONE)
    await journal.record_said(
        [answer("t_2", "answers t_2", 110.0), answer("t_3", "answers t_3", 120.0, shown_one)], LIMITS
    )
    await say(journal, "t_4", THREE, 160.0, shown_one)
    assert await shown(journal) == ["t_4"]


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_late_answer_that_was_shown_a_conversation_that_is_gone_is_withheld(
    journal: SqlJournal, comes_back: bool
) -> None:
    await say(journal, "t_1", ONE, 100.0)
    await say(journal, "t_2", TWO, 100.0)
    for number in (3, 4):
        await ask(journal, f"t_{number}", Scope("ada", session=f"late{number}"), 140.0)
        await ask(journal, f"t_{number}_later", Scope("ada", session=f"later{number}"), 200.0)
    await journal.forget_conversation(ADA, conversation_id(ONE), now=150.0)
    await journal.mark_memories([memory(turn_id="t_2")], at=150.0)
    if comes_back:
        await ask(journal, "t_1_again", ONE, 180.0)
        await ask(journal, "t_2_again", TWO, 180.0)
    for number, name in enumerate((ONE, TWO), 3):
        late = answer(f"t_{number}", f"answers t_{number}", 140.0, conversation_id(name))
        later = answer(f"t_{number}_later", f"answers t_{number}_later", 200.0, conversation_id(name))
        await journal.record_said([late, later] if comes_back else [late], LIMITS)
    assert await shown(journal) == (["t_3_later", "t_4_later"] if comes_back else [])


async def test_after_a_project_is_erased_late_answers_are_withheld_if_they_were_shown_anything(
    journal: SqlJournal,
) -> None:
    for number, at in enumerate((140.0, 140.0, 156.0, 170.0)):
        await ask(journal, f"t_{number}", Scope("ada", session=f"s{number}"), at)
    await ask(journal, "t_bob", Scope("bob", session="s"), 140.0)
    await erase(journal, Scope("ada", "work"), at=150.0)
    await journal.withhold_answers("ada", ["mem_w"], now=160.0)
    halves = [
        answer("t_0", "answers t_0", 140.0, "mem_w"),
        answer("t_1", "answers t_1", 140.0),
        answer("t_2", "answers t_2", 156.0, "mem_w"),  # elsewhere it was not hidden yet
        answer("t_3", "answers t_3", 170.0, "mem_1"),
        answer("t_bob", "answers t_bob", 140.0, "mem_1"),
    ]
    await journal.record_said(halves, LIMITS)
    assert await shown(journal) == ["t_1", "t_3"]
    assert await shown(journal, Scope("bob")) == ["t_bob"]


async def test_an_answer_that_is_told_again_stays_withheld_and_keeps_what_it_was_shown(journal: SqlJournal) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    again = answer("t_1", "answers t_1", 100.0)
    await journal.record_said([again], LIMITS)
    await journal.mark_memories([memory()], at=150.0)
    for half in (
        again,
        answer("t_1", "answers t_1", 100.0, "mem_1"),
        answer("t_1", "answers t_1", 100.0, said_at=120.0),
    ):
        await journal.record_said([half], LIMITS)
        assert await shown(journal) == []


async def test_answers_that_come_while_it_is_erased_are_withheld_whichever_is_first(journal: SqlJournal) -> None:
    scopes = [Scope("ada", session=f"s{number}") for number in range(12)]
    for number, scope in enumerate(scopes):
        await ask(journal, f"t_{number}", scope, 140.0)
        await ask(journal, f"u_{number}", scope, 145.0)
    await journal.record_said([answer("t_0", "answers t_0", 140.0, "mem_1")], LIMITS)
    halves = [
        [answer(f"t_{number}", "x", 142.0, note), answer(f"u_{number}", "x", 145.0)]
        for number, note in enumerate(["mem_1", conversation_id(scopes[0])] * 6)
    ]
    comes = [journal.record_said(each, LIMITS) for each in halves]
    erases = [journal.mark_memories([memory()], at=150.0), journal.withhold_answers("ada", ["mem_1"], now=150.0)]
    await asyncio.gather(*comes[:6], *erases, *comes[6:])
    assert await shown(journal) == []


# --- copies ----------------------------------------------------------------------------------------------------------


async def test_what_is_withheld_is_so_in_a_copy_and_an_older_copy_gives_nothing_back(
    journal: SqlJournal, tmp_path: Path
) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    await say(journal, "t_2", ONE, 110.0)
    await say(journal, "t_3", TWO, 120.0, "mem_2")
    older = await journal.kept_conversations(after="", limit=9)
    await journal.mark_memories([memory()], at=150.0)
    for kept, messages in older:
        await journal.put_conversation(kept, messages, LIMITS)
    assert await shown(journal) == ["t_3"]
    other = SqlJournal(empty_journal(tmp_path / "other.db"))
    await other.open()
    await ask(other, "t_0", ONE, 50.0)
    for kept, messages in older:
        await other.put_conversation(kept, messages, LIMITS)
    assert await shown(other) == ["t_1", "t_2", "t_3"]
    for kept, messages in await journal.kept_conversations(after="", limit=9):
        await other.put_conversation(kept, messages, LIMITS)
    assert await shown(other) == ["t_3"]
    await ask(other, "t_4", ONE, 130.0)
    await other.record_said([answer("t_4", "answers t_4", 130.0)], LIMITS)  # it was behind what is withheld
    await other.record_said([answer("t_0", "answers t_0", 50.0)], LIMITS)
    assert await shown(other) == ["t_0", "t_3"]
    await other.close()


async def test_a_copy_from_before_is_told_by_the_marks_what_it_must_not_show(
    journal: SqlJournal, tmp_path: Path
) -> None:
    await say(journal, "t_1", ONE, 100.0, "mem_1")
    await say(journal, "t_2", TWO, 110.0, conversation_id(ONE))
    await say(journal, "t_3", THREE, 120.0)
    await say(journal, "t_4", THREE, 130.0)
    await say(journal, "t_w", WORK, 100.0)
    await say(journal, "t_5", Scope("ada", session="five"), 130.0, conversation_id(WORK))
    await say(journal, "t_6", Scope("ada", session="six"), 130.0, "mem_2")
    older = await journal.kept_conversations(after="", limit=9)
    await journal.mark_memories([memory(), memory("mem_3", "t_3")], at=150.0)
    await journal.forget_conversation(ADA, conversation_id(WORK), now=150.0)
    marks_first, marks_last = (SqlJournal(empty_journal(tmp_path / name)) for name in ("first.db", "last.db"))
    for other in (marks_first, marks_last):
        await other.open()
        if other is marks_first:
            await other.add_marks(await journal.marks())
        for kept, messages in older:
            await other.put_conversation(kept, messages, LIMITS)
        if other is marks_first:
            assert {"t_1", "t_4", "t_5"}.isdisjoint(await shown(other))
        else:
            assert len(await shown(other)) == 7
            await other.add_marks(await journal.marks())
        await other.erase_marked()
        assert await shown(other) == ["t_6"], other
        await other.close()


# --- how far it reaches ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcdef")
PLACES = st.integers(0, 9)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, PLACES)), st.sets(NAMES), st.dictionaries(NAMES, PLACES))
def test_it_reaches_all_that_was_shown_it_and_nothing_else(
    told: dict[str, dict[str, int]], memories: set[str], begun: dict[str, int]
) -> None:
    shown = {name: {talk: (str(place), 1.0) for talk, place in talks.items()} for name, talks in told.items()}
    reached = spread(shown, memories, {talk: Reach(str(place), 5.0) for talk, place in begun.items()}, 5.0)
    assert {talk: int(reach.place) for talk, reach in reached.items()} == _by_hand(told, memories, begun)


def _by_hand(told: dict[str, dict[str, int]], memories: set[str], begun: dict[str, int]) -> dict[str, int]:
    """Until nothing is added."""
    reached, before = dict(begun), None
    while reached != before:
        before = dict(reached)
        for name in {*memories, *before} & told.keys():
            for talk, place in told[name].items():
                reached[talk] = min(place, reached.get(talk, place))
    return reached


def test_what_was_shown_a_conversation_after_it_was_erased_is_not_reached() -> None:
    shown = {"conv_a": {"conv_b": ("1", 10.0)}, "conv_b": {"conv_c": ("1", 4.0)}}
    assert spread(shown, [], {"conv_a": Reach(BEGINNING, 9.0)}, 99.0).keys() == {"conv_a"}
    assert spread(shown, [], {"conv_a": Reach(BEGINNING, 10.0)}, 99.0).keys() == {"conv_a", "conv_b", "conv_c"}


def test_a_time_that_turns_out_later_is_told_to_all_that_hang_on_it() -> None:
    shown = {"conv_a": {"conv_b": ("1", 1.0)}, "conv_b": {"conv_c": ("1", 7.0)}, "mem": {"conv_b": ("2", 2.0)}}
    for seeds in (["mem"], ["mem", "none"]):
        reached = spread(shown, seeds, {"conv_a": Reach(BEGINNING, 5.0)}, 9.0)
        assert reached["conv_c"] == Reach("1", 9.0)
