"""Users' words in conversations get their vectors behind everything else, so that questions find them by meaning."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from semmem.background.outage import Outage
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, JournalError
from semmem.ports.talks import Unplaced

log = logging.getLogger(__name__)

BATCH_MAX = 32
LOOK_S = 5.0
"""Between two looks for words without a vector, which any process may have written."""
RETRY_S = 30.0


class TalkPlacing(Protocol):
    """What has vectors made. Raises JournalError."""

    async def unplaced(self, model: str, *, limit: int) -> list[Unplaced]:
        """Words of users without a vector of this model."""

    async def place(self, model: str, vectors: Mapping[tuple[str, str, int], bytes]) -> None:
        """Keep vectors; empty ones stand for words that have none. Of what is gone meanwhile nothing is kept."""


class TalkPlacer:
    """``text_chars_max`` characters of each message are embedded. ``placed`` counts vectors."""

    def __init__(
        self, records: TalkPlacing, embedder: Embedder, *, text_chars_max: int = 2000, look_s: float = LOOK_S
    ) -> None:
        self._records = records
        self._embedder = embedder
        self._text_chars_max = text_chars_max
        self._look_s = look_s
        self._outage = Outage(log, "embed conversations", level=logging.WARNING)
        self.placed = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                while await self.some():
                    pass
                self._outage.worked()
                await asyncio.sleep(self._look_s)
            except (EmbedderError, JournalError) as error:
                self._outage.failed(error)
                await asyncio.sleep(RETRY_S)

    async def some(self) -> int:
        """Place a batch; how many there were. Raises EmbedderError and JournalError."""
        model = self._embedder.signature
        found = await self._records.unplaced(model, limit=BATCH_MAX)
        vectors, failed = dict[tuple[str, str, int], bytes](), list[tuple[str, str, int]]()
        failure: EmbedderError | None = None
        for each in found:
            try:
                vectors[each.key] = await self._vector(each.text)
            except EmbedderError as error:
                failed.append(each.key)
                failure = error
                continue
            vectors |= dict.fromkeys(failed, b"")  # others go, so it is these words: nobody shall wait behind them
            failed.clear()
        if vectors:
            await self._records.place(model, vectors)
            self.placed += len(vectors)
        if failed and failure is not None:
            raise failure
        return len(found)

    async def _vector(self, text: str) -> bytes:
        read = text[: self._text_chars_max].strip()
        return (await self._embedder.embed(read)).astype(np.float16).tobytes() if read else b""
