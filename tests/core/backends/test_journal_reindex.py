"""Contract of every journal: what processes that share a store know of its reindex."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.ports.reindexing import Reindex, ReindexState
from tests.support.journal_samples import Place

STORE, NOW = "memories", 1000.0
BEGUN = Reindex("memories", "memories_g2", "model/8", changed_at=NOW)
FURTHER = replace(BEGUN, position="ff00", users=9, users_done=4, memories_done=40, embedded=38)


async def opened(place: Place) -> SqlJournal:
    made = SqlJournal(place)
    await made.open()
    return made


@pytest.fixture
async def one(place: Place) -> AsyncIterator[SqlJournal]:
    made = await opened(place)
    yield made
    await made.close()


@pytest.fixture
async def other(one: SqlJournal, place: Place) -> AsyncIterator[SqlJournal]:
    """Another process."""
    made = await opened(place)
    yield made
    await made.close()


async def claimed(journal: SqlJournal, now: float = NOW) -> bool:
    return await journal.claim_reindex(STORE, now=now, lease_s=30.0)


async def noted(journal: SqlJournal, known: Reindex, now: float = NOW) -> bool:
    return await journal.note_reindex(STORE, known, now=now, lease_s=30.0)


async def test_what_was_noted_is_known_to_all_and_after_a_restart(one: SqlJournal, other: SqlJournal) -> None:
    assert await one.reindex(STORE) is None
    assert await one.begin_reindex(STORE, BEGUN) == BEGUN
    assert await claimed(one)
    assert await noted(one, FURTHER)
    assert await other.reindex(STORE) == FURTHER
    assert await other.begin_reindex(STORE, BEGUN) == FURTHER
    assert await other.reindex("another store") is None


async def test_one_does_it_until_its_claim_is_over(one: SqlJournal, other: SqlJournal) -> None:
    await one.begin_reindex(STORE, BEGUN)
    assert await claimed(one)
    assert await claimed(one)
    assert not await claimed(other)
    assert not await noted(other, FURTHER)
    assert await noted(one, FURTHER, now=NOW + 20)
    assert not await claimed(other, now=NOW + 40)
    assert await claimed(other, now=NOW + 50)
    assert not await noted(one, BEGUN, now=NOW + 50)
    assert await other.reindex(STORE) == FURTHER


async def test_what_was_known_of_another_target_is_known_no_more(one: SqlJournal, other: SqlJournal) -> None:
    await one.begin_reindex(STORE, BEGUN)
    assert await claimed(one)
    await noted(one, replace(FURTHER, state=ReindexState.KEPT))
    back = Reindex("memories_g2", "memories", "model/4")
    assert await other.begin_reindex(STORE, back) == back
    assert not await noted(one, FURTHER)
    assert await claimed(other)
    assert await one.reindex(STORE) == back


async def test_the_end(one: SqlJournal, other: SqlJournal) -> None:
    await one.begin_reindex(STORE, BEGUN)
    await other.end_reindex(STORE)
    await other.end_reindex(STORE)
    assert await one.reindex(STORE) is None
    assert not await claimed(one)


async def test_who_is_alive_and_does_not_write_to_the_new_collection(one: SqlJournal, other: SqlJournal) -> None:
    assert await one.not_writing("memories_g2") == 0
    await one.show_life(now=NOW, dead_before=0.0)
    await other.show_life(now=NOW, dead_before=0.0)
    assert await one.not_writing("memories_g2") == 1
    await other.writes_to("memories_g3")
    assert await one.not_writing("memories_g2") == 1
    await other.writes_to("memories_g2")
    assert await one.not_writing("memories_g2") == 0
    assert await other.not_writing("memories_g2") == 1
    await one.show_life(now=NOW + 99, dead_before=NOW + 50)
    assert await one.not_writing("memories_g9") == 0
