"""Candidates from an index, from the store, and the vector of a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.errors import EmbedderError, StoreError, StoreTimeout
from semmem.retrieval import search
from semmem.retrieval.begun import embed_query
from semmem.retrieval.decide.decision import LOGIT_WEIGHT, Verdict
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.index.memory_index import Mask, MemoryIndex, Scores
from semmem.retrieval.search import (
    CANDIDATES_MAX,
    NAMED_MAX,
    OVERFETCH,
    RRF_K,
    Candidates,
    Fusion,
    ResolvedQuery,
    Strategy,
    best_of,
    nearest,
    newest,
)
from semmem.text.times import Interval
from tests.core.retrieval.talk import NOW
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder

ADA = Scope("ada")


class Recording(InProcessStore):
    """Remembers the limits it was asked for, and can be slow or broken."""

    delay_s = 0.0
    broken = False

    def __init__(self) -> None:
        super().__init__()
        self._is_open = True
        self.limits: list[int] = []

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
        self.limits.append(limit)
        await asyncio.sleep(self.delay_s)
        if self.broken:
            raise StoreError("disk full")
        return await super().search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)


class Slow(HashEmbedder):
    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        await asyncio.sleep(10)
        return await super().embed(text)


async def memory(number: int, content: str, **fields: object) -> Memory:
    vector = await HashEmbedder().embed(content)
    given = {"type": MemoryType.SEMANTIC, "user": "ada", "updated_at": NOW - number, "embedding": vector} | fields
    return Memory(f"mem_{number}", 1, content=content, **given)  # type: ignore[arg-type]


async def known() -> MemoryIndex:
    return MemoryIndex(
        [
            await memory(0, "the budget for Hawaii is 10000"),
            await memory(1, "the cat is called Turing", project="pets"),
            await memory(2, "to file the budget open the portal", type=MemoryType.PROCEDURAL),
            await memory(3, "budget for Hawaii", expires_at=NOW),
        ]
    )


def asked(text: str, strategy: Strategy = Strategy.HYBRID, **options: object) -> ResolvedQuery:
    given = {"scope": ADA, "now": NOW, "limit": 5} | options
    return ResolvedQuery(text, strategy=strategy, **given)  # type: ignore[arg-type]


async def ask(
    query: str, strategy: Strategy = Strategy.HYBRID, *, by_words: bool = False, **options: object
) -> list[str]:
    vector = None if by_words else await HashEmbedder().embed(query)
    found = best_of(await known(), asked(query, strategy, **options), vector)
    return [hit.memory.id for hit in found.hits if hit.memory.id not in found.cuts]


@pytest.mark.parametrize("strategy", [Strategy.HYBRID, Strategy.SEMANTIC, Strategy.KEYWORD])
async def test_the_best_comes_first_and_what_has_expired_never(strategy: Strategy) -> None:
    found = await ask("budget for Hawaii", strategy)
    assert found[0] == "mem_0"
    assert "mem_3" not in found


async def test_types_and_project_narrow_the_search() -> None:
    assert await ask("budget", types=(MemoryType.PROCEDURAL,)) == ["mem_2"]
    assert await ask("budget", Strategy.RECENT, scope=Scope("ada", project="pets")) == ["mem_1"]
    assert await ask("budget", scope=Scope("ada", project="none such")) == []


async def test_recent_asks_for_nothing_but_time() -> None:
    assert await ask("budget", Strategy.RECENT) == ["mem_0", "mem_1", "mem_2"]
    assert [hit.memory.id for hit in newest(await known(), asked("budget")).hits] == ["mem_0", "mem_1", "mem_2"]


async def test_by_words_alone_only_what_shares_words_is_found() -> None:
    assert await ask("Turing", by_words=True) == ["mem_1"]
    assert await ask("Turing", Strategy.KEYWORD) == ["mem_1"]
    assert await ask("submarine", by_words=True) == []


async def test_what_is_irrelevant_is_named_and_not_lost() -> None:
    found = best_of(await known(), asked("Turing"), await HashEmbedder().embed("Turing"))
    assert found.hits[0].memory.id == "mem_1"
    assert set(found.cuts) == {"mem_0", "mem_2"}
    assert set(found.cuts.values()) == {"below_relevance"}
    assert found.hits[0].keyword > 0 < found.hits[0].cosine


@given(st.integers(0, 3 * CANDIDATES_MAX), st.sampled_from(Strategy))
def test_candidates_are_bounded_and_in_order(count: int, strategy: Strategy) -> None:
    vectors = np.random.default_rng(count).normal(size=(count, 8)).astype(np.float32)
    memories = [
        Memory(f"mem_{i}", 1, MemoryType.SEMANTIC, f"word {i % 7}", "ada", embedding=v / np.linalg.norm(v))
        for i, v in enumerate(vectors)
    ]
    query = np.eye(8, dtype=np.float32)[0]
    found: Candidates = best_of(MemoryIndex(memories), asked("word 3", strategy), query)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert len(found.hits) <= min(count, CANDIDATES_MAX)
    if strategy is Strategy.SEMANTIC and count:
        assert scores[0] == pytest.approx(max(float(m.embedding @ query) for m in memories if m.embedding is not None))


# --- reciprocal ranks ------------------------------------------------------------------------------------------------


def fused(fusion: Fusion) -> list[tuple[str, float]]:
    """``near`` is first by meaning and has none of the words, ``both`` second by each, ``words`` first by words."""
    query = np.eye(3, dtype=np.float32)[0]
    contents = {"both": ("red boat somewhere today", 0.6), "near": ("nothing else", 0.9), "words": ("red boat", 0.3)}
    memories = [
        Memory(
            f"{name}", 1, MemoryType.SEMANTIC, text, "ada", embedding=np.array([c, (1 - c**2) ** 0.5, 0], np.float32)
        )
        for name, (text, c) in contents.items()
    ]
    index = MemoryIndex(memories)
    found = best_of(index, asked("red boat", fusion=fusion), query)
    return [(hit.memory.id, hit.score) for hit in found.hits]


def test_reciprocal_ranks_add_up_over_meaning_and_words() -> None:
    expected = {"both": 1 / (RRF_K + 2) + 1 / (RRF_K + 2), "words": 1 / (RRF_K + 3) + 1 / (RRF_K + 1)}
    expected["near"] = 1 / (RRF_K + 1)
    found = dict(fused(Fusion.RRF))
    assert found == pytest.approx(expected)
    assert [name for name, _ in fused(Fusion.RRF)] == sorted(expected, key=lambda name: -expected[name])


def test_a_weighted_sum_looks_at_how_near_and_not_at_the_rank() -> None:
    assert dict(fused(Fusion.WEIGHTED))["near"] == pytest.approx(0.9, abs=0.05)


# --- what was decided ------------------------------------------------------------------------------------------------


class Guessed(Decided):
    """Log-odds and standing by the number in the memory's id."""

    lists_profile = False

    def verdict(
        self,
        text: str,
        vector: Vector,
        index: MemoryIndex,
        scores: Scores,
        members: Mask,
        *,
        wants: bool = False,
        said: RequestWords | None = None,
    ) -> Verdict:
        found = super().verdict(text, vector, index, scores, members, wants=wants)
        assert found.request is not None
        numbers = np.array([float(memory.id[-3:]) for memory in index.memories], dtype=np.float32)
        request = replace(found.request, lists_profile=self.lists_profile)
        return Verdict(members, numbers < 5, numbers, request)


