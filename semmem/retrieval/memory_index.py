"""Everything that ranking needs of one user's live memories: vectors in a row, words in an inverted index.

Nothing here waits or reads anything: an index is built in a worker thread and asked on the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
import numpy.typing as npt

from semmem.memory import Memory, Vector
from semmem.retrieval.words import terms

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

KEYWORD_WEIGHT = 0.3
"""Of the best keyword match in units of cosine."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per memory, in the order of ``MemoryIndex.memories``; each array has shape (n,), float32.

    ``cosine``: in [-1, 1], 0 for a memory without an embedding or without a question's vector. ``keyword``: BM25, 0 or
    more. ``coverage``: the share of the question's words, weighted by how rare they are, that the memory holds, 0 to 1.
    ``fused``: what orders the memories, in units of cosine.
    """

    cosine: Floats
    keyword: Floats
    coverage: Floats
    fused: Floats


class MemoryIndex:
    """One user's memories, ready to be ranked. Immutable; ``memories`` are in the order of their ids."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.memories = tuple(sorted(memories, key=lambda memory: memory.id))
        self._vectors, self._has_vector = _stacked(self.memories)
        self._words = _Words([terms(memory.content) for memory in self.memories])

    def scores(self, query: str, vector: Vector | None, members: Mask | None = None) -> Scores:
        """How well each memory fits the question. Scores of memories outside ``members`` (n,) mean nothing.

        ``vector`` None: by words alone. The same memories have the same scores in whatever order they were given.
        """
        count = len(self.memories)
        chosen = np.ones(count, dtype=np.bool_) if members is None else members
        cosine = np.zeros(count, dtype=np.float32)
        if vector is not None and self._vectors.shape[1:] == vector.shape:
            cosine = np.clip(self._vectors @ vector, -1.0, 1.0)
        keyword, coverage = self._words.match(terms(query))
        best = float(keyword[chosen].max(initial=0.0))
        fused = cosine + np.float32(KEYWORD_WEIGHT / best if best > 0 else 0.0) * keyword
        return Scores(cosine, keyword, coverage, fused)


class _Words:
    """BM25 over the memories' terms, by bm25s (Lucene's formula, k1 1.5, b 0.75)."""

    def __init__(self, documents: list[list[str]]) -> None:
        self._count = len(documents)
        self._index = bm25s.BM25(method="lucene", csc_backend="numpy")
        self._is_empty = not any(documents)
        if not self._is_empty:
            self._index.index(documents, show_progress=False, create_empty_token=False)

    def match(self, query: Sequence[str]) -> tuple[Floats, Floats]:
        """BM25 of each memory, and the share of the question's rarity that it holds."""
        keyword = np.zeros(self._count, dtype=np.float32)
        held = np.zeros(self._count, dtype=np.float32)
        wanted = 0.0
        if self._is_empty:
            return keyword, held
        columns, starts = self._index.vocab_dict, self._index.scores["indptr"]
        for term in dict.fromkeys(query):
            column = columns.get(term)
            span = slice(0, 0) if column is None else slice(int(starts[column]), int(starts[column + 1]))
            rarity = float(np.log1p((self._count - (span.stop - span.start) + 0.5) / (span.stop - span.start + 0.5)))
            wanted += rarity
            rows = self._index.scores["indices"][span]
            keyword[rows] += self._index.scores["data"][span]
            held[rows] += np.float32(rarity)
        return keyword, held / np.float32(wanted or 1.0)


def _stacked(memories: Sequence[Memory]) -> tuple[Floats, Mask]:
    """The vectors of those that have one of the common length; rows of zeros for the others."""
    lengths = [memory.embedding.size for memory in memories if memory.embedding is not None]
    dimension = max(set(lengths), key=lambda length: (lengths.count(length), length)) if lengths else 0
    vectors = np.zeros((len(memories), dimension), dtype=np.float32)
    has_vector = np.zeros(len(memories), dtype=np.bool_)
    for row, memory in enumerate(memories):
        if memory.embedding is not None and memory.embedding.size == dimension:
            vectors[row] = memory.embedding
            has_vector[row] = True
    return vectors, has_vector
