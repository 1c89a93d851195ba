"""A search that has begun: its question is being embedded while the turn is recorded and the words are read."""

from __future__ import annotations

import asyncio
import time

from semmem.memory import Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderBusy, EmbedderError
from semmem.request.outcome import Outcome
from semmem.retrieval.index.hot_memories import Spawn

UNDER_WAY_S = 0.001
"""So long the thread that embeds is left alone at first: it needs the interpreter to begin, which whatever is done
meanwhile would keep from it, and then some milliseconds without it."""
RENDERING_S = 0.03
"""Left of the request phase for what comes after: a request that is late would have no memories either."""


def within(timeout_s: float, until: float | None) -> asyncio.Timeout:
    """For ``async with``: so long, and no longer than the request phase, whose end is ``until`` in the event loop's
    time, has time for."""
    late = asyncio.get_running_loop().time() + timeout_s
    return asyncio.timeout_at(late if until is None else min(late, until - RENDERING_S))


async def embed_query(embedder: Embedder, query: str, *, timeout_s: float) -> Vector:
    """The query's vector. Raises EmbedderError; EmbedderBusy when it is too late, and at once when it would be."""
    try:
        async with asyncio.timeout(timeout_s):
            return await embedder.embed(query, within_s=timeout_s)
    except TimeoutError as late:
        raise EmbedderBusy(f"no vector within {timeout_s} s") from late


class Begun:
    """For ``with``: at its end nobody waits for the vector any more. ``outcome``: why nothing is searched for; None:
    it is, with ``text``. ``at``: when it began, by ``time.perf_counter``."""

    __slots__ = ("_embedder", "_task", "_timeout_s", "at", "at_hand", "outcome", "text")

    def __init__(self, outcome: Outcome | None, text: str, embedder: Embedder, *, timeout_s: float) -> None:
        self.outcome = outcome
        self.text = text
        self.at = time.perf_counter()
        self._embedder = embedder
        self._timeout_s = timeout_s
        self.at_hand: Vector | None = None
        """The vector, where nobody has to make it."""
        self._task: asyncio.Task[Vector | EmbedderError] | None = None

    def embed(self, spawn: Spawn) -> None:
        """Begin to embed, unless the vector is at hand."""
        self.at_hand = self._embedder.at_hand(self.text)
        if self.at_hand is None:
            self._task = spawn("embed a question", self._embedded())

    async def under_way(self) -> None:
        """Wait until the embedding, if there is any, needs nobody any more, or ends."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=UNDER_WAY_S)

    async def vector(self) -> Vector:
        """The text's vector. Raises EmbedderError, EmbedderBusy."""
        if self.at_hand is not None:
            return self.at_hand
        outcome = await (self._embedded() if self._task is None else self._task)
        if isinstance(outcome, EmbedderError):
            raise outcome
        return outcome

    async def _embedded(self) -> Vector | EmbedderError:
        """An error is an answer: perhaps nobody waits for it."""
        try:
            return await embed_query(self._embedder, self.text, timeout_s=self._timeout_s)
        except EmbedderError as error:
            return error

    def __enter__(self) -> Begun:
        return self

    def __exit__(self, *_how: object) -> None:
        if self._task is not None:
            self._task.cancel()
