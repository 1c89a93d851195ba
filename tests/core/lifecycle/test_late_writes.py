"""What somebody was just about to write beside memories when they were erased does not stay behind."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semmem.extraction.candidate import Candidate, keyed_id
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.llm import session_key
from semmem.extraction.pipeline import Learning
from semmem.extraction.storing import Storing
from semmem.lifecycle.writes import Writes
from semmem.memory import Fact, Memory, MemoryType, Scope, Turn
from semmem.ports.learning import Batch, BatchRules
from tests.core.extraction.fakes import GivenFacts
from tests.core.lifecycle.erased_world import ALICE, ErasedWorld, erased_world
from tests.support.fakes import HashEmbedder
from tests.support.telling_judge import judge

TEA = "User likes tea"
AT_ONCE = BatchRules(size=1, answer_wait_s=0.0, idle_s=0.0, lease_s=60.0)


class Interrupted:
    """The journal, with ``meanwhile`` done just before the call ``name``, once."""

    def __init__(self, journal: Any, name: str, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        self._journal, self._name, self._meanwhile = journal, name, meanwhile
        self.interrupted = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._journal, name)
        if name != self._name:
            return call

        async def after(*args: Any, **named: Any) -> Any:
            if not self.interrupted:
                self.interrupted = 1
                await self._meanwhile()
            return await call(*args, **named)

        return after


async def stored(world: ErasedWorld, content: str = TEA) -> Memory:
    assert (await world.create(content)).status_code == 201
    [memory] = await world.raw.list(Scope("alice"))
    return memory


async def batch_of(world: ErasedWorld) -> Batch:
    """A batch under way, which nobody learns from but the test."""
    now = time.time()
    await world.journal.record([Turn("t", ALICE, 1, "I like tea", now)], [])
    batch = await world.journal.claim(AT_ONCE, now=now)
    assert batch is not None
    return batch


async def candidate(batch: Batch, content: str) -> Candidate:
    fact = Fact(MemoryType.SEMANTIC, content, "t")
    vector = await HashEmbedder().embed(content)
    return Candidate("mem_new", fact, batch.turns[0], vector, time.time(), batch=batch.id)


@pytest.mark.parametrize("what", ["", "/{id}"])
async def test_what_was_dropped_is_not_noted_at_a_memory_that_is_gone(tmp_path: Path, what: str) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory = await stored(world)
        batch = await batch_of(world)
        history = Interrupted(world.journal, "note_dropped", lambda: world.delete(what.format(id=memory.id)))
        dedup = Dedup(Comparing(world.store, judge=judge), history)
        await dedup.place(await candidate(batch, TEA))
        assert history.interrupted
        assert world.rows()["dropped"] == []
        assert await world.contents() == set()


@pytest.mark.parametrize("what", ["", "/{id}"])
async def test_a_version_of_a_memory_that_is_gone_is_not_kept(tmp_path: Path, what: str) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory = await stored(world)
        batch = await batch_of(world)
        history = Interrupted(world.journal, "keep_version", lambda: world.delete(what.format(id=memory.id)))
        writes = Writes(world.store, history, batch.id)
        assert not await writes.replace(memory, replace(memory, version=2, content="User likes milk"))
        assert history.interrupted
        assert world.rows()["versions"] == []
        assert await world.contents() == set()


async def test_a_summary_does_not_outlive_a_memory_that_goes_while_it_is_written(tmp_path: Path) -> None:
    """The erasure comes after the summary was found to be up to date, and before it is in the store."""
    async with erased_world(tmp_path, learning=False) as world:
        memory = replace(await stored(world), session="s")
        await world.raw.put(Scope("alice"), replace(memory, version=2))
        batch = await batch_of(world)
        journal = Interrupted(world.journal, "settle", lambda: world.delete(f"/{memory.id}"))
        key = session_key(batch.scope)
        summary = Fact(MemoryType.EPISODIC, "User said that tea is best.", "t", key=key)
        dedup = Dedup(Comparing(world.store, judge=judge), journal)
        learning = Learning(world.journal, Storing(HashEmbedder(), dedup), GivenFacts("given", lambda _batch: []))
        result = await learning.learn(replace(batch, facts=(summary,)))
        assert journal.interrupted
        assert (result.cause, result.stored) == ("", {})
        assert await world.raw.get(Scope("alice"), keyed_id("alice", key)) is None
