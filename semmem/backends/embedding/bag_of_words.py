"""Vectors without a model: a text's words, counted. What shares words is near; of meaning nothing is known."""

from collections.abc import Callable, Sequence
from typing import Unpack
from zlib import crc32

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.local import Limits, LocalEmbedder

SIGNATURE_PREFIX = "none/"


class BagOfWords(LocalEmbedder):
    """Each term of a text adds 1 to, or takes 1 from, one of ``dimension`` places, as its CRC-32 says: alike in every
    process. The cosine of two texts is about the share of terms that they have in common; of two that share none it is
    0 but for one pair in some twenty-five, whose terms meet in a place by chance. ``terms`` reads a text; one in which
    it finds none is a term itself, so that it is near to its like alone."""

    def __init__(
        self, terms: Callable[[str], Sequence[str]], *, dimension: int = 384, **limits: Unpack[Limits]
    ) -> None:
        super().__init__(f"{SIGNATURE_PREFIX}words/{dimension}", dimension=dimension, **limits)
        self._terms = terms

    def _load(self) -> None:
        """There is nothing to load."""

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for term in self._terms(text):
                _count(row, term)
            if not row.any():  # no terms, or each took back what another had added
                _count(row, text)
        return rows


def _count(row: npt.NDArray[np.float32], term: str) -> None:
    digest = crc32(term.encode("utf-8", "replace"))
    row[(digest >> 1) % row.size] += 1.0 if digest & 1 else -1.0
