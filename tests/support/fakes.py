"""Stand-ins that really work, shared by every part's tests."""

from __future__ import annotations

import asyncio
import hashlib
import re

import numpy as np

from semmem.background import Tasks
from semmem.memory import Vector
from semmem.ports.store import Store
from semmem.retrieval.index.hot_memories import HotMemories


def hot(store: Store, *, staleness_s: float = 0.0) -> HotMemories:
    """The store as the search wants it; by default every search reads it anew."""
    return HotMemories(store, spawn=Tasks().spawn, staleness_s=staleness_s)


class HashEmbedder:
    """A bag of words as a vector: each word adds 1 to one of ``dimension`` places, chosen by its hash.

    The same in every process. Two texts' cosine is about the share of words they have in common; case and
    punctuation do not count.
    """

    def __init__(self, dimension: int = 384) -> None:
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def signature(self) -> str:
        return f"hash/words/{self._dimension}"

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        return bag_of_words(text, self._dimension)

    def at_hand(self, text: str) -> Vector | None:
        return None


class HeldEmbedder(HashEmbedder):
    """Counts: ``asked``, every text; ``made``, vectors; ``waiting``, who waits for one now. None is made before
    ``gate`` is set; ``kept`` are at hand."""

    def __init__(self, *, held: bool = True) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.kept: dict[str, Vector] = {}
        self.made = self.waiting = 0
        self.gate = asyncio.Event()
        if not held:
            self.gate.set()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.asked.append(text)
        self.waiting += 1
        try:
            await self.gate.wait()
        finally:
            self.waiting -= 1
        self.made += 1
        return await super().embed(text, within_s=within_s)

    def at_hand(self, text: str) -> Vector | None:
        return self.kept.get(text)


def bag_of_words(text: str, dimension: int = 384) -> Vector:
    """What HashEmbedder makes of a text."""
    vector = np.zeros(dimension, dtype=np.float32)
    for word in re.findall(r"\w+", text.casefold()) or [""]:
        digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        vector[int.from_bytes(digest, "big") % dimension] += 1.0
    return (vector / np.linalg.norm(vector)).astype(np.float32)
