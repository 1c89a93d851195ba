"""Truth over time: the rules of semmem.extraction.contradiction as the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Action, created, memory_id
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.memory import Hit, Memory, MemoryStatus, MemoryType, Scope, Vector
from semmem.ports.errors import StoreUnavailable
from tests.core.extraction.dedup_world import (
    BOSTON,
    BUDGET,
    NOW,
    SEATTLE,
    candidate,
    contents,
    found,
)
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal


@pytest.fixture
def judging(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store, judge=judge), journal)


async def test_the_same_statement_adds_nothing(judging: Dedup, store: InProcessStore, journal: TracedJournal) -> None:
    first = await candidate("User is allergic to peanuts")
    await judging.put(first)
    assert await judging.put(await candidate("The user is allergic to the peanuts", index=1)) is Action.UNCHANGED
    assert await contents(store) == ["User is allergic to peanuts"]
    assert await journal.versions(Scope("alice"), first.id) == []


async def test_three_updates_give_three_versions(judging: Dedup, store: InProcessStore, journal: TracedJournal) -> None:
    first = await candidate(BUDGET)
    budgets = [BUDGET.replace("10000", amount) for amount in ("10000", "15000", "12000", "9000")]
    actions = [
        await judging.put(await candidate(text, index=index, now=NOW + index)) for index, text in enumerate(budgets)
    ]
    assert actions == [Action.CREATED, Action.UPDATED, Action.UPDATED, Action.UPDATED]
    (memory,) = await store.list(Scope("alice"))
    assert (memory.id, memory.version, memory.content) == (first.id, 4, budgets[3])
    earlier = await journal.versions(Scope("alice"), first.id)
    assert [(old.version, old.content, old.updated_at) for old in earlier] == [
        (1, budgets[0], NOW),
        (2, budgets[1], NOW + 1),
        (3, budgets[2], NOW + 2),
    ]


async def test_what_resembles_another_fact_closely_stays_beside_it(judging: Dedup, store: InProcessStore) -> None:
    words = "plays the clarinet in the old town orchestra on the big square by the river"
    sister, daughter = f"User's sister Emma {words}", f"User's daughter Emma {words}"
    one, other = await candidate(sister), await candidate(daughter, index=1)
    assert float(one.vector @ other.vector) > 0.9
    await judging.put(one)
    assert await judging.put(other) is Action.CREATED
    assert await found(store, sister) == [daughter, sister]


async def test_a_fact_that_comes_back_is_a_memory_of_its_own(judging: Dedup, store: InProcessStore) -> None:
    places = ["User lives in Boston", "User lives in Seattle", "User lives in Boston"]
    actions = [await judging.put(await candidate(text, index=index)) for index, text in enumerate(places)]
    assert actions == [Action.CREATED, Action.SUPERSEDED, Action.SUPERSEDED]
    assert await found(store, "Where does user live?") == ["User lives in Boston"]
    memories = {memory.id: memory for memory in await store.list(Scope("alice"))}
    ids = [memory_id("b-1", index) for index in range(3)]
    assert [memories[one].status for one in ids] == [MemoryStatus.SUPERSEDED] * 2 + [MemoryStatus.ACTIVE]
    assert [memories[one].metadata.get("superseded_by") for one in ids] == [ids[1], ids[2], None]


async def test_everything_that_became_untrue_is_retired(judging: Dedup, store: InProcessStore) -> None:
    known = ["User owns this kayak", "User owns a kayak", "User owns a kayak with a rudder", "User owns a tent"]
    for index, text in enumerate(known):
        assert await judging.put(await candidate(text, index=index)) is Action.CREATED
    sold = "User sold the kayak"
    assert await judging.put(await candidate(sold, index=9)) is Action.SUPERSEDED
    assert await found(store, "kayak") == ["User owns a kayak with a rudder", "User owns a tent", sold]


async def test_an_update_that_broke_off_is_completed_by_the_next_try(journal: TracedJournal) -> None:
    class Failing(InProcessStore):
        fails = False

        async def put(self, scope: Scope, *memories: Memory) -> None:
            if self.fails and any(memory.status is MemoryStatus.ACTIVE for memory in memories):
                raise StoreUnavailable("down")
            await super().put(scope, *memories)

    failing = Failing()
    await failing.open()
    dedup = Dedup(Comparing(failing, judge=judge), journal)
    short = "User's budget is 10000 dollars"
    await failing.put(Scope("alice"), created(await candidate(short)))
    new = await candidate("User's budget is 15000 dollars", index=2)
    failing.fails = True
    with pytest.raises(StoreUnavailable):
        await dedup.put(new)
    failing.fails = False
    await dedup.put(new)
    assert await found(failing, "budget") == [new.fact.content]


async def test_the_judge_is_asked_only_about_what_is_at_all_alike(
    store: InProcessStore, journal: TracedJournal
) -> None:
    strict = Dedup(Comparing(store, judge=judge, judge_cosine_min=0.99), journal)
    await strict.put(await candidate(BOSTON))
    assert await strict.put(await candidate(SEATTLE, index=1)) is Action.CREATED
    assert await found(store, "where") == [BOSTON, SEATTLE]


async def test_a_superseded_memory_keeps_a_vector_that_the_search_left_out(journal: TracedJournal) -> None:
    class Lean(InProcessStore):
        async def search(
            self,
            scope: Scope,
            vector: Vector,
            *,
            limit: int,
            now: float,
            types: Sequence[MemoryType] = (),
            as_of: float | None = None,
        ) -> list[Hit]:
            hits = await super().search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)
            return [replace(hit, memory=replace(hit.memory, embedding=None)) for hit in hits]

    lean = Lean()
    await lean.open()
    dedup = Dedup(Comparing(lean, judge=judge), journal)
    old = await candidate("User lives in Boston")
    await dedup.put(old)
    assert await dedup.put(await candidate("User lives in Seattle", index=1)) is Action.SUPERSEDED
    retired = await lean.get(Scope("alice"), old.id)
    assert retired is not None
    assert retired.status is MemoryStatus.SUPERSEDED
    assert retired.embedding is not None
    assert retired.embedding == pytest.approx(old.vector)
