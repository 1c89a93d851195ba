"""What the journal knows of messages beyond their turns: bare ids, kept through erasures, gone when they are old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.database import JournalLimits
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope, TurnEnding
from semmem.ports.recording import SaidBefore, TurnClosed
from tests.support.journal_samples import ADA, HOSTILE, Place, erase, turn


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place, limits=JournalLimits(prune_rows_max=3))
    await made.open()
    yield made
    await made.close()


def declined(place: str, at: float = 100.0) -> TurnClosed:
    return TurnClosed(place, TurnEnding.DECLINED, at)


async def test_a_journalled_message_is_known_by_its_id_and_place(journal: SqlJournal) -> None:
    await journal.record([turn("t1", message_id="m_1")], [])
    assert await journal.said_before(["m_1", "m_2"]) == [SaidBefore("m_1", 0, 100.0)]


async def test_any_number_of_any_names_is_found_as_it_was_given_and_once(journal: SqlJournal) -> None:
    names = [*HOSTILE, *(f"m_{number}" for number in range(300))]
    await journal.record([turn(f"t{n}", message_id=name) for n, name in enumerate(names)], [])
    assert await journal.said_before([]) == []
    for asked in (names[:1], HOSTILE, names):
        assert sorted(row.message_id for row in await journal.said_before(asked)) == sorted(asked)


async def test_the_first_time_stays(journal: SqlJournal) -> None:
    for at in (100.0, 200.0):
        await journal.record([turn("t1", message_id="m_1", opened_at=at)], [declined("m_2.4", at)])
    found = await journal.said_before(["m_1", "m_2"])
    assert found == [SaidBefore("m_2", 4, 100.0, declined=True), SaidBefore("m_1", 0, 100.0)]


async def test_a_declined_message_is_no_turn_and_no_half_of_one(journal: SqlJournal) -> None:
    await journal.record([], [declined("m_1.1")])
    assert set((await journal.counts()).values()) == {0}


async def test_what_is_erased_is_still_known_to_have_been_said(journal: SqlJournal) -> None:
    await journal.record([turn("t1", message_id="m_1")], [declined("m_2.1")])
    await erase(journal, Scope(ADA.user))
    assert {row.message_id for row in await journal.said_before(["m_1", "m_2"])} == {"m_1", "m_2"}


async def test_old_messages_are_pruned_however_many_there_are(journal: SqlJournal) -> None:
    places = [f"m_{number}" for number in range(10)]
    await journal.record(
        [turn(f"t{number}", message_id=place, opened_at=100.0 + number) for number, place in enumerate(places)],
        [declined("m_1.7", 100.0), declined("m_2.7", 107.0)],
    )
    await journal.prune(done_before=107.0)
    kept = [(row.message_id, row.declined) for row in await journal.said_before(places)]
    assert sorted(kept) == [("m_2", True), ("m_7", False), ("m_8", False), ("m_9", False)]


async def test_an_older_journal_learns_to_remember_messages(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "old.db"
    async with _opened(path):
        pass
    with closing(sqlite3.connect(path)) as old:
        old.execute("drop table said_messages")
        old.execute("drop table journal_revision")
    async with _opened(path) as journal:
        await journal.record([turn("t1", message_id="m_1")], [])
        assert len(await journal.said_before(["m_1"])) == 1


class _opened:
    def __init__(self, path: Path) -> None:
        self._journal = SqlJournal(path)

    async def __aenter__(self) -> SqlJournal:
        await self._journal.open()
        return self._journal

    async def __aexit__(self, *_: object) -> None:
        await self._journal.close()
