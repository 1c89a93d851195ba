"""The reranker over real HTTP to a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from semmem.backends.models import rerank
from semmem.backends.models.rerank import HttpReranker
from semmem.ports.errors import ModelRefused, ModelUnavailable
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

TEXTS = ["User likes tea", "User lives in Oslo", "User has a dog"]
QUESTION = "Where do I live?"

Make = Callable[..., HttpReranker]


@pytest.fixture
async def reranker() -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        def make(server: ScriptedLLM | str, **settings: Any) -> HttpReranker:
            url = server if isinstance(server, str) else server.base_url
            made = HttpReranker(url, "tiny-reranker", **settings)
            stack.push_async_callback(made.close)
            return made

        yield make


def reply(*results: object, key: str = "results") -> Reply:
    return Reply(raw=json.dumps({key: list(results)}).encode())


def scored(index: object, score: object) -> dict[str, object]:
    return {"index": index, "relevance_score": score}


GOOD = reply(scored(1, 0.9), scored(2, 0.1), scored(0, -3))


def by_shared_words(body: Body) -> Reply:
    """A reranker that really compares: the share of the question's letters."""
    asked = set(body["query"].lower().split())
    scores = [len(asked & set(text.lower().split())) for text in body["documents"]]
    return reply(*(scored(i, score) for i, score in reversed(list(enumerate(scores)))))


async def test_scores_come_back_in_the_order_of_the_texts(reranker: Make) -> None:
    async with ScriptedLLM(GOOD) as server:
        made = reranker(server, api_key="k-1")
        assert await made.rerank(QUESTION, TEXTS, timeout_s=5) == [-3.0, 0.9, 0.1]
    assert server.paths == ["/v1/rerank"]
    assert server.headers[0]["authorization"] == "Bearer k-1"
    assert server.requests == [{"model": "tiny-reranker", "query": QUESTION, "documents": TEXTS, "top_n": 3}]


async def test_each_call_is_scored_for_itself(reranker: Make) -> None:
    async with ScriptedLLM(by_shared_words) as server:
        made = reranker(server)
        assert await made.rerank("lives in oslo", TEXTS, timeout_s=5) == [0.0, 3.0, 0.0]
        assert await made.rerank("a dog", TEXTS, timeout_s=5) == [0.0, 0.0, 2.0]


async def test_data_in_place_of_results_is_understood(reranker: Make) -> None:
    async with ScriptedLLM(reply(scored(0, 1), key="data")) as server:
        assert await reranker(server).rerank(QUESTION, TEXTS[:1], timeout_s=5) == [1.0]


async def test_nothing_to_order_asks_nobody(reranker: Make) -> None:
    async with ScriptedLLM(GOOD) as server:
        assert await reranker(server).rerank(QUESTION, [], timeout_s=5) == []
    assert server.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        reply(scored(0, 1), scored(1, 1)),
        reply(scored(0, 1), scored(1, 1), scored(3, 1)),
        reply(scored(0, 1), scored(1, 1), scored(-1, 1)),
        reply(scored(0, 1), scored(1, 1), scored(1, 1)),
        reply(scored(0, 1), scored(1, 1), scored(2, 1), scored(2, 2)),
        reply(scored(0, 1), scored(1, 1), scored("2", 1)),
        reply(scored(0, 1), scored(1, 1), scored(2.0, 1)),
        reply(scored(0, 1), scored(2, 1), scored(True, 1)),
        reply(scored(0, 1), scored(1, 1), scored(2, "high")),
        reply(scored(0, 1), scored(1, 1), scored(2, True)),
        reply(scored(0, 1), scored(1, 1), scored(2, None)),
        reply(scored(0, 1), scored(1, 1), scored(2, 10**400)),
        reply(scored(0, 1), scored(1, 1), {"index": 2}),
        reply(scored(0, 1), scored(1, 1), 7),
        Reply(raw=b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
        Reply(raw=b'{"results": [{"index": 0, "relevance_score": 1e999}]}'),
        Reply(raw=b'{"results": {"index": 0}}'),
        Reply(raw=b'{"error": "no"}'),
        Reply(raw=b"[]"),
        Reply(raw=b"null"),
        Reply(raw=b"<html>"),
        Reply(raw=b"[" * 20_000),
        Reply(raw=b""),
    ],
)
async def test_an_answer_that_does_not_score_each_text_once_is_refused(reranker: Make, raw: Reply) -> None:
    async with ScriptedLLM(raw) as server:
        with pytest.raises(ModelRefused) as refusal:
            await reranker(server).rerank(QUESTION, TEXTS, timeout_s=5)
    assert "live" not in str(refusal.value)


async def test_an_answer_beyond_the_limit_is_not_read(reranker: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "ANSWER_BYTES_MAX", 1000)
    async with ScriptedLLM(Reply(raw=b" " * 5000)) as server:
        with pytest.raises(ModelRefused, match="more than 1000 bytes"):
            await reranker(server).rerank(QUESTION, TEXTS, timeout_s=5)


@pytest.mark.parametrize(("status", "error"), [(503, ModelUnavailable), (429, ModelUnavailable), (404, ModelRefused)])
async def test_a_status_says_whether_another_try_may_help(reranker: Make, status: int, error: type[Exception]) -> None:
    async with ScriptedLLM(Reply(status=status), GOOD) as server:
        with pytest.raises(error, match=str(status)):
            await reranker(server).rerank(QUESTION, TEXTS, timeout_s=5)
    assert len(server.requests) == 1


async def test_a_silent_server_costs_no_more_than_the_deadline(reranker: Make) -> None:
    async with ScriptedLLM(Reply(hang=True)) as server, asyncio.timeout(10):
        with pytest.raises(ModelUnavailable, match="deadline"):
            await reranker(server).rerank(QUESTION, TEXTS, timeout_s=0.1)


async def test_nobody_listening_and_a_cut_answer_are_unavailable(reranker: Make) -> None:
    with pytest.raises(ModelUnavailable):
        await reranker("http://127.0.0.1:9").rerank(QUESTION, TEXTS, timeout_s=5)
    async with ScriptedLLM(Reply(raw=b"{}", drop=True)) as server:
        with pytest.raises(ModelUnavailable):
            await reranker(server).rerank(QUESTION, TEXTS, timeout_s=5)


async def test_a_server_that_keeps_failing_is_left_alone_for_a_while(reranker: Make) -> None:
    now = [0.0]
    async with ScriptedLLM(Reply(status=503), Reply(status=503), GOOD) as server:
        made = reranker(server, breaker_failures=2, breaker_open_s=30, clock=lambda: now[0])
        for _ in range(4):
            with pytest.raises(ModelUnavailable):
                await made.rerank(QUESTION, TEXTS, timeout_s=5)
        assert len(server.requests) == 2
        now[0] = 30.0
        assert await made.rerank(QUESTION, TEXTS, timeout_s=5) == [-3.0, 0.9, 0.1]


async def test_after_close_it_is_unavailable(reranker: Make) -> None:
    async with ScriptedLLM(GOOD) as server:
        made = reranker(server)
        await made.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            await made.rerank(QUESTION, TEXTS, timeout_s=5)
