"""The best candidates in a reranker's order; in their own order whenever it does not help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from semmem.memory import Hit
from semmem.ports.errors import ModelError
from semmem.ports.events import Announce, Reranked, nobody_listens
from semmem.ports.models import Reranker


@dataclass(frozen=True, slots=True)
class Reranking:
    """A reranker and how it is used: at most ``candidates_max`` hits per request, ``timeout_s`` seconds.

    Reranked is announced for each request that asked.
    """

    reranker: Reranker
    timeout_s: float = 0.1
    candidates_max: int = 20
    announce: Announce = nobody_listens

    async def order(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """``hits`` (best first) with the first ``candidates_max`` in the reranker's order, ties as they were.

        Each hit keeps its cosine; the candidates' ``score`` values are dealt out anew in the new order, so that what
        follows sees the scale it knows. Never raises but for cancellation.
        """
        candidates, rest = list(hits[: self.candidates_max]), list(hits[self.candidates_max :])
        if len(candidates) < 2:
            return [*candidates, *rest]
        word, scores = await self._scores(query, candidates)
        self.announce(Reranked(word))
        if scores is None:
            return [*candidates, *rest]
        order = sorted(range(len(candidates)), key=lambda i: -scores[i])
        dealt = sorted((hit.score for hit in candidates), reverse=True)
        best = [replace(candidates[i], score=score) for i, score in zip(order, dealt, strict=True)]
        return [*best, *rest]

    async def _scores(self, query: str, hits: Sequence[Hit]) -> tuple[str, list[float] | None]:
        try:
            async with asyncio.timeout(self.timeout_s):
                texts = [hit.memory.content for hit in hits]
                return "reranked", await self.reranker.rerank(query, texts, timeout_s=self.timeout_s)
        except TimeoutError:
            return "late", None
        except ModelError:
            return "failed", None
