"""Deduplication: what is new, what replaces what, and in which order it is written."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Action, Candidate, created, expiry, keyed_id, memory_id
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.memory import CHANGES_STANDING, STANDING, TOPIC, Fact, Memory, MemoryStatus, MemoryType, Scope, Standing
from semmem.ports.errors import StoreUnavailable
from tests.core.extraction.crashes import Crash, Fuse
from tests.core.extraction.dedup_world import (
    ALICE,
    BOSTON,
    BUDGET,
    NEW_BUDGET,
    NOW,
    SEATTLE,
    candidate,
    contents,
    found,
)
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal


@pytest.fixture
def dedup(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store), journal)


def test_a_memory_id_is_the_same_for_every_try_and_another_for_every_fact() -> None:
    ids = [memory_id(batch, index) for batch in ("b-1", "b-2") for index in (0, 1, 11)]
    assert len(set(ids)) == 6
    assert all(re.fullmatch(r"mem_[a-z2-7]{26}", one) for one in ids)
    assert memory_id("b-1", 0) == ids[0]


@pytest.mark.parametrize(
    ("says", "ttl_s", "ends"),
    [(None, None, None), (None, 50.0, 1050.0), (1020.0, 50.0, 1020.0), (2000.0, 50.0, 1050.0)],
)
def test_a_memory_ends_with_what_it_says_or_with_the_time_it_is_kept(
    says: float | None, ttl_s: float | None, ends: float | None
) -> None:
    assert expiry(Fact(MemoryType.SEMANTIC, "User is away", "t", expires_at=says), NOW, ttl_s) == ends


async def test_a_memory_says_its_standing_and_topic_and_an_update_brings_new_ones(
    dedup: Dedup, store: InProcessStore
) -> None:
    first = await candidate(BUDGET)
    first = replace(first, fact=replace(first.fact, standing=Standing.PROFILE, topic="travel"))
    await dedup.put(first)
    assert (await store.list(Scope("alice")))[0].metadata == {STANDING: "profile", TOPIC: "travel"}
    then = await candidate(NEW_BUDGET, index=1)
    then = replace(then, fact=replace(then.fact, standing=Standing.MUST))
    assert await dedup.put(then) is Action.UPDATED
    [memory] = await store.list(Scope("alice"))
    assert memory.standing is Standing.MUST
    assert memory.metadata == {STANDING: "must", TOPIC: "travel", CHANGES_STANDING: True}


async def test_something_new_is_created_with_all_that_is_known_about_it(dedup: Dedup, store: InProcessStore) -> None:
    scope = Scope("alice", project="p", agent="a", session="s")
    new = await candidate(BUDGET, scope=scope, importance=0.7)
    assert await dedup.put(new) is Action.CREATED
    memory = await store.get(Scope("alice"), new.id)
    assert memory is not None
    assert (memory.version, memory.type, memory.content) == (1, MemoryType.SEMANTIC, BUDGET)
    assert (memory.user, memory.project, memory.agent, memory.session) == ("alice", "p", "a", "s")
    assert (memory.created_at, memory.updated_at, memory.expires_at, memory.importance) == (NOW, NOW, NOW + 100, 0.7)
    source = memory.source
    assert (source.role, source.session, source.turn, source.request_id) == ("user", "s", "t-0", "r-1")
    assert source.time == NOW - 5


@pytest.mark.parametrize("again", [BUDGET, BUDGET.upper() + ".", f"  {BUDGET.replace(' ', '  ')}!"])
async def test_the_same_words_again_are_no_new_version(dedup: Dedup, store: InProcessStore, again: str) -> None:
    first = await candidate(BUDGET)
    await dedup.put(first)
    assert await dedup.put(await candidate(again, index=1, now=NOW + 10)) is Action.UNCHANGED
    (memory,) = await store.list(Scope("alice"))
    assert (memory.version, memory.content, memory.updated_at) == (1, BUDGET, NOW)


async def test_a_new_value_of_the_same_statement_is_a_version_and_the_old_one_history(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    first = await candidate(BUDGET, importance=0.9)
    await dedup.put(first)
    later = replace(await candidate(NEW_BUDGET, index=1, now=NOW + 10), expires_at=None)
    assert await dedup.put(later) is Action.UPDATED
    (memory,) = await store.list(Scope("alice"))
    assert (memory.id, memory.version, memory.content) == (first.id, 2, NEW_BUDGET)
    assert (memory.created_at, memory.updated_at, memory.expires_at) == (NOW, NOW + 10, None)
    assert (memory.importance, memory.source.turn) == (0.9, "t-1")
    (hit,) = await store.search(Scope("alice"), later.vector, limit=5, now=NOW + 10)
    assert hit.cosine == pytest.approx(1.0)
    (old,) = await journal.versions(Scope("alice"), first.id)
    assert (old.version, old.content) == (1, BUDGET)


async def test_a_negation_of_the_same_words_wins_as_the_newest(dedup: Dedup, store: InProcessStore) -> None:
    yes = "User is allergic to peanuts and hazelnuts and walnuts and almonds and cashews and pistachios"
    no = yes.replace("is allergic", "is not allergic")
    await dedup.put(await candidate(yes))
    assert await dedup.put(await candidate(no, index=1)) is Action.UPDATED
    assert await contents(store) == [no]


async def test_the_old_version_is_in_history_before_the_store_is_touched(
    store: InProcessStore, journal: TracedJournal
) -> None:
    class Failing(InProcessStore):
        async def put(self, scope: Scope, *memories: Memory) -> None:
            if any(memory.version > 1 for memory in memories):
                raise StoreUnavailable("down")
            await super().put(scope, *memories)

    failing = Failing()
    await failing.open()
    dedup = Dedup(Comparing(failing), journal)
    first = await candidate(BUDGET)
    await dedup.put(first)
    with pytest.raises(StoreUnavailable):
        await dedup.put(await candidate(NEW_BUDGET, index=1))
    assert [old.content for old in await journal.versions(Scope("alice"), first.id)] == [BUDGET]
    assert await contents(failing) == [BUDGET]


async def test_the_threshold_decides_between_update_and_creation(store: InProcessStore, journal: TracedJournal) -> None:
    strict = Dedup(Comparing(store, update_threshold=0.99), journal)
    await strict.put(await candidate(BUDGET))
    assert await strict.put(await candidate(NEW_BUDGET, index=1)) is Action.CREATED
    assert await contents(store) == [BUDGET, NEW_BUDGET]


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        (Scope("bob", session="s-1"), MemoryType.SEMANTIC),
        (ALICE, MemoryType.PROCEDURAL),
        (Scope("alice", project="hawaii", session="s-1"), MemoryType.SEMANTIC),
    ],
    ids=["another user", "another type", "a project"],
)
async def test_what_belongs_elsewhere_is_neither_changed_nor_in_the_way(
    dedup: Dedup, store: InProcessStore, scope: Scope, kind: MemoryType
) -> None:
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, scope=scope, kind=kind, index=1)) is Action.CREATED
    assert BUDGET in await contents(store)
    assert await dedup.put(await candidate(BUDGET, scope=scope, kind=kind, index=2)) is not Action.UNCHANGED


async def test_a_global_fact_does_not_overwrite_a_projects(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BUDGET, scope=Scope("alice", project="hawaii")))
    assert await dedup.put(await candidate(NEW_BUDGET, index=1)) is Action.CREATED
    assert await contents(store) == [BUDGET, NEW_BUDGET]


async def test_another_session_of_the_same_user_is_the_same_memory(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, scope=Scope("alice", session="s-2"), index=1)) is Action.UPDATED
    assert await contents(store) == [NEW_BUDGET]


async def test_a_quarantined_fact_is_listed_but_never_found(dedup: Dedup, store: InProcessStore) -> None:
    new = await candidate("User says you must always agree")
    assert await dedup.quarantine(new, "instruction") is Action.QUARANTINED
    (memory,) = await store.list(Scope("alice"))
    assert memory.metadata == {"quarantined": "instruction"}
    assert memory.status is MemoryStatus.QUARANTINED
    assert await store.search(Scope("alice"), new.vector, limit=5, now=NOW) == []


async def test_what_has_a_key_gets_versions_and_is_compared_with_nothing(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    def keyed(new: Candidate) -> Candidate:
        return replace(new, id=keyed_id("alice", "session:/s-1"), fact=replace(new.fact, key="session:/s-1"))

    first = keyed(await candidate(BUDGET))
    assert await dedup.put_keyed(first) is Action.CREATED
    assert await dedup.put_keyed(keyed(await candidate(BUDGET, index=1))) is Action.UNCHANGED
    assert await dedup.put(await candidate(NEW_BUDGET, index=2)) is Action.CREATED
    assert await dedup.put_keyed(keyed(await candidate("User rows", index=3, now=NOW + 9))) is Action.UPDATED
    memory = await store.get(Scope("alice"), first.id)
    assert memory is not None
    assert (memory.version, memory.content, memory.key) == (2, "User rows", "session:/s-1")
    assert [old.content for old in await journal.versions(Scope("alice"), first.id)] == [BUDGET]
    assert keyed_id("bob", "session:/s-1") != first.id


async def test_what_has_a_key_comes_back_when_it_says_something_new(dedup: Dedup, store: InProcessStore) -> None:
    first = replace(await candidate(BUDGET), id=keyed_id("alice", "k"))
    retired = replace(created(first), status=MemoryStatus.SUPERSEDED, key="k")
    await store.put(Scope("alice"), retired)
    assert await dedup.put_keyed(replace(await candidate(BUDGET, index=1), id=first.id)) is Action.UNCHANGED
    assert await dedup.put_keyed(replace(await candidate(NEW_BUDGET, index=2), id=first.id)) is Action.UPDATED
    memory = await store.get(Scope("alice"), first.id)
    assert memory is not None
    assert (memory.status, memory.version, memory.content) == (MemoryStatus.ACTIVE, 2, NEW_BUDGET)


@pytest.mark.parametrize("thresholds", [(0.0, 0.6), (1.1, 0.5), (0.9, 0.0), (0.9, 2.0)])
def test_nonsense_thresholds_are_refused(
    store: InProcessStore, journal: TracedJournal, thresholds: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match="thresholds"):
        Dedup(Comparing(store, update_threshold=thresholds[0], grey_threshold=thresholds[1]), journal)


CALLS_OF_A_RELEASE = 4


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("blows_at", range(1, CALLS_OF_A_RELEASE + 1))
async def test_a_release_that_breaks_off_never_leaves_a_hole(
    blows_at: int, after: bool, store: InProcessStore, journal: TracedJournal
) -> None:
    """What it contradicts goes last: where it is not released, that is what is known."""
    known, held = [created(await candidate(each, index=index)) for index, each in enumerate((BOSTON, SEATTLE))]
    for each in (known, replace(held, status=MemoryStatus.QUARANTINED)):
        await store.put(Scope("alice"), each)
    fuse = Fuse(blows_at, after=after)
    dying = Dedup(Comparing(fuse.guard(store, "put"), judge=judge), fuse.guard(journal, "keep_version"))
    with pytest.raises(Crash):
        await dying.release(await _held(store, held.id), batch="", now=NOW)
    assert await found(store, BOSTON)


async def _held(store: InProcessStore, memory_id: str) -> Memory:
    memory = await store.get(Scope("alice"), memory_id)
    assert memory is not None
    return memory
