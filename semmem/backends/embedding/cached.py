"""Any embedder, with a cache in front."""

import asyncio
import hashlib
import time
from collections.abc import Callable

from cachetools import TTLCache

from semmem.memory import Vector
from semmem.ports.embedder import CacheUse, Embedder, EmbedderWrapper
from semmem.ports.errors import EmbedderBusy, EmbedderError

_Flight = tuple[bytes, bool]
"""A text that is being embedded, and whether a request waits for it."""


class CachedEmbedder(EmbedderWrapper):
    """Keeps the ``entries_max`` most recently used vectors, each for at most ``ttl_s`` seconds. Equal texts that are
    asked for at the same time are computed once. Texts are kept only as digests. Failures are not kept. For one event
    loop; ``clock`` returns seconds and never goes back."""

    def __init__(
        self,
        inner: Embedder,
        *,
        entries_max: int = 1000,
        ttl_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if entries_max < 1 or ttl_s <= 0:
            raise ValueError("entries_max is at least 1, ttl_s more than 0")
        super().__init__(inner)
        self._entries: TTLCache[bytes, Vector, float] = TTLCache(entries_max, ttl_s, clock)
        self._flights: dict[_Flight, asyncio.Future[Vector | EmbedderError | None]] = {}
        self._hits = self._misses = 0

    @property
    def cache_use(self) -> CacheUse:
        """Whoever waits for the same text of another is a miss too: nothing was kept."""
        self._entries.expire()
        return CacheUse(self._hits, self._misses, len(self._entries))

    async def close(self) -> None:
        self._entries.clear()
        await super().close()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        """As the inner embedder; the vector is shared between callers and read-only. Who has time may follow a request,
        but no request follows who has time."""
        key = _key(text)
        if (vector := self._entries.get(key)) is not None:
            self._hits += 1
            return vector
        self._misses += 1
        while True:
            if (vector := self._entries.get(key)) is not None:
                return vector
            flight = self._flights.get((key, True))
            if flight is None and within_s is None:
                flight = self._flights.get((key, False))
            if flight is None:
                return await self._lead(key, text, within_s)
            # Shielded: a follower that is cancelled must not cancel the flight of the others.
            outcome = await asyncio.shield(flight)
            if isinstance(outcome, EmbedderBusy) and within_s is None:
                continue  # too late for a request, but not for who has time
            if isinstance(outcome, EmbedderError):
                raise type(outcome)(str(outcome)) from outcome
            if outcome is not None:
                return outcome
            # The leader was cancelled before it had a vector: go round, somebody else leads.

    def at_hand(self, text: str) -> Vector | None:
        return self._entries.get(_key(text))

    async def _lead(self, key: bytes, text: str, within_s: float | None) -> Vector:
        at = (key, within_s is not None)
        flight = self._flights[at] = asyncio.get_running_loop().create_future()
        outcome: Vector | EmbedderError | None = None
        try:
            outcome = await super().embed(text, within_s=within_s)
            outcome.setflags(write=False)
            self._entries[key] = outcome
            return outcome
        except EmbedderError as error:
            outcome = error
            raise
        finally:
            del self._flights[at]
            flight.set_result(outcome)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
