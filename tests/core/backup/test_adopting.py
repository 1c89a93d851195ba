"""A journal that was left behind, taken over: once, with its answers, and without what was erased on either side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.backup import BackupError
from semmem.backup.adopting import Adopted, Adoption
from semmem.memory import Forgetting, Memory, MemoryType, Role, Scope
from semmem.ports.conversations import FIRST_ANSWER, ConversationLimits, Said, SaidHalf, Step
from tests.support.journal_samples import EAGER, Place, answered, erase, learnt, lost, refused, turn
from tests.support.newest_conversation import newest_conversation

ADA, EVE = Scope("ada", session="s1"), Scope("eve", session="s2")


@pytest.fixture
async def journals(place: Place, tmp_path: Path) -> AsyncIterator[tuple[SqlJournal, SqlJournal]]:
    """The one that is left, and the one that goes on."""
    pair = SqlJournal(tmp_path / "left.db"), SqlJournal(place)
    for journal in pair:
        await journal.open()
    yield pair
    for journal in pair:
        await journal.close()


async def adopt(journals: tuple[SqlJournal, SqlJournal], *, now: float = 2000.0) -> Adopted:
    return await Adoption(*journals, clock=lambda: now, progress=lambda _line: None).run()


async def test_what_waits_is_learnt_from_once_by_whoever_goes_on(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    told = [turn("a"), turn("b", EVE), turn("c"), turn("d")]
    await left.record(told, [answered("a"), lost("b"), refused("d"), answered("alone")])
    assert (await adopt(journals)).turns == 3
    assert (await adopt(journals)).turns == 0
    assert await learnt(going_on) == {"a": "Noted.", "b": None, "c": None}
    assert await learnt(left) == {}
    await adopt(journals)
    assert await learnt(going_on) == {}
    await going_on.record([turn("alone")], [])
    assert await learnt(going_on) == {"alone": "Noted."}


async def test_a_try_that_was_cut_off_before_it_was_marked_doubles_nothing(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    left, going_on = journals
    await left.record([turn("a")], [answered("a")])
    await going_on.record([turn("a")], [answered("a")])
    assert await learnt(going_on) == {"a": "Noted."}
    await adopt(journals)
    assert await learnt(going_on) == {}


async def test_what_was_learnt_there_already_is_not_learnt_again(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    await left.record([turn("a")], [answered("a")])
    await learnt(left)
    await left.record([turn("b")], [])
    await adopt(journals)
    assert await learnt(going_on) == {"b": None}


async def test_a_batch_that_died_is_taken_over_when_its_lease_is_over(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    await left.record([turn("a")], [answered("a")])
    assert await left.claim(EAGER, now=1995.0) is not None
    with pytest.raises(BackupError, match="leased for 5 more seconds"):
        await adopt(journals, now=2000.0)
    assert await learnt(going_on) == {}
    await adopt(journals, now=2006.0)
    assert await learnt(going_on) == {"a": "Noted."}
    assert await left.claim(EAGER, now=9000.0) is None


async def test_users_who_were_erased_here_are_turned_away(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    await left.record([turn("a"), turn("b", EVE)], [answered("a")])
    await erase(going_on, Scope("ada"), at=200.0)
    await adopt(journals)
    assert await learnt(going_on) == {"b": None}
    assert going_on.turned_away == 1


async def test_users_who_were_erased_there_are_erased_here(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    await going_on.record([turn("a"), turn("later", opened_at=300.0), turn("b", EVE)], [answered("a")])
    await erase(left, Scope("ada"), at=200.0)
    assert (await adopt(journals)).marks == 1
    assert await learnt(going_on) == {"later": None, "b": None}


async def test_an_erasure_that_is_pending_there_is_finished_here(journals: tuple[SqlJournal, SqlJournal]) -> None:
    left, going_on = journals
    what = Forgetting(Scope("ada"), 200.0, memory_id="m")
    await left.begin_erasure(what, now=200.0)
    assert (await adopt(journals)).pending_erasures == 1
    assert await going_on.pending_erasures(limit=10) == [what]


async def test_earlier_versions_come_along_and_those_of_erased_memories_do_not(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    left, going_on = journals
    for name in ("m", "gone"):
        await left.keep_version(Memory(name, 1, MemoryType.SEMANTIC, "tea", "ada", created_at=100.0, updated_at=100.0))
    await going_on.mark_memories([Memory("gone", 2, MemoryType.SEMANTIC, "milk", "ada")], at=200.0)
    assert (await adopt(journals)).versions == 1
    assert [each.content for each in await going_on.versions(Scope("ada"), "m")] == ["tea"]
    assert await going_on.versions(Scope("ada"), "gone") == []


async def test_a_turn_learnt_from_at_once_is_known_to_be_and_what_was_erased_of_it_stays_so(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    left, going_on = journals
    await left.record([turn("a")], [])
    await left.note_provisional("a", ["m1", "m2"])
    await left.forget_memories(Scope("ada"), ["m2"])
    await adopt(journals)
    found = {(each.memory_id, each.forgotten) for each in await going_on.provisional(["a"])}
    assert found == {("m1", False), ("m2", True)}


async def test_conversations_come_along_once_and_what_is_erased_of_them_does_not(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    left, going_on = journals
    for number, scope in enumerate((ADA, EVE)):
        said = Said(FIRST_ANSWER, Role.ASSISTANT, "Noted.", 101.0)
        half = SaidHalf(f"t_{number}", Step("", FIRST_ANSWER, 100.0), (said,))
        await left.record([turn(half.turn_id, scope)], [])
        assert (await left.record_said([half], ConversationLimits())).kept == 2
    await erase(going_on, Scope("eve"), at=150.0)
    assert (await adopt(journals)).conversations == 1
    await adopt(journals)
    counts = await going_on.conversation_counts(None)
    assert (counts.conversations, counts.messages) == (1, 2)
    kept = await newest_conversation(going_on, ADA)
    assert kept is not None
    assert kept.title == "I like tea"
