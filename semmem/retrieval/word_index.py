"""Which memories hold a question's words: BM25, the words' relatives, pairs of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import bm25s
import numpy as np
import numpy.typing as npt

from semmem.retrieval.words import pairs, related_words

SATURATION = 0.9
"""BM25's k1: in a text of a line or two, saying a word twice means little."""
LENGTH_PENALTY = 0.3
"""BM25's b: most memories are of like length, and a long one has more to answer with."""
RELATED_WEIGHT = 0.8
"""A related word counts so much of what the question's own word would."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Match:
    """For each document, shape (n,), float32: ``keyword``, BM25 of the question's terms; ``related``, what relatives of
    those terms add that it does not hold; ``coverage`` and ``pairs``, the share of the question's terms and of its
    pairs of neighbouring terms that it holds, each weighted by its rarity, 0 to 1."""

    keyword: Floats
    related: Floats
    coverage: Floats
    pairs: Floats


class WordIndex:
    """Documents, each as its terms in order. BM25 by bm25s, Lucene's formula; rarity is its idf."""

    def __init__(self, documents: Sequence[list[str]]) -> None:
        self._count = len(documents)
        self._columns: dict[str, int] = {}
        self._bm25 = bm25s.BM25(k1=SATURATION, b=LENGTH_PENALTY, method="lucene", csc_backend="numpy")
        if any(documents):
            self._bm25.index((_numbered(documents, self._columns), self._columns), show_progress=False)
        self._pairs = _postings(map(pairs, documents))

    def match(self, query: list[str]) -> Match:
        """``query``: the question's terms in order; a repeated term counts once."""
        asked = dict.fromkeys(query)
        keyword, related, held = self._zeros(), self._zeros(), self._zeros()
        for term in asked:
            rows, weights = self._column(term)
            keyword[rows] += weights
            held[rows] += self._rarity(len(rows))
            related += self._related(term, asked, rows)
        wanted = sum(self._rarity(len(self._column(term)[0])) for term in asked)
        return Match(keyword, related, held / np.float32(wanted or 1.0), self._pairs_held(query))

    def _related(self, term: str, asked: Iterable[str], rows: Rows) -> Floats:
        """The best of the term's relatives in each document without it; none is worth more than the term itself."""
        best = self._zeros()
        rarity = self._rarity(len(rows))
        for other in related_words().get(term, ()):
            found, weights = self._column(other)
            if len(found) and other not in asked:
                share = min(1.0, rarity / self._rarity(len(found)))
                best[found] = np.maximum(best[found], weights * np.float32(RELATED_WEIGHT * share))
        best[rows] = 0.0
        return best

    def _pairs_held(self, query: list[str]) -> Floats:
        held, wanted = self._zeros(), 0.0
        for pair in pairs(query):
            rows = self._pairs.get(pair, _NO_ROWS)
            held[rows] += self._rarity(len(rows))
            wanted += float(self._rarity(len(rows)))
        return held / np.float32(wanted or 1.0)

    def _column(self, term: str) -> tuple[Rows, Floats]:
        """The documents with a term, and its BM25 in each."""
        column = self._columns.get(term)
        if column is None:
            return _NO_ROWS, _NO_WEIGHTS
        scores = self._bm25.scores
        span = slice(scores["indptr"][column], scores["indptr"][column + 1])
        return scores["indices"][span], scores["data"][span]

    def _rarity(self, holders: int) -> np.float32:
        """idf of what so many documents hold."""
        return np.float32(np.log1p((self._count - holders + 0.5) / (holders + 0.5)))

    def _zeros(self) -> Floats:
        return np.zeros(self._count, dtype=np.float32)


_NO_ROWS: Rows = np.empty(0, dtype=np.int32)
_NO_WEIGHTS: Floats = np.empty(0, dtype=np.float32)


def _numbered(documents: Sequence[list[str]], columns: dict[str, int]) -> list[list[int]]:
    """The documents with numbers for terms, which bm25s takes faster; ``columns`` is filled on the way."""
    for term in sorted(set(chain.from_iterable(documents))):
        columns[term] = len(columns)
    return [[columns[term] for term in document] for document in documents]


def _postings(documents: Iterable[set[tuple[str, str]]]) -> dict[tuple[str, str], Rows]:
    rows: dict[tuple[str, str], list[int]] = {}
    for row, held in enumerate(documents):
        for pair in held:
            rows.setdefault(pair, []).append(row)
    return {pair: np.array(found, dtype=np.int32) for pair, found in rows.items()}
