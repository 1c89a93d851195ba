"""A reranker behind the endpoint that Cohere, Jina, vLLM and others share: ``POST {base}/rerank``."""

import asyncio
from collections.abc import Sequence
from typing import Unpack

import msgspec

from semmem.backends.models.json_http import HttpOptions, JsonEndpoint
from semmem.ports.errors import ModelRefused, ModelUnavailable

ANSWER_BYTES_MAX = 1024 * 1024


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Result] | None = None
    data: list[_Result] = []


class HttpReranker:
    """One reranking model of one server. Implements Reranker. Sent is ``{model, query, documents, top_n}``; understood
    is ``{"results": [{"index", "relevance_score"}]}`` in any order (``data`` in place of ``results`` too). One try,
    without a retry: whoever waits has an order already."""

    def __init__(self, base_url: str, model: str, **options: Unpack[HttpOptions]) -> None:
        self._model = model
        self._endpoint = JsonEndpoint(base_url, "/rerank", answer_bytes_max=ANSWER_BYTES_MAX, **options)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        """The texts' scores, in their order. Raises ModelUnavailable, and ModelRefused also for an answer that does not
        give each text exactly one finite score; their messages never hold content."""
        if not texts:
            return []
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        try:
            async with asyncio.timeout(timeout_s):
                return _scores(await self._endpoint.answer(body), len(texts))
        except TimeoutError:
            raise ModelUnavailable("no answer within the deadline") from None

    async def close(self) -> None:
        await self._endpoint.close()


def _scores(content: bytes, count: int) -> list[float]:
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except (msgspec.DecodeError, RecursionError):
        raise ModelRefused("the answer is not a reranking with a finite score for each text") from None
    results = answer.results if answer.results is not None else answer.data
    found = {each.index: each.relevance_score for each in results}
    if len(results) != count or found.keys() != set(range(count)):
        raise ModelRefused("the answer does not score every text once, and no other")
    return [found[index] for index in range(count)]
