"""A reranker behind the endpoint that Cohere, Jina, vLLM and others share: ``POST {base}/rerank``."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any, Unpack

from semmem.backends.models.json_http import HttpOptions, JsonEndpoint
from semmem.ports.errors import ModelRefused, ModelUnavailable

ANSWER_BYTES_MAX = 1024 * 1024


class HttpReranker:
    """One reranking model of one server. Implements Reranker.

    Sent is ``{model, query, documents, top_n}``; understood is ``{"results": [{"index", "relevance_score"}]}`` in any
    order (``data`` in place of ``results`` too). One try, without a retry: whoever waits has an order already.
    """

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
        """Close the connections, which are the endpoint's."""
        await self._endpoint.close()


def _scores(content: bytes, count: int) -> list[float]:
    found: dict[int, float] = {}
    for index, score in _pairs(content):
        if type(index) is not int or not 0 <= index < count or index in found:
            raise ModelRefused("the answer scores a text that was not sent, or one twice")
        found[index] = _finite(score)
    if len(found) < count:
        raise ModelRefused("the answer does not score every text")
    return [found[index] for index in range(count)]


def _finite(score: object) -> float:
    if not isinstance(score, bool) and isinstance(score, int | float):
        try:
            number = float(score)
        except OverflowError:  # an integer of hundreds of digits
            number = math.inf
        if math.isfinite(number):
            return number
    raise ModelRefused("the answer holds a score that is no number")


def _pairs(content: bytes) -> list[tuple[object, object]]:
    try:
        answer: Any = json.loads(content)
        results = answer["results"] if "results" in answer else answer["data"]
        if not isinstance(results, list):
            raise ModelRefused("the answer is not a reranking")
        return [(result["index"], result["relevance_score"]) for result in results]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ModelRefused("the answer is not a reranking") from None
