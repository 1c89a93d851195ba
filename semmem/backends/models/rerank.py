"""A reranker behind the endpoint that Cohere, Jina, vLLM and others share: ``POST {base}/rerank``."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from semmem.backends.models.circuit_breaker import CircuitBreaker
from semmem.backends.models.json_http import JsonEndpoint, endpoint, failure
from semmem.ports.errors import ModelRefused, ModelUnavailable


class HttpReranker:
    """One reranking model of one server. Implements Reranker.

    Sent is ``{model, query, documents, top_n}``; understood is ``{"results": [{"index", "relevance_score"}]}`` in any
    order (``data`` in place of ``results`` too). ``base_url`` is what precedes ``/rerank`` (``/v1`` is added to a URL
    without a path). One try, without a retry: whoever waits has an order already. After ``breaker_failures`` failed
    tries in a row nothing is sent for ``breaker_open_s``; then one call may try. An answer's body has at most
    ``answer_bytes_max`` bytes.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        connections_max: int = 8,
        connect_timeout_s: float = 5.0,
        answer_bytes_max: int = 1024 * 1024,
        breaker_failures: int = 5,
        breaker_open_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._breaker = CircuitBreaker(failures_max=breaker_failures, open_s=breaker_open_s, clock=clock)
        self._endpoint = JsonEndpoint(
            endpoint(base_url, "/rerank"),
            api_key=api_key,
            connections_max=connections_max,
            connect_timeout_s=connect_timeout_s,
            answer_bytes_max=answer_bytes_max,
        )

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        """The texts' scores, in their order. Raises ModelUnavailable, and ModelRefused also for an answer that does not
        give each text exactly one finite score; their messages never hold content."""
        if not texts:
            return []
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        try:
            async with asyncio.timeout(timeout_s):
                with self._breaker.watch():
                    status, headers, content = await self._endpoint.post(body)
                    if status != 200:
                        raise failure(status, headers)
                    return _scores(content, len(texts))
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