def numbered(count: int) -> MemoryIndex:
    vector = np.eye(2, dtype=np.float32)[0]
    return MemoryIndex(
        [Memory(f"mem_{n:03}", 1, MemoryType.SEMANTIC, "tea", "ada", embedding=vector) for n in range(count)]
    )


def decided(decision: Guessed, count: int) -> Candidates:
    return best_of(numbered(count), asked("what"), np.eye(2, dtype=np.float32)[0], decision)


def test_log_odds_order_what_is_as_near() -> None:
    found = decided(Guessed(), 9)
    assert [hit.memory.id for hit in found.hits] == [f"mem_{n:03}" for n in reversed(range(9))]
    assert found.hits[0].score == pytest.approx(1 + LOGIT_WEIGHT * 8, abs=0.1)
    assert [hit.logit for hit in found.hits] == [float(n) for n in reversed(range(9))]


def test_a_profile_is_ordered_by_log_odds_alone() -> None:
    decision = Guessed()
    decision.lists_profile = True
    assert [hit.score for hit in decided(decision, 3).hits] == [2.0, 1.0, 0.0]


def test_standing_memories_that_are_shown_are_among_the_candidates_however_many_are_better() -> None:
    found = decided(Guessed(), CANDIDATES_MAX + 50)
    assert found.standing == {f"mem_{n:03}" for n in range(5)}
    assert found.standing <= {hit.memory.id for hit in found.hits}
    assert len(found.hits) == CANDIDATES_MAX + 5


async def test_more_than_wanted_is_fetched_of_the_store_within_a_bound() -> None:
    store, vector = Recording(), await HashEmbedder().embed("budget")
    for limit in (1, 5, 100):
        await nearest(store, asked("budget", limit=limit), vector, timeout_s=5)
    assert store.limits == [OVERFETCH, 5 * OVERFETCH, CANDIDATES_MAX]


async def test_a_failure_of_the_store_comes_through() -> None:
    store, vector = Recording(), await HashEmbedder().embed("budget")
    store.broken = True
    with pytest.raises(StoreError, match="disk full"):
        await nearest(store, asked("budget"), vector, timeout_s=5)


async def test_who_is_late_has_failed_and_is_named() -> None:
    store, vector = Recording(), await HashEmbedder().embed("budget")
    store.delay_s = 10
    with pytest.raises(StoreTimeout, match=r"no hits within 0\.01 s"):
        await nearest(store, asked("budget"), vector, timeout_s=0.01)
    with pytest.raises(EmbedderError, match=r"no vector within 0\.01 s"):
        await embed_query(Slow(), "budget", timeout_s=0.01)


async def test_the_callers_own_deadline_is_not_taken_for_a_failure() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await embed_query(Slow(), "budget", timeout_s=5)


def test_only_the_best_are_read_for_the_times_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def names(memory: Memory, _during: Interval) -> bool:
        read.append(memory.id)
        return False

    monkeypatch.setattr(search, "names", names)
    east = np.array([1, 0], dtype=np.float32)
    memories = [
        Memory(f"mem_{n:03}", 1, MemoryType.SEMANTIC, "tea", "ada", embedding=east if n < 30 else -east)
        for n in range(90)
    ]
    during = Interval(1e9, 1e9 + 1)
    far = np.array([0.1, 0.995], dtype=np.float32)
    best_of(MemoryIndex(memories), asked("", Strategy.SEMANTIC, during=during), far)
    assert read == [f"mem_{n:03}" for n in range(NAMED_MAX)]
