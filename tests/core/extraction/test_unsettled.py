"""Pairs that may contradict each other: found again, asked about, and settled for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Placed, Removal
from semmem.extraction.contradiction.verdict import Verdict
from semmem.extraction.model_judge import KEPT, PAIRS_MAX, Unsettled
from semmem.memory import (
    CONTRADICTED,
    REPEATED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNSETTLED,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Source,
)
from tests.support.fakes import HashEmbedder
from tests.support.traced_journal import TracedJournal

NOW = 1000.0
BOSTON, SEATTLE, BIKES = "User lives in Boston", "User moved to Seattle", "User rides a bike"


def told(settled: Placed) -> tuple[tuple[Removal, ...], tuple[str, ...]]:
    return settled.removals, settled.pairs


@pytest.fixture
def unsettled(store: InProcessStore, journal: TracedJournal) -> Unsettled:
    return Unsettled(store, journal)


async def memory(
    store: InProcessStore, name: str, content: str, said_at: float, *others: str, user: str = "ada"
) -> None:
    made = Memory(
        name,
        1,
        MemoryType.SEMANTIC,
        content,
        user,
        source=Source(time=said_at),
        metadata={UNSETTLED: list(others), "of": "somebody"} if others else {},
        embedding=await HashEmbedder().embed(content),
    )
    await store.put(Scope(user), made)


async def known(store: InProcessStore, name: str) -> Memory:
    found = await store.get(Scope("ada"), name)
    assert found is not None
    return found


async def boston_then_seattle(store: InProcessStore) -> None:
    """The newer one alone may carry the mark."""
    await memory(store, "b", BOSTON, 1.0, "s", "gone")
    await memory(store, "s", SEATTLE, 2.0, "b")


async def test_a_pair_is_found_once_with_what_was_said_first_as_the_old_statement(
    store: InProcessStore, unsettled: Unsettled
) -> None:
    await boston_then_seattle(store)
    await memory(store, "c", BIKES, 3.0, "b")
    await memory(store, "x", BIKES, 4.0, "y", user="bob")
    found = [(pair.doubt.old, pair.doubt.new) for pair in await unsettled.pairs("ada")]
    assert found == [(BOSTON, BIKES), (BOSTON, SEATTLE)]
    [pair] = [pair for pair in await unsettled.pairs("ada") if pair.newer.id == "s"]
    assert pair.doubt.cosine == pytest.approx(float(pair.older.embedding @ pair.newer.embedding))  # type: ignore[operator]


@pytest.mark.parametrize("mark", [None, "s", [], [7], {"s": 1}, ["b"], ["nobody"]])
async def test_what_is_no_list_of_other_memories_is_no_pair(
    store: InProcessStore, unsettled: Unsettled, mark: object
) -> None:
    await memory(store, "b", BOSTON, 1.0)
    await memory(store, "s", SEATTLE, 2.0)
    held = await known(store, "b")
    await store.put(Scope("ada"), replace(held, version=2, metadata={UNSETTLED: mark}))
    assert await unsettled.pairs("ada") == []


async def test_of_many_pairs_the_last_said_are_asked_about(store: InProcessStore, unsettled: Unsettled) -> None:
    await memory(store, "m0", BOSTON, 0.0)
    for number in range(1, PAIRS_MAX + 5):
        await memory(store, f"m{number}", f"{BOSTON} {number}", float(number), "m0")
    found = await unsettled.pairs("ada")
    assert [pair.newer.id for pair in found] == [f"m{number}" for number in range(PAIRS_MAX + 4, 4, -1)]


@pytest.mark.parametrize(
    ("verdict", "why"), [(Verdict.CONTRADICTION, CONTRADICTED), (Verdict.SAME, REPEATED)], ids=["replaced", "repeated"]
)
async def test_what_is_replaced_or_repeated_is_retired_with_a_reason_and_kept(
    store: InProcessStore, journal: TracedJournal, unsettled: Unsettled, verdict: Verdict, why: str
) -> None:
    await boston_then_seattle(store)
    pairs = await unsettled.pairs("ada")
    gone = await unsettled.settle(pairs, {(BOSTON, SEATTLE): verdict}, batch="", now=NOW)
    assert told(gone) == ((Removal(why, "b", "s"),), (why,))
    old, new = await known(store, "b"), await known(store, "s")
    assert (old.status, old.version, old.updated_at) == (MemoryStatus.SUPERSEDED, 2, NOW)
    assert old.metadata == {SUPERSEDED_BY: "s", SUPERSEDED_WHY: why, UNSETTLED: ["gone"], "of": "somebody"}
    assert (new.status, new.metadata) == (MemoryStatus.ACTIVE, {"of": "somebody"})
    assert [kept.version for kept in await journal.versions(Scope("ada"), "b")] == [1]
    assert await unsettled.pairs("ada") == []


async def test_a_pair_that_can_stand_both_is_settled_as_well(store: InProcessStore, unsettled: Unsettled) -> None:
    await boston_then_seattle(store)
    pairs = await unsettled.pairs("ada")
    settled = await unsettled.settle(pairs, {(BOSTON, SEATTLE): Verdict.DIFFERENT}, batch="", now=NOW)
    assert told(settled) == ((), (KEPT,))
    assert [(await known(store, name)).status for name in "bs"] == [MemoryStatus.ACTIVE] * 2
    assert await unsettled.pairs("ada") == []


async def test_a_pair_without_an_opinion_stays_as_it_is(store: InProcessStore, unsettled: Unsettled) -> None:
    await boston_then_seattle(store)
    pairs = await unsettled.pairs("ada")
    settled = await unsettled.settle(pairs, {(SEATTLE, BOSTON): Verdict.CONTRADICTION}, batch="", now=NOW)
    assert told(settled) == ((), ())
    assert [(await known(store, name)).version for name in "bs"] == [1, 1]
    assert await unsettled.pairs("ada") == pairs


async def test_what_has_changed_since_it_was_asked_about_is_left_alone(
    store: InProcessStore, unsettled: Unsettled
) -> None:
    await boston_then_seattle(store)
    pairs = await unsettled.pairs("ada")
    await store.put(Scope("ada"), replace(await known(store, "s"), version=2, content="User moved to Salem"))
    settled = await unsettled.settle(pairs, {(BOSTON, SEATTLE): Verdict.CONTRADICTION}, batch="", now=NOW)
    assert told(settled) == ((), ())
    assert (await known(store, "b")).version == 1
    await store.forget(Scope("ada"), "s")
    settled = await unsettled.settle(pairs, {(BOSTON, SEATTLE): Verdict.CONTRADICTION}, batch="", now=NOW)
    assert told(settled) == ((), ())
    assert (await known(store, "b")).status is MemoryStatus.ACTIVE


async def test_one_memory_in_two_pairs_is_settled_in_both(store: InProcessStore, unsettled: Unsettled) -> None:
    await memory(store, "b", BOSTON, 1.0, "s")
    await memory(store, "s", SEATTLE, 2.0, "b", "c")
    await memory(store, "c", BIKES, 3.0, "s")
    pairs = await unsettled.pairs("ada")
    opinions = {(BOSTON, SEATTLE): Verdict.CONTRADICTION, (SEATTLE, BIKES): Verdict.DIFFERENT}
    settled = await unsettled.settle(pairs, opinions, batch="", now=NOW)
    assert settled.removals == (Removal(CONTRADICTED, "b", "s"),)
    assert sorted(settled.pairs) == [CONTRADICTED, KEPT]
    assert UNSETTLED not in (await known(store, "s")).metadata
    assert (await known(store, "s")).version == 3
    assert await unsettled.pairs("ada") == []
