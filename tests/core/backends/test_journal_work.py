"""What the journal tells an operator: what waits, what is learnt from, how that ended, who shares it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import astuple

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope
from semmem.ports.housekeeping import Work
from semmem.ports.learning import BatchRules
from tests.support.journal_samples import ADA, Place, answered, turn

RULES = BatchRules(size=2, idle_s=50.0, answer_wait_s=20.0, lease_s=10.0)
BOB = Scope("bob", session="s9")


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def say(journal: SqlJournal, scope: Scope, *names: str, at: float) -> None:
    opened = [turn(name, scope, opened_at=at + later) for later, name in enumerate(names)]
    await journal.record(opened, [answered(each.id, at=each.opened_at) for each in opened])


async def told(journal: SqlJournal, *, after: float = 0.0, limit: int = 20) -> Work:
    return await journal.work(ended_after=after, limit=limit)


async def test_where_nothing_was_said_there_is_nothing(journal: SqlJournal) -> None:
    assert astuple(await told(journal)) == (0, None, [], 0, [], {})


async def test_what_waits_what_is_learnt_from_and_how_it_ended(journal: SqlJournal) -> None:
    await say(journal, ADA, "t0", "t1", at=100.0)
    await say(journal, BOB, "t2", at=105.0)
    assert (await told(journal)).waiting == 3
    assert (await told(journal)).oldest_at == 100.0
    batch = await journal.claim(RULES, now=110.0)
    assert batch is not None
    work = await told(journal)
    assert (work.waiting, work.oldest_at, work.live_number) == (1, 105.0, 1)
    assert [astuple(live) for live in work.live] == [(batch.id, "size", 1, 120.0, False)]
    await journal.postpone(batch.id, until=130.0)
    assert [(live.until, live.rests) for live in (await told(journal)).live] == [(130.0, True)]
    again = await journal.claim(RULES, now=140.0)
    assert again is not None
    await journal.finish(batch.id, "done", now=141.5)
    work = await told(journal)
    assert (work.live, work.live_number, work.words) == ([], 0, {"done": 1})
    assert [astuple(ended) for ended in work.ended] == [(batch.id, "size", 2, "done", 141.5, 2, 100.0)]
    assert (await told(journal, after=141.5)).words == {}


async def test_the_last_ones_come_first_and_only_so_many(journal: SqlJournal) -> None:
    for number, word in enumerate(("done", "gave_up", "done")):
        await say(journal, ADA, f"a{number}", f"b{number}", at=100.0 + 10 * number)
        batch = await journal.claim(RULES, now=105.0 + 10 * number)
        assert batch is not None
        await journal.finish(batch.id, word, now=106.0 + 10 * number)
    work = await told(journal, limit=2)
    assert [(ended.word, ended.ended_at, ended.turns, ended.said_at) for ended in work.ended] == [
        ("done", 126.0, 2, 120.0),
        ("gave_up", 116.0, 2, 110.0),
    ]
    assert work.words == {"done": 2, "gave_up": 1}


async def test_a_hold_is_no_batch(journal: SqlJournal) -> None:
    assert await journal.hold("ada", now=100.0, lease_s=5.0) is not None
    assert (await told(journal)).live_number == 0
    assert await journal.claim(RULES, now=200.0) is None  # it ends as an empty one would
    assert astuple(await told(journal)) == (0, None, [], 0, [], {})


async def test_nobody_can_be_known_from_it(journal: SqlJournal) -> None:
    await say(journal, Scope("somebody", session="weekend"), "turn", "another", at=100.0)
    batch = await journal.claim(RULES, now=110.0)
    assert batch is not None
    for ended in (False, True):
        if ended:
            await journal.finish(batch.id, "done", now=111.0)
        work = str(await told(journal))
        assert not [hidden for hidden in ("somebody", "weekend", "another", "tea") if hidden in work]


async def test_who_shares_the_journal_and_since_when(place: Place) -> None:
    one, other = SqlJournal(place), SqlJournal(place)
    for journal in (one, other):
        await journal.open()
    assert await one.replicas() == []
    await one.show_life(now=100.0, dead_before=0.0)
    await other.show_life(now=101.0, dead_before=0.0)
    seen = {replica.id: replica for replica in await one.replicas()}
    assert [seen[each.replica_id].seen_at for each in (one, other)] == [100.0, 101.0]
    assert [seen[each.replica_id].is_own for each in (one, other)] == [True, False]
    began = [seen[each.replica_id].since or 0.0 for each in (one, other)]
    assert 1_700_000_000 < began[0] <= began[1]
    former = one.replica_id = "replica_0b6f4c5e8a3d4f1e9c2b7a6d5e4f3a2b"
    await one.show_life(now=102.0, dead_before=101.5)
    assert [(replica.id, replica.since) for replica in await one.replicas()] == [(former, None)]
    for journal in (one, other):
        await journal.close()
