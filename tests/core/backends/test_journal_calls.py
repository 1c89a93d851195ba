"""Contract of every journal's calls under a key: one at a time, known for a time, their answers gone with a user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.accounts import COUNT_EVERY
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, MemoryType, Scope
from semmem.ports.accounts import CallAnswer, KnownCall
from tests.support.empty_journal import empty_journal
from tests.support.journal_samples import Place

TOLD = CallAnswer(201, b'{"content":"User likes tea"}', '{"success":true}')


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def other(journal: SqlJournal, place: Place) -> AsyncIterator[SqlJournal]:
    """Another replica."""
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def begun(
    journal: SqlJournal, key: str = "k", request: str = "r", *, now: float = 100.0, calls_max: int = 1000
) -> KnownCall | None:
    return await journal.begin_call(key, request, now=now, lease_s=50.0, keep_s=1000.0, calls_max=calls_max)


async def lives(*replicas: SqlJournal) -> None:
    for each in replicas:
        await each.show_life(now=100.0, dead_before=0.0)


async def test_a_call_is_known_to_every_replica_with_its_answer(journal: SqlJournal, other: SqlJournal) -> None:
    await lives(journal, other)
    assert await begun(journal) is None
    assert await begun(other) == KnownCall("r")
    await journal.end_call("k", TOLD, ["ada"])
    assert await begun(other) == KnownCall("r", TOLD)
    assert await begun(other, "another") is None


async def test_of_many_at_once_one_may_go_on(journal: SqlJournal, other: SqlJournal) -> None:
    await lives(journal, other)
    found = await asyncio.gather(*(begun(each) for each in (journal, other) * 10))
    assert found.count(None) == 1


async def test_a_call_in_which_nothing_was_done_may_be_made_again(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.drop_call("k")
    assert await begun(journal) is None


async def test_a_call_is_known_for_its_time(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.end_call("k", TOLD, ["ada"])
    assert await begun(journal, now=1099.0) == KnownCall("r", TOLD)
    assert await begun(journal, now=1101.0) is None


async def test_a_call_of_a_dead_replica_is_given_to_whoever_asks_the_same(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await lives(journal, other)
    await begun(journal)
    assert await begun(other) == KnownCall("r")
    await journal.leave()
    assert await begun(other, request="another") == KnownCall("r")
    assert await begun(other) is None
    assert await begun(other) == KnownCall("r")  # its own now
    await journal.end_call("k", TOLD, ["ada"])  # the dead one was only slow: its word does not count any more
    assert await begun(other) == KnownCall("r")


async def test_a_call_that_takes_longer_than_any_may_is_given_away(journal: SqlJournal) -> None:
    await begun(journal)
    assert await begun(journal, now=149.0) == KnownCall("r")
    assert await begun(journal, now=151.0) is None


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(Scope("ada"), 200.0),
        Forgetting(Scope("ada", project="p"), 200.0),
        Forgetting(Scope("ada"), 200.0, types=(MemoryType.SEMANTIC,)),
        Forgetting(Scope("ada"), 200.0, memory_id="mem_1"),
    ],
)
async def test_answers_of_a_user_go_with_any_erasure_and_the_call_stays_done(
    journal: SqlJournal, other: SqlJournal, what: Forgetting
) -> None:
    await lives(journal, other)
    for key, user in (("k", "ada"), ("bob's", "bob")):
        await begun(journal, key)
        await journal.end_call(key, TOLD, [user])
    await begun(journal, "under way")
    await other.begin_erasure(what, now=200.0)
    await journal.end_call("under way", TOLD, ["ada"])
    gone = KnownCall("r", CallAnswer(201, None, TOLD.counts))
    assert await begun(journal) == gone
    assert await begun(other, "under way") == gone
    assert await begun(other, "bob's") == KnownCall("r", TOLD)


async def test_nothing_of_an_erased_answer_is_in_the_file(tmp_path: Path) -> None:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    await begun(journal)
    await journal.end_call("k", TOLD, ["ada-of-the-calls"])
    hold, _ = await journal.begin_erasure(what := Forgetting(Scope("ada-of-the-calls"), 200.0), now=200.0)
    await journal.finish_erasure(what, hold)
    await journal.purge()
    kept = await asyncio.to_thread(_all_bytes, tmp_path)
    await journal.close()
    assert (b"likes tea" in kept, b"ada-of-the-calls" in kept) == (False, False)


async def test_of_too_many_the_oldest_go(journal: SqlJournal) -> None:
    for number in range(COUNT_EVERY):
        await begun(journal, f"k{number:03}", now=100.0 + number / 100, calls_max=10)
    assert await begun(journal, "k000") is None
    assert await begun(journal, f"k{COUNT_EVERY - 1:03}") == KnownCall("r")


async def test_all_can_be_forgotten(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.end_call("k", TOLD, ["ada"])
    await journal.forget_calls()
    assert await begun(journal) is None


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())
