"""A reranker's order, and the hits' own order when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from semmem.memory import Hit
from semmem.ports.errors import ModelRefused, ModelUnavailable
from semmem.ports.events import Event, Reranked
from semmem.retrieval.rerank import Reranking
from tests.core.retrieval.talk import hit

HITS = [hit("tea", 0.9), hit("Oslo", 0.8), hit("a dog", 0.7), hit("Oslo too", 0.6)]


class Scripted:
    """Scores by content; anything else is an error or a pause."""

    def __init__(self, scores: dict[str, float] | Exception, *, takes_s: float = 0.0) -> None:
        self._scores = scores
        self._takes_s = takes_s
        self.asked: list[tuple[str, list[str]]] = []

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        self.asked.append((query, list(texts)))
        await asyncio.sleep(self._takes_s)
        if isinstance(self._scores, Exception):
            raise self._scores
        return [self._scores[text] for text in texts]

    async def close(self) -> None:
        pass


def reranking(model: Scripted, *, candidates_max: int = 20, timeout_s: float = 5.0) -> tuple[Reranking, list[str]]:
    words: list[str] = []

    def hear(event: Event) -> None:
        assert isinstance(event, Reranked)
        words.append(event.result)

    return Reranking(model, timeout_s, candidates_max, hear), words


def contents(hits: Sequence[Hit]) -> list[str]:
    return [each.memory.content for each in hits]


async def test_hits_come_in_the_rerankers_order_with_the_scores_they_had() -> None:
    made, words = reranking(Scripted({"tea": -9.0, "Oslo": 3.0, "a dog": 1.0, "Oslo too": 2.0}))
    found = await made.order("Where do I live?", HITS)
    assert contents(found) == ["Oslo", "Oslo too", "a dog", "tea"]
    assert [each.score for each in found] == [0.9, 0.8, 0.7, 0.6]
    assert [each.cosine for each in found] == [0.8, 0.6, 0.7, 0.9]
    assert words == ["reranked"]


async def test_ties_stay_as_they_were() -> None:
    made, _ = reranking(Scripted({"tea": 1.0, "Oslo": 1.0, "a dog": 1.0, "Oslo too": 2.0}))
    assert contents(await made.order("q", HITS)) == ["Oslo too", "tea", "Oslo", "a dog"]


async def test_only_the_best_candidates_are_sent_and_the_others_follow_them() -> None:
    model = Scripted({"tea": 1.0, "Oslo": 2.0})
    made, _ = reranking(model, candidates_max=2)
    assert contents(await made.order("q", HITS)) == ["Oslo", "tea", "a dog", "Oslo too"]
    assert model.asked == [("q", ["tea", "Oslo"])]


@pytest.mark.parametrize("hits", [[], HITS[:1]], ids=["none", "one"])
async def test_one_hit_needs_no_order(hits: list[Hit]) -> None:
    model = Scripted({})
    made, words = reranking(model)
    assert await made.order("q", hits) == hits
    assert (model.asked, words) == ([], [])


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (Scripted(ModelUnavailable("down")), "failed"),
        (Scripted(ModelRefused("nonsense")), "failed"),
        (Scripted({}, takes_s=30), "late"),
    ],
    ids=["down", "refused", "slow"],
)
async def test_without_a_reranker_that_answers_the_order_stays(model: Scripted, word: str) -> None:
    made, words = reranking(model, timeout_s=0.05)
    async with asyncio.timeout(10):
        assert await made.order("q", HITS) == HITS
    assert words == [word]


async def test_a_request_that_is_given_up_is_not_held() -> None:
    made, words = reranking(Scripted({}, takes_s=30), timeout_s=30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await made.order("q", HITS)
    assert words == []
