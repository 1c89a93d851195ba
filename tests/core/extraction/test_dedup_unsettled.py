"""Pairs that nobody has settled, and what the trained judge leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import PAIR_FOUND, PAIR_REPLACED, Action
from semmem.extraction.comparing import Comparing, Open, PairJudge
from semmem.extraction.contradiction.verdict import Judged, Verdict, closed
from semmem.extraction.dedup import Dedup
from semmem.extraction.work import InThread
from semmem.memory import MemoryType, Scope, Vector
from tests.core.extraction.dedup_world import (
    BOSTON,
    EMBEDDER,
    NOW,
    SEATTLE,
    candidate,
    found,
)
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal


@pytest.fixture
def judging(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store, judge=judge), journal)


class Doubting(PairJudge):
    """Holds every pair for unsettled, except that a correction contradicts what it follows."""

    async def judged(self, said: str, vector: Vector, memories: Sequence[Open]) -> list[Judged]:
        return [
            Judged(Verdict.CONTRADICTION) if old.corrects else Judged(Verdict.DIFFERENT, unsettled=True)
            for old in memories
        ]


@pytest.fixture
def doubting(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store, judge=closed, pair_judge=Doubting(EMBEDDER, InThread())), journal)


async def test_a_pair_in_doubt_is_noted_at_the_newer_one_until_the_older_one_goes(
    doubting: Dedup, store: InProcessStore
) -> None:
    rent, house = "User's rent is 900 euros", "User's rent is paid by the employer"
    first, later = await candidate(rent), await candidate(house, scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(first)).pairs == ()
    assert (await doubting.place(later)).pairs == (PAIR_FOUND,)
    noted = await store.get(Scope("alice"), later.id)
    assert noted is not None
    assert (noted.metadata["unsettled"], noted.version) == ([first.id], 1)
    raised = await candidate("User's rent is 950 euros", index=2)
    placed = await doubting.place(raised, {(house, raised.fact.content): Verdict.DIFFERENT})
    assert (placed.action, placed.pairs) == (Action.SUPERSEDED, (PAIR_REPLACED,))
    cleared = await store.get(Scope("alice"), later.id)
    assert cleared is not None
    assert ("unsettled" in cleared.metadata, cleared.version) == (False, 2)


async def test_a_pair_whose_newer_one_goes_is_settled(doubting: Dedup) -> None:
    await doubting.put(await candidate("User's rent is paid by the employer"))
    noting = await candidate("User's rent is 900 euros", scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(noting)).pairs == (PAIR_FOUND,)
    raised = await candidate("User's rent is 950 euros", scope=Scope("alice", session="s-3"), index=2)
    assert sorted((await doubting.place(raised)).pairs) == [PAIR_FOUND, PAIR_REPLACED]


async def test_a_pair_is_counted_once_although_it_is_noted_again_by_the_batch(
    doubting: Dedup, store: InProcessStore
) -> None:
    await doubting.put(await candidate("User's rent is 900 euros"))
    said = await candidate("User's rent is paid by the employer", scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(replace(said, provisional=True))).pairs == (PAIR_FOUND,)
    held = await store.get(Scope("alice"), said.id)
    assert held is not None
    placed = await doubting.confirm(held, replace(said, batch=""))
    assert (placed.action, placed.pairs) == (Action.CONFIRMED, ())
    kept = await store.get(Scope("alice"), said.id)
    assert kept is not None
    assert "unsettled" in kept.metadata


async def test_what_a_model_calls_different_is_settled(doubting: Dedup, store: InProcessStore) -> None:
    await doubting.put(replace(await candidate(BOSTON), expires_at=None))
    beside = await candidate(SEATTLE, index=1, now=NOW + 1000)
    assert await doubting.put(beside, {(BOSTON, SEATTLE): Verdict.DIFFERENT}) is Action.CREATED
    stored = await store.get(Scope("alice"), beside.id)
    assert stored is not None
    assert stored.metadata == {}


@pytest.mark.parametrize(
    ("session", "seconds", "follows"), [("s-1", 60.0, True), ("s-1", 3600.0, False), ("s-2", 60.0, False)]
)
async def test_only_what_follows_soon_in_the_same_session_corrects(
    doubting: Dedup, store: InProcessStore, session: str, seconds: float, follows: bool
) -> None:
    await doubting.put(replace(await candidate(BOSTON), expires_at=None))
    scope = Scope("alice", session=session)
    await doubting.put(await candidate(SEATTLE, index=1, now=NOW + seconds, scope=scope))
    assert await found(store, "where") == ([SEATTLE] if follows else [BOSTON, SEATTLE])


async def test_what_had_happened_before_a_statement_was_made_does_not_change_it(
    judging: Dedup, store: InProcessStore
) -> None:
    await judging.put(replace(await candidate(BOSTON), expires_at=None))
    moved = await candidate("User lives in Seattle", kind=MemoryType.EPISODIC, index=1, now=NOW + 1000)
    long_ago = replace(moved, fact=replace(moved.fact, occurred_at=NOW - 900_000.0))
    assert await judging.put(long_ago) is Action.CREATED
    lately = await candidate("User lives in Oslo", kind=MemoryType.EPISODIC, index=2, now=NOW + 2000)
    assert await judging.put(lately) is Action.SUPERSEDED


async def test_an_embedder_without_a_trained_judge_leaves_both(store: InProcessStore, journal: TracedJournal) -> None:
    assert not PairJudge(EMBEDDER, InThread()).is_trained
    untrained = Dedup(Comparing(store, judge=closed, pair_judge=PairJudge(EMBEDDER, InThread())), journal)
    await untrained.put(await candidate(BOSTON))
    assert await untrained.put(await candidate(SEATTLE, index=1)) is Action.CREATED
