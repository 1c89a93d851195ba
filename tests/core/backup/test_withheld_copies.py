"""What an erasure withholds stays so when a journal is restored from before it, or adopted by another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.backup import restoring
from semmem.backup.adopting import Adoption
from semmem.memory import Memory, MemoryType, Scope, Source
from semmem.ports.conversations import conversation_id
from tests.core.backends.test_journal_withheld import ONE, TWO, WORK, say, shown
from tests.support.journal_samples import Place, erase, learn_all


@pytest.fixture
async def journals(place: Place, tmp_path: Path) -> AsyncIterator[tuple[SqlJournal, SqlJournal]]:
    """One in which something was erased, and one that does not know of it."""
    pair = SqlJournal(tmp_path / "knows.db"), SqlJournal(place)
    for journal in pair:
        await journal.open()
    yield pair
    for journal in pair:
        await journal.close()


async def test_a_restored_journal_shows_no_answer_that_was_given_with_a_project_that_is_erased_since(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    knows, restored = journals
    await erase(knows, Scope("ada", "work"), at=150.0)
    await say(restored, "t_1", ONE, 100.0, "mem_work")
    await say(restored, "t_2", TWO, 160.0, "mem_home")
    await say(restored, "t_3", Scope("ada", session="three"), 110.0)
    await say(restored, "t_4", Scope("bob", session="four"), 110.0, "mem_bob")
    done = restoring.Restored()
    await restoring.apply_erasures(restored, await knows.marks(), [], now=200.0, restored=done)
    assert await shown(restored) == ["t_2", "t_3"]
    assert await shown(restored, Scope("bob")) == ["t_4"]


async def test_an_erasure_that_was_carried_out_here_is_not_carried_out_again_more_widely(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    _, journal = journals
    await say(journal, "t_1", ONE, 100.0, "mem_work")
    await say(journal, "t_2", TWO, 110.0, "mem_home")
    await erase(journal, Scope("ada", "work"), at=150.0)
    await journal.withhold_answers("ada", ["mem_work"], now=151.0)
    await journal.erase_marked()
    assert await shown(journal) == ["t_2"]


@pytest.mark.parametrize("first", [True, False])
async def test_a_note_of_what_is_withheld_in_an_adopted_journal_is_too_whichever_comes_first(
    journals: tuple[SqlJournal, SqlJournal], first: bool
) -> None:
    left, going_on = journals
    by_id = sorted((ONE, TWO), key=conversation_id, reverse=not first)
    for name in ("t_0", "t_1"):
        await say(left, name, by_id[0], 90.0 if name == "t_0" else 100.0)
    await say(left, "t_2", by_id[1], 110.0, conversation_id(by_id[0]))
    learnt = Memory("mem_1", 1, MemoryType.SEMANTIC, "x", "ada", source=Source(turn="t_0"))
    await going_on.mark_memories([learnt], at=150.0)
    await learn_all(left)
    await Adoption(left, going_on, clock=lambda: 2000.0, progress=lambda _line: None).run()
    assert await shown(going_on) == []


async def test_who_adopts_a_journal_in_which_a_project_was_erased_shows_no_answer_of_before_that_was_shown_any_memory(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    knows, going_on = journals
    await say(going_on, "t_1", ONE, 100.0, "mem_work")
    await say(going_on, "t_2", TWO, 160.0, "mem_home")
    await say(going_on, "t_3", Scope("ada", session="three"), 110.0)
    await say(knows, "t_w", WORK, 100.0)
    await erase(knows, Scope("ada", "work"), at=150.0)
    adoption = Adoption(knows, going_on, clock=lambda: 200.0, progress=lambda _line: None)
    await adoption.run()
    assert await shown(going_on) == ["t_2", "t_3"]
