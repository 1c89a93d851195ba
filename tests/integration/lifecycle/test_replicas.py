"""Replicas on one PostgreSQL journal and one store: what one erases, no other shows, takes or learns again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.lifecycle.erasure import ErasurePending
from semmem.memory import Memory, MemoryType, Scope, Source
from semmem.ports.errors import Erased, StoreError
from tests.support.erasing import Erasing
from tests.support.journal_samples import answered, learnt, turn
from tests.support.postgres import TestServer

ADA = Scope("ada")
QUICK = {"lost_s": 3.0, "obey_s": 0.2}
"""A busy machine may be late with a sign of life, by a second and more."""


@dataclass
class Replica:
    journal: SqlJournal
    parts: Erasing

    async def index(self) -> set[str]:
        found = await self.parts.store.index("ada", wait_s=5.0)
        assert found is not None
        return {memory.id for memory in found.memories}

    async def stop(self) -> None:
        """As kill -9 does: it says nothing any more."""
        await self.parts.tasks.cancel()


class Fleet:
    def __init__(self, url: str) -> None:
        self._url = url
        self.kept = InProcessStore()
        self._replicas: list[Replica] = []

    async def replica(self, **limits: Any) -> Replica:
        journal = SqlJournal(self._url)
        await journal.open()
        made = Replica(journal, Erasing(self.kept, journal, clock=time.time, **limits))
        await made.parts.replicas.join()
        made.parts.replicas.begin(made.parts.tasks)
        made.parts.tasks.spawn("writer", made.parts.writer.run())
        self._replicas.append(made)
        return made

    async def close(self) -> None:
        for each in self._replicas:
            await each.parts.tasks.cancel()
            await each.journal.close()


@pytest.fixture
async def fleet(postgres: TestServer, database: str) -> AsyncIterator[Fleet]:
    postgres.empty(database)
    made = Fleet(postgres.url(database))
    await made.kept.open()
    yield made
    await made.close()


def memory(name: str = "m", said_at: float | None = None) -> Memory:
    at = time.time() if said_at is None else said_at
    return Memory(name, 1, MemoryType.SEMANTIC, "User likes tea", "ada", source=Source(time=at), created_at=at)


async def test_what_one_replica_erased_no_other_shows_from_memory_when_the_answer_comes(fleet: Fleet) -> None:
    one, other = await fleet.replica(), await fleet.replica()
    await one.parts.store.put(ADA, memory())
    assert await other.index() == {"m"}
    receipt = await one.parts.erasure.forget_scope(ADA)
    assert receipt.memories == 1
    assert await other.index() == set()


async def test_one_memory_that_is_erased_goes_everywhere_and_the_others_stay(fleet: Fleet) -> None:
    one, other = await fleet.replica(), await fleet.replica()
    for name in ("m", "n"):
        await one.parts.store.put(ADA, memory(name))
    assert await other.index() == {"m", "n"}
    assert await one.parts.erasure.forget_memory(ADA, "m") is not None
    assert await other.index() == {"n"}


async def test_what_another_replica_writes_late_is_refused(fleet: Fleet) -> None:
    one, other = await fleet.replica(), await fleet.replica()
    late = memory()
    await one.parts.erasure.forget_scope(ADA)
    with pytest.raises(Erased):
        await other.parts.store.put(ADA, late)
    await other.parts.store.put(ADA, memory("new", said_at=other.parts.after("ada", time.time())))
    assert await one.index() == {"new"}


async def test_halves_that_wait_in_another_replica_are_dropped_with_their_answers(fleet: Fleet) -> None:
    one, other = await fleet.replica(), await fleet.replica()
    said = turn("t", Scope("ada", session="s"), opened_at=time.time())
    other.parts.writer.offer(said)
    await one.parts.erasure.forget_scope(ADA)
    one.parts.writer.offer(answered("t"))
    assert await one.parts.writer.drained(5.0)
    assert await other.parts.writer.drained(5.0)
    assert await learnt(one.journal) == {}
    assert (await one.journal.counts())["lonely"] == 0


async def test_a_replica_that_hangs_makes_an_erasure_pending_until_it_is_counted_as_lost(fleet: Fleet) -> None:
    one, other = await fleet.replica(**QUICK), await fleet.replica(**QUICK)
    await one.parts.store.put(ADA, memory())
    await other.stop()
    with pytest.raises(ErasurePending) as pending:
        await one.parts.erasure.forget_scope(ADA)
    assert pending.value.remembered
    assert await one.index() == set()
    async with asyncio.timeout(20.0):
        while await one.parts.erasure.finish_pending():
            await asyncio.sleep(0.05)
    assert await fleet.kept.count(ADA) == 0


async def test_a_replica_that_falls_silent_is_noticed_once_and_no_longer_trusts_what_it_is_told(fleet: Fleet) -> None:
    one, other = await fleet.replica(lost_s=2.0), await fleet.replica(lost_s=2.0)
    before = [each.parts.replicas.is_counted for each in (one, other)]
    await other.stop()
    async with asyncio.timeout(20.0):
        while not one.parts.lost:
            await asyncio.sleep(0.02)
    after = [each.parts.replicas.is_counted for each in (one, other)]
    assert (one.parts.lost, before, after) == (1, [True, True], [True, False])


async def test_nobody_waits_for_a_replica_that_left(fleet: Fleet) -> None:
    one, other = await fleet.replica(obey_s=0.0), await fleet.replica(obey_s=0.0)
    await other.stop()
    await other.parts.replicas.leave()
    await one.parts.erasure.forget_scope(ADA)


async def test_a_replica_that_missed_the_news_hides_what_is_pending_all_the_same(fleet: Fleet) -> None:
    class Stuck(InProcessStore):
        async def forget_scope(self, *_arguments: object, **_named: object) -> int:
            raise StoreError("stuck")

    fleet.kept = Stuck()
    await fleet.kept.open()
    one = await fleet.replica()
    await one.parts.store.put(ADA, memory())
    with pytest.raises(ErasurePending):
        await one.parts.erasure.forget_scope(ADA)
    late = await fleet.replica()
    async with asyncio.timeout(20.0):
        while await late.index():
            late.parts.store.forget_user("ada")
            await asyncio.sleep(0.02)
