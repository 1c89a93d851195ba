"""What every embedder around another embedder has in common."""

from __future__ import annotations

from semmem.memory import Vector
from semmem.ports.embedder import Embedder


class EmbedderWrapper:
    """An Embedder that passes every call on to the one inside.

    The only class that does nothing but that, so that a subclass says only what it does differently.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def signature(self) -> str:
        return self._embedder.signature

    async def open(self) -> None:
        await self._embedder.open()

    async def close(self) -> None:
        await self._embedder.close()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        return await self._embedder.embed(text, within_s=within_s)

    def at_hand(self, text: str) -> Vector | None:
        return self._embedder.at_hand(text)
