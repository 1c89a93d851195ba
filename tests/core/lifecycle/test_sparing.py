"""What is erased takes along neither what its memories said elsewhere before, nor what they had replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql import marks
from semmem.backends.sql.journal import SqlJournal
from semmem.lifecycle.erasure import ErasurePending
from semmem.lifecycle.writes import Writes
from semmem.memory import (
    CONTRADICTED,
    MERGED,
    PROVISIONAL,
    QUARANTINED,
    REPEATED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    Forgetting,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Source,
    Turn,
    TurnEnding,
)
from semmem.ports.errors import EmbedderError, JournalUnavailable, StoreUnavailable
from semmem.ports.recording import TurnClosed
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder, bag_of_words
from tests.support.journal_samples import Place

ADA = Scope("ada")
S1, S2, S3 = (Scope("ada", session=name) for name in ("s-1", "s-2", "s-3"))
BOSTON, SEATTLE, GHENT = (f"User lives in {city}" for city in ("Boston", "Seattle", "Ghent"))


class Embedder(HashEmbedder):
    """May be down; ``then`` happens before a vector is made."""

    is_down = False
    then: Callable[[], Awaitable[None]] | None = None

    async def embed(self, text: str, *, within_s: float | None = None) -> Any:
        if self.then is not None:
            await self.then()
        if self.is_down:
            raise EmbedderError("down")
        return await super().embed(text)


class Store(InProcessStore):
    """May be down for those who remove."""

    keeps = False

    async def forget_scope(self, scope: Scope, **narrow: Any) -> int:
        if self.keeps:
            raise StoreUnavailable("down")
        return await super().forget_scope(scope, **narrow)


class Journal(SqlJournal):
    """May be locked for those who begin to erase, or go on to it; ``then`` happens before somebody has a hold."""

    is_locked_from: str = ""
    then: Callable[[], Awaitable[None]] | None = None

    async def hold(self, *args: Any, **named: Any) -> str | None:
        if self.then is not None:
            await self.then()
        return await super().hold(*args, **named)

    async def begin_erasure(self, *args: Any, **named: Any) -> Any:
        if self.is_locked_from == "begin":
            raise JournalUnavailable("locked")
        return await super().begin_erasure(*args, **named)

    async def withhold_answers(self, *args: Any, **named: Any) -> None:
        if self.is_locked_from == "removal":
            raise JournalUnavailable("locked")
        await super().withhold_answers(*args, **named)


class World:
    """Ada is told of by memories and their versions, as learning writes them; the clock moves on with each."""

    def __init__(self, journal: Journal, store: Store) -> None:
        self.journal, self.store = journal, store
        self.now = 1000.0
        self.embedder = Embedder()
        self.erasure = self.process()

    def process(self) -> Any:
        """One more that erases, on the same store and journal."""
        erasing = Erasing(self.store, self.journal, clock=lambda: self.now, embedder=self.embedder, wait_s=0.2)
        return erasing.erasure

    async def say(self, scope: Scope, content: str, id: str = "m", **fields: Any) -> Memory:
        """A new memory, or the next version of that one."""
        self.now += 10.0
        old = await self.store.get(ADA, id)
        new = Memory(
            id=id,
            version=1 if old is None else old.version + 1,
            type=MemoryType.SEMANTIC,
            content=content,
            user="ada",
            project=scope.project,
            agent=scope.agent,
            session=scope.session,
            source=Source("user", scope.session or "", f"t-{self.now}", time=self.now),
            created_at=self.now if old is None else old.created_at,
            updated_at=self.now,
            embedding=bag_of_words(content),
        )
        return await self.write(old, replace(new, **fields))

    async def write(self, old: Memory | None, new: Memory) -> Memory:
        writes = Writes(self.store, self.journal, "")
        assert await (writes.put(new) if old is None else writes.replace(old, new))
        return new

    async def retire(self, id: str, by: str, why: str = CONTRADICTED) -> None:
        old = await self.store.get(ADA, id)
        assert old is not None
        metadata = {**old.metadata, SUPERSEDED_BY: by, SUPERSEDED_WHY: why}
        status = MemoryStatus.SUPERSEDED
        new = replace(old, version=old.version + 1, status=status, updated_at=self.now, metadata=metadata)
        await self.write(old, new)

    async def forget(self, scope: Scope, *types: MemoryType) -> None:
        self.now += 10.0
        await self.erasure.forget_scope(scope, types)

    async def memories(self) -> list[Memory]:
        found: list[Memory] = await self.store.list(ADA, limit=1000)
        return found

    async def known(self) -> set[str]:
        """What is retrieved; each only once."""
        active = [memory.content for memory in await self.memories() if memory.status is MemoryStatus.ACTIVE]
        assert len(set(active)) == len(active)
        return set(active)

    async def past(self) -> set[str]:
        """What is history: memories that are not retrieved, and versions."""
        memories = await self.memories()
        versions = [old for memory in memories for old in await self.journal.versions(ADA, memory.id)]
        superseded = [memory for memory in memories if memory.status is not MemoryStatus.ACTIVE]
        return {memory.content for memory in [*versions, *superseded]}


@pytest.fixture
async def world(place: Place) -> AsyncIterator[World]:
    journal, store = Journal(place), Store()
    await journal.open()
    await store.open()
    yield World(journal, store)
    await journal.close()


# --- what was said elsewhere before ----------------------------------------------------------------------------------


async def test_what_a_memory_said_in_another_session_before_stays_as_a_memory_of_its_own(world: World) -> None:
    first = await world.say(S1, BOSTON, importance=0.7)
    await world.say(S2, SEATTLE, importance=0.9)
    await world.forget(S2)
    [left] = await world.memories()
    assert left.id != first.id
    assert replace(left, id=first.id) == first
    assert left.embedding is not None
    assert await world.journal.versions(ADA, first.id) == []


async def test_what_it_had_said_before_that_comes_along_as_history(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({BOSTON}, {GHENT})


async def test_of_two_sessions_that_go_one_after_the_other_nothing_is_left(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    await world.forget(S2)
    await world.forget(S1)
    assert (await world.known(), await world.past()) == ({GHENT}, set())


async def test_what_was_spared_once_is_spared_again(world: World) -> None:
    await world.say(S1, BOSTON)
    for _ in range(3):
        [memory] = await world.memories()
        await world.say(S2, SEATTLE, memory.id)
        await world.forget(S2)
        assert (await world.known(), await world.past()) == ({BOSTON}, set())


async def test_a_provisional_version_is_settled_with_that(world: World) -> None:
    await world.say(S1, BOSTON, metadata={PROVISIONAL: True})
    await world.say(S2, SEATTLE)
    await world.forget(S2)
    [left] = await world.memories()
    assert not left.is_provisional


async def test_what_was_quarantined_stays_so(world: World) -> None:
    await world.say(S1, BOSTON, status=MemoryStatus.QUARANTINED, metadata={QUARANTINED: "instruction"})
    await world.say(S2, SEATTLE)
    await world.forget(S2)
    [left] = await world.memories()
    assert left.status is MemoryStatus.QUARANTINED


async def test_what_was_taken_back_does_not_come_back(world: World) -> None:
    """The memory said again what it had said before."""
    first = await world.say(S2, BOSTON)
    second = await world.say(S1, SEATTLE)
    await world.write(second, replace(first, version=3))
    await world.forget(S2)
    assert await world.memories() == []


async def test_nor_does_what_was_said_in_a_turn_that_was_refused(world: World) -> None:
    await world.say(S3, GHENT)
    refused = await world.say(S1, BOSTON)
    turn = Turn(refused.source.turn, S1, 1, "I live in Boston", refused.said_at)
    await world.journal.record([turn], [TurnClosed(turn.id, TurnEnding.REFUSED, world.now)])
    await world.say(S2, SEATTLE)
    await world.forget(S2)
    assert await world.known() == {GHENT}


async def test_whole_users_and_single_memories_take_all_that_was_said(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    await world.erasure.forget_memory(ADA, "m")
    assert await world.memories() == []
    await world.say(S1, BOSTON, "n")
    await world.say(S2, SEATTLE, "n")
    await world.forget(ADA)
    assert await world.memories() == []


async def test_a_type_that_goes_from_a_session_leaves_what_another_one_said(world: World) -> None:
    first = await world.say(S1, BOSTON)
    last = await world.say(S2, SEATTLE)
    await world.journal.record([Turn("waits", S3, 1, "I live in Boston, and I live in Seattle", world.now)], [])
    await world.forget(S2, MemoryType.SEMANTIC)
    [left] = await world.memories()
    assert left.content == BOSTON
    marked = {mark.turn for mark in await world.journal.marks()}  # of these nothing is left in a copy of earlier
    assert marked & {marks.digest(each.source.turn) for each in (first, last)} == {marks.digest(last.source.turn)}
    [waiting] = await world.journal.unlearnt("ada", until=world.now, limit=10)
    assert waiting.user_text == "I live in Boston"
    await world.forget(ADA, MemoryType.SEMANTIC)
    assert await world.memories() == []


async def test_what_was_of_another_type_goes_with_its_type(world: World) -> None:
    """It is the same memory, in other words perhaps."""
    await world.say(S1, BOSTON, type=MemoryType.EPISODIC)
    await world.say(S1, SEATTLE)
    await world.forget(S1, MemoryType.SEMANTIC)
    assert await world.memories() == []


async def test_what_was_said_until_then_goes_with_the_session_though_it_was_said_again(world: World) -> None:
    first = await world.say(S1, BOSTON)
    second = await world.say(S2, SEATTLE)
    await world.erasure.forget_scope(S2, until=first.said_at)
    assert await world.known() == {SEATTLE}
    await world.erasure.forget_scope(S2, until=second.said_at)
    assert await world.known() == {BOSTON}


# --- what had been replaced ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", [CONTRADICTED, REPEATED, MERGED])
async def test_what_a_memory_had_replaced_is_back_when_that_goes(world: World, why: str) -> None:
    old = await world.say(S1, BOSTON, "old")
    await world.say(S2, SEATTLE, "new")
    await world.retire("old", "new", why)
    await world.forget(S2)
    [back] = await world.memories()
    assert (back.content, back.status, back.metadata) == (BOSTON, MemoryStatus.ACTIVE, old.metadata)
    assert back.embedding is not None
    assert [each.status for each in await world.journal.versions(ADA, "old")] == ["active", "superseded"]


async def test_a_memory_that_is_deleted_by_its_id_leaves_what_it_had_replaced_as_history(world: World) -> None:
    await world.say(S1, BOSTON, "old")
    await world.say(S2, SEATTLE, "new")
    await world.retire("old", "new")
    await world.erasure.forget_memory(S2, "new")
    assert (await world.known(), await world.past()) == (set(), {BOSTON})


async def test_of_a_chain_only_what_the_last_one_had_replaced_is_back(world: World) -> None:
    for scope, content, id in ((S1, BOSTON, "a"), (S3, GHENT, "b"), (S2, SEATTLE, "c")):
        await world.say(scope, content, id)
    await world.retire("a", "b")
    await world.retire("b", "c")
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({GHENT}, {BOSTON, GHENT})
    await world.forget(S3)
    assert await world.known() == {BOSTON}


async def test_what_goes_out_of_the_middle_of_a_chain_leaves_its_place_to_what_replaced_it(world: World) -> None:
    for scope, content, id in ((S1, BOSTON, "a"), (S3, GHENT, "b"), (S2, SEATTLE, "c")):
        await world.say(scope, content, id)
    await world.retire("a", "b", REPEATED)
    await world.retire("b", "c")
    await world.forget(S3)
    assert (await world.known(), await world.past()) == ({SEATTLE}, {BOSTON})
    old = await world.store.get(ADA, "a")
    assert old is not None
    assert (old.metadata[SUPERSEDED_BY], old.metadata[SUPERSEDED_WHY]) == ("c", CONTRADICTED)
    await world.forget(S2)
    assert await world.known() == {BOSTON}


async def test_what_stays_is_replaced_by_what_is_left_of_a_memory(world: World) -> None:
    """What said so before had replaced it; what it was told since goes."""
    await world.say(S3, GHENT, "old")
    await world.say(S1, BOSTON, "new")
    await world.retire("old", "new")
    await world.say(S2, SEATTLE, "new")
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({BOSTON}, {GHENT})
    await world.forget(S1)
    assert await world.known() == {GHENT}


async def test_what_an_update_had_replaced_is_back_beside_what_was_updated(world: World) -> None:
    await world.say(S3, GHENT, "other")
    await world.say(S1, BOSTON, "new")
    await world.say(S2, SEATTLE, "new")
    await world.retire("other", "new")
    await world.say(S2, SEATTLE, "new")  # the version that replaced the other one is gone when that is looked for
    await world.forget(S2)
    assert await world.known() == {BOSTON, GHENT}


async def test_what_is_left_of_a_replaced_memory_stays_replaced(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    await world.say(S3, GHENT, "new")
    await world.retire("m", "new", REPEATED)
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({GHENT}, {BOSTON})
    await world.forget(S3)
    assert await world.known() == {BOSTON}


async def test_what_is_said_already_is_not_back_twice(world: World) -> None:
    await world.say(S1, BOSTON, "old")
    await world.say(S2, SEATTLE, "new")
    await world.retire("old", "new")
    await world.say(S3, BOSTON.upper(), "again")
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({BOSTON.upper()}, {BOSTON})
    await world.forget(S3)
    assert await world.known() == {BOSTON}


async def test_a_type_that_goes_brings_back_what_was_otherwise_and_not_what_was_the_same(world: World) -> None:
    await world.say(S1, BOSTON, "same", type=MemoryType.EPISODIC)
    await world.say(S1, GHENT, "other", type=MemoryType.EPISODIC)
    await world.say(S2, BOSTON, "new")
    await world.retire("same", "new", REPEATED)
    await world.retire("other", "new")
    await world.forget(ADA, MemoryType.SEMANTIC)
    assert await world.known() == {GHENT}


async def test_memories_that_replaced_each_other_do_not_hold_each_other(world: World) -> None:
    await world.say(S1, BOSTON, "old")
    await world.say(S2, SEATTLE, "one")
    await world.say(S2, GHENT, "other")
    await world.retire("old", "one")
    await world.retire("one", "other")
    await world.retire("other", "one")
    await world.forget(S2)
    assert await world.known() == {BOSTON}


# --- tries that break off, and others at work ------------------------------------------------------------------------


@pytest.mark.parametrize("is_down", ["journal", "store"])
async def test_what_was_spared_before_a_try_broke_off_is_not_written_again(world: World, is_down: str) -> None:
    await world.say(S1, BOSTON)
    await world.say(S3, GHENT, "old")
    await world.say(S2, SEATTLE)
    await world.retire("old", "m")
    world.store.keeps, world.journal.is_locked_from = is_down == "store", "removal" if is_down == "journal" else ""
    with pytest.raises(ErasurePending):
        await world.forget(S2)
    spared = next(memory for memory in await world.memories() if memory.content == BOSTON)
    await world.say(S3, "User lives in Lyon", spared.id)
    world.store.keeps, world.journal.is_locked_from = False, ""
    world.embedder.is_down = True  # nothing is left to be embedded
    assert await world.erasure.finish_pending() == 0
    assert (await world.known(), await world.past()) == ({"User lives in Lyon", GHENT}, {BOSTON, GHENT})


async def test_another_process_finishes_what_was_begun(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    world.store.keeps = True
    with pytest.raises(ErasurePending):
        await world.forget(S2)
    world.store.keeps = False
    other = world.process()
    await other.load()
    assert await other.finish_pending() == 0
    assert (await world.known(), await world.past()) == ({BOSTON}, set())


@pytest.mark.parametrize("by_id", [True, False])
async def test_what_was_spared_and_erased_since_does_not_come_back_with_the_next_try(world: World, by_id: bool) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    world.journal.is_locked_from = "removal"
    with pytest.raises(ErasurePending):
        await world.forget(S2)
    spared = next(memory for memory in await world.memories() if memory.content == BOSTON)
    world.journal.is_locked_from = ""
    if by_id:
        await world.erasure.forget_memory(ADA, spared.id)
    else:
        await world.forget(S1)
    assert await world.erasure.finish_pending() == 0
    assert (await world.known(), await world.past()) == (set() if by_id else {GHENT}, set())


async def test_what_another_one_begins_to_erase_meanwhile_costs_nothing_that_was_said_before(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)

    async def erase() -> None:
        world.embedder.then = None
        await world.journal.begin_erasure(Forgetting(S1, world.now), now=world.now)

    world.embedder.then = erase
    with pytest.raises(ErasurePending):
        await world.forget(S2)
    assert await world.erasure.finish_pending() == 0
    assert (await world.known(), await world.past()) == ({GHENT}, set())


async def test_nor_is_what_had_been_replaced_back_where_another_one_erases_it(world: World) -> None:
    await world.say(S1, BOSTON, "old")
    await world.say(S2, SEATTLE, "new")
    await world.retire("old", "new")
    await world.journal.begin_erasure(Forgetting(S1, world.now), now=world.now)
    await world.forget(S2)
    assert await world.known() == set()


async def test_sessions_that_are_deleted_at_the_same_time_leave_what_neither_is(world: World) -> None:
    for id in ("a", "b", "c"):
        await world.say(S3, f"{id} {GHENT}", id)
        await world.say(S1, f"{id} {BOSTON}", id)
        await world.say(S2, f"{id} {SEATTLE}", id)
    world.now += 10.0
    other = world.process()
    deleted = (world.erasure.forget_scope(S2), other.forget_scope(S1))
    ended = await asyncio.gather(*deleted, return_exceptions=True)
    assert all(not isinstance(each, Exception) or isinstance(each, ErasurePending) for each in ended)
    for process in (other, world.erasure, other):
        await process.finish_pending()
    assert other.pending + world.erasure.pending == 0
    assert (await world.known(), await world.past()) == ({f"{id} {GHENT}" for id in "abc"}, set())


async def test_what_is_hidden_and_not_yet_marked_is_not_spared(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    world.journal.is_locked_from = "begin"
    with pytest.raises(ErasurePending):
        await world.forget(S1)
    world.journal.is_locked_from = ""
    await world.forget(S2)
    assert await world.known() == {GHENT}
    assert await world.erasure.finish_pending() == 0
    assert (await world.known(), await world.past()) == ({GHENT}, set())


async def test_two_sessions_that_go_together_leave_nothing_of_either(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    world.store.keeps = True
    for scope in (S1, S2):
        with pytest.raises(ErasurePending):
            await world.forget(scope)
    world.store.keeps = False
    assert await world.erasure.finish_pending() == 0
    assert (await world.known(), await world.past()) == ({GHENT}, set())


async def test_what_another_process_has_begun_to_erase_is_not_spared(world: World) -> None:
    await world.say(S3, GHENT)
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    await world.journal.begin_erasure(Forgetting(S1, world.now), now=world.now)
    await world.forget(S2)
    assert (await world.known(), await world.past()) == ({GHENT}, set())


async def test_whoever_is_at_work_is_waited_for_and_nothing_is_taken_before(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    hold = await world.journal.hold("ada", now=world.now, lease_s=60.0)
    assert hold is not None
    with pytest.raises(ErasurePending):
        await world.forget(S2, MemoryType.SEMANTIC)
    assert [memory.content for memory in await world.memories()] == [SEATTLE]
    await world.journal.release(hold)
    assert await world.erasure.finish_pending() == 0
    assert await world.known() == {BOSTON}
    assert await world.journal.hold("ada", now=world.now, lease_s=60.0) is not None  # its own is over


async def test_what_others_did_until_then_is_seen(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)

    async def update() -> None:
        world.journal.then = None
        await world.say(S3, GHENT)

    world.journal.then = update
    await world.forget(S2, MemoryType.SEMANTIC)
    assert (await world.known(), await world.past()) == ({GHENT}, {BOSTON, SEATTLE})


async def test_what_goes_whole_waits_for_nobody(world: World) -> None:
    await world.say(S2, SEATTLE)
    assert await world.journal.hold("ada", now=world.now, lease_s=60.0) is not None
    await world.forget(S2, MemoryType.SEMANTIC)
    assert await world.memories() == []


async def test_without_vectors_the_erased_goes_and_the_spared_is_kept_until_there_are(world: World) -> None:
    await world.say(S1, BOSTON)
    await world.say(S2, SEATTLE)
    world.embedder.is_down = True
    with pytest.raises(ErasurePending) as pending:
        await world.forget(S2)
    assert pending.value.receipt.memories == 1
    assert await world.known() == {BOSTON}
    assert await world.erasure.finish_pending() == 1
    world.embedder.is_down = False
    other = world.process()  # whichever tries next
    await other.load()
    assert await other.finish_pending() == 0
    [left] = await world.memories()
    assert left.content == BOSTON
    assert left.embedding is not None
