"""Contract of every journal's votes: counted, numbered, bounded, and gone with their memory and their user."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.memory_records import VOTES_MAX
from semmem.memory import Forgetting, Scope
from tests.support.journal_samples import Place


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def vote(
    journal: SqlJournal,
    *memories: str,
    user: str = "ada",
    helpful: bool = False,
    now: float = 100.0,
    said_at: float = 50.0,
    limit: int = 100,
) -> None:
    await journal.add_votes(user, dict.fromkeys(memories, said_at), helpful=helpful, now=now, entries_max=limit)


async def counted(journal: SqlJournal) -> dict[str, tuple[int, int]]:
    return {row.memory_id: (row.up, row.down) for row in await journal.votes_since(0)}


async def test_votes_are_counted_and_each_has_a_greater_number(journal: SqlJournal) -> None:
    await vote(journal, "mem_1", "mem_2")
    await vote(journal, "mem_1", now=101.0)
    await vote(journal, "mem_1", helpful=True, now=102.0)
    second, first = await journal.votes_since(0)
    assert (second.memory_id, second.up, second.down, second.last_at) == ("mem_2", 0, 1, 100.0)
    assert (first.user, first.up, first.down, first.last_at) == ("ada", 1, 2, 102.0)
    assert await journal.votes_since(second.number) == [first]
    assert await journal.votes_since(first.number) == []


async def test_a_later_vote_has_a_greater_number_also_where_the_one_before_is_gone(journal: SqlJournal) -> None:
    await vote(journal, "mem_1")
    (row,) = await journal.votes_since(0)
    await journal.forget_memories(Scope("ada"), ["mem_1"])
    await vote(journal, "mem_2", now=100.5)
    assert [each.memory_id for each in await journal.votes_since(row.number)] == ["mem_2"]


async def test_what_was_voted_before_the_memory_was_said_again_counts_no_more(journal: SqlJournal) -> None:
    await vote(journal, "mem_1")
    await vote(journal, "mem_1", now=200.0, said_at=150.0, helpful=True)
    assert await counted(journal) == {"mem_1": (1, 0)}


async def test_beyond_a_number_of_votes_an_opinion_may_still_change(journal: SqlJournal) -> None:
    for place in range(VOTES_MAX + 1):
        await vote(journal, "mem_1", now=100.0 + place)
    assert await counted(journal) == {"mem_1": (0, (VOTES_MAX + 1) // 2)}


async def test_only_so_many_memories_have_votes_those_voted_on_last(journal: SqlJournal) -> None:
    for place in range(4):
        await vote(journal, f"mem_{place}", now=100.0 + place, limit=2)
    assert set(await counted(journal)) == {"mem_2", "mem_3"}


async def test_votes_go_with_their_memory(journal: SqlJournal) -> None:
    await vote(journal, "mem_1", "mem_2")
    assert await journal.recorded_ids("ada") == {"mem_1", "mem_2"}
    await journal.forget_memories(Scope("ada"), ["mem_1"])
    assert set(await counted(journal)) == {"mem_2"}


async def test_votes_go_with_their_user_and_none_of_before_is_kept_afterwards(journal: SqlJournal) -> None:
    await vote(journal, "mem_1")
    await vote(journal, "mem_9", user="bea")
    what = Forgetting(Scope("ada"), at=200.0)
    hold, _ = await journal.begin_erasure(what, now=200.0)
    assert set(await counted(journal)) == {"mem_9"}
    await vote(journal, "mem_1", now=199.0)
    assert set(await counted(journal)) == {"mem_9"}
    await journal.finish_erasure(what, hold)
    await vote(journal, "mem_2", now=201.0)
    assert set(await counted(journal)) == {"mem_2", "mem_9"}
