"""Whoever learns has its texts embedded a few at a time, so that no request's question waits behind all of them."""

from __future__ import annotations

import asyncio

from semmem.memory import Vector
from semmem.ports.embedder import Embedder, EmbedderWrapper


class PatientEmbedder(EmbedderWrapper):
    """An Embedder that has at most ``texts_max`` texts under way, behind those of requests; the others wait here, in
    the order they came."""

    def __init__(self, embedder: Embedder, *, texts_max: int) -> None:
        super().__init__(embedder)
        self._slots = asyncio.Semaphore(texts_max)

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        async with self._slots:
            return await super().embed(text)
