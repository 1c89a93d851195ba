"""What a journal knows of erasures that are done, applied to copies of earlier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Memory, MemoryType, Scope, Source
from semmem.ports.memory_records import Uses
from tests.support.journal_samples import EAGER, HOSTILE, Place, answered, learnt, turn

ADA = Scope("ada")


def memory(id: str = "m", user: str = "ada", *, at: float = 100.0, turn: str = "", **fields: object) -> Memory:
    told = Memory(id, 1, MemoryType.SEMANTIC, "likes tea", user, created_at=at, updated_at=at, source=Source(turn=turn))
    return replace(told, **fields)  # type: ignore[arg-type]  # a test's own words


@pytest.fixture
async def journals(place: Place, tmp_path: Path) -> AsyncIterator[tuple[SqlJournal, SqlJournal]]:
    """One that knows of erasures, and an older copy."""
    pair = SqlJournal(tmp_path / "newer.db"), SqlJournal(place)
    for journal in pair:
        await journal.open()
    yield pair
    for journal in pair:
        await journal.close()


async def erase(journal: SqlJournal, what: Forgetting) -> None:
    hold, _ = await journal.begin_erasure(what, now=what.at)
    await journal.finish_erasure(what, hold)


@pytest.mark.parametrize("ids", [("m_1", "m_2"), ("m_2", "m_1")], ids="-".join)
async def test_of_a_turn_from_which_two_memories_were_erased_the_later_time_counts(
    journals: tuple[SqlJournal, SqlJournal], ids: tuple[str, str]
) -> None:
    newer, older = journals
    await older.record([turn("t", ADA, opened_at=200.0)], [])
    for memory_id, at in zip(ids, (150.0, 250.0), strict=True):
        await newer.mark_memories([memory(memory_id, turn="t")], at=at)
    await older.add_marks(await newer.marks())
    assert (await older.erase_marked())["turns"] == 1


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_scope_that_was_erased_is_named_in_the_copy_by_its_digest(
    journals: tuple[SqlJournal, SqlJournal], name: str
) -> None:
    newer, older = journals
    scope = Scope(name, project="p", session="s1")
    await erase(newer, Forgetting(Scope(name, project="p"), 200.0))
    await older.record([turn("t", scope), turn("u", Scope(name, project="q"))], [])
    assert await older.erased_scopes() == []
    await older.add_marks(await newer.marks())
    assert await older.erased_scopes() == [Forgetting(Scope(name, project="p"), 200.0)]


async def test_memories_of_an_erased_scope_are_erased_when_they_were_said_by_then(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    newer, _ = journals
    await erase(newer, Forgetting(ADA, 200.0))
    told = [memory("before", at=200.0), memory("after", at=200.5)]
    assert await newer.erased_among(told) == {"before"}
    assert await newer.erased_among([memory("before", user="eve")]) == set()


async def test_a_single_memory_that_was_erased_is_known_by_its_id_and_a_later_version_is_not_it(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    newer, older = journals
    await newer.mark_memories([memory("m")], at=200.0)
    await older.add_marks(await newer.marks())
    for journal in journals:
        assert await journal.erased_among([memory("m"), memory("n")]) == {"m"}
        assert await journal.erased_among([memory("m", user="eve")]) == set()
        assert await journal.erased_among([memory("m", at=201.0)]) == set()


async def test_a_turn_that_an_erased_memory_was_learnt_from_is_not_learnt_from_again(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    newer, older = journals
    await older.record([turn("t"), turn("u")], [answered("t")])
    await newer.mark_memories([memory("m", turn="t")], at=200.0)
    await older.add_marks(await newer.marks())
    assert (await older.erase_marked())["turns"] == 1
    assert await learnt(older) == {"u": None}


async def test_a_marked_turn_in_a_batch_takes_the_batch_with_it_and_the_others_wait_for_another(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    newer, older = journals
    await older.record([turn("t"), turn("u")], [answered("t"), answered("u")])
    batch = await older.claim(EAGER, now=1000.0)
    assert batch is not None
    assert {each.id for each in batch.turns} == {"t", "u"}
    await newer.mark_memories([memory("m", turn="t")], at=200.0)
    await older.add_marks(await newer.marks())
    assert (await older.erase_marked())["turns"] == 1
    assert not await older.allows(batch.id, "m2")
    assert await learnt(older) == {"u": "Noted."}


async def test_versions_and_statistics_of_an_erased_memory_go_from_the_copy(
    journals: tuple[SqlJournal, SqlJournal],
) -> None:
    newer, older = journals
    for each in (memory("m"), memory("n")):
        await older.keep_version(each)
        await older.record_uses([("ada", each.id, Uses(3, 150.0))])
    await newer.mark_memories([memory("m")], at=200.0)
    await older.add_marks(await newer.marks())
    counts = await older.erase_marked()
    assert (counts["versions"], counts["statistics"]) == (1, 1)
    assert await older.recorded_ids("ada") == {"n"}


async def test_marks_move_on_and_never_back_and_are_pruned(journals: tuple[SqlJournal, SqlJournal]) -> None:
    newer, older = journals
    await newer.mark_memories([memory("m")], at=200.0)
    await older.mark_memories([memory("m")], at=300.0)
    await older.add_marks(await newer.marks())
    assert [mark.at for mark in await older.marks()] == [300.0]
    await newer.add_marks(await older.marks())
    assert await newer.marks() == await older.marks()
    await older.prune_marks(forgotten_before=300.1)
    assert await older.marks() == []


async def test_marks_name_nobody(journals: tuple[SqlJournal, SqlJournal], tmp_path: Path) -> None:
    newer, _ = journals
    await newer.mark_memories([memory("mem-canary", user="user-canary", turn="turn-canary")], at=200.0)
    await erase(newer, Forgetting(Scope("user-canary", "project-canary"), 200.0))
    assert "canary" not in repr(await newer.marks())
    await newer.purge()
    assert b"canary" not in (tmp_path / "newer.db").read_bytes()
