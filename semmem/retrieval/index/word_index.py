"""Which memories hold a question's words: BM25, the words' relatives, pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from sys import getsizeof

import numpy as np
import numpy.typing as npt

from semmem.retrieval.index.bm25 import bm25
from semmem.retrieval.index.sizes import INTEGER_BYTES, REAL_BYTES
from semmem.text.terms import RELATED

SATURATION = 0.9
"""BM25's k1: in a text of a line or two, saying a word twice means little."""
LENGTH_PENALTY = 0.3
"""BM25's b: most memories are of like length, and a long one has more to answer with."""
RELATED_WEIGHT = 0.8
"""A related word counts so much of what the question's own word would."""
QUERY_TERMS_MAX = 32
"""Of a longer question only the terms at its beginning and its end count: that is where people say what they want."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


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
    """Documents, each as its terms in order. BM25 by bm25s, Lucene's formula; a term's rarity is its
    idf, by the number of documents that hold it."""

    def __init__(self, documents: Sequence[list[str]]) -> None:
        self._count = len(documents)
        self._columns: dict[str, int] = {}
        number_of = self._columns.setdefault
        stream = np.array([number_of(term, len(self._columns)) for some in documents for term in some], dtype=np.int64)
        lengths = np.array([len(some) for some in documents], dtype=np.int64)
        document = np.repeat(np.arange(self._count), lengths)
        holders = np.arange(self._count + 1)
        self._rarity: list[float] = np.log1p((self._count - holders + 0.5) / (holders + 0.5)).tolist()
        self._starts, self._rows, self._weights = [0], _NO_ROWS, _NO_WEIGHTS
        if self._columns:
            starts, self._rows, self._weights = bm25(
                stream, document, lengths, len(self._columns), k1=SATURATION, b=LENGTH_PENALTY
            )
            self._starts = starts.tolist()
        self._pairs = _pairs(stream, document, len(self._columns), self._count)

    @property
    def bytes(self) -> int:
        """What it takes in memory, without what every index has."""
        of_terms = getsizeof(self._columns) + sum(map(getsizeof, self._columns), 2 * INTEGER_BYTES * len(self._columns))
        arrays = self._rows.nbytes + self._weights.nbytes + self._pairs.nbytes
        return of_terms + arrays + getsizeof(self._starts) + (REAL_BYTES + 8) * len(self._rarity)

    def match(self, query: list[str]) -> Match:
        """``query``: the question's terms in order; a repeated term counts once."""
        if len(query) > QUERY_TERMS_MAX:
            query = query[: QUERY_TERMS_MAX // 2] + query[-QUERY_TERMS_MAX // 2 :]
        asked = dict.fromkeys(query)
        keyword, related, held = self._zeros(), self._zeros(), self._zeros()
        wanted = 0.0
        for term in asked:
            rows, weights = self._column(term)
            rarity = self._rarity[len(rows)]
            wanted += rarity
            if len(rows):
                keyword[rows] += weights
                held[rows] += rarity
            if others := [other for other in RELATED.get(term, ()) if other in self._columns and other not in asked]:
                related += self._related(others, rows)
        return Match(keyword, related, held / np.float32(wanted or 1.0), self._pairs_held(query))

    def _related(self, others: Sequence[str], rows: Rows) -> Floats:
        """The best of a term's relatives in each document but its own; none is worth more than the term itself."""
        best, rarity = self._zeros(), self._rarity[len(rows)]
        for other in others:
            holders, weights = self._column(other)
            share = RELATED_WEIGHT * min(1.0, rarity / self._rarity[len(holders)])
            best[holders] = np.maximum(best[holders], np.float32(share) * weights)
        best[rows] = 0.0
        return best

    def _pairs_held(self, query: list[str]) -> Floats:
        held, wanted = self._zeros(), 0.0
        for pair in {tuple(sorted(pair)) for pair in pairwise(query)}:
            rows = self._holders_of_pair(*pair)
            rarity = self._rarity[len(rows)]
            wanted += rarity
            held[rows] += rarity
        return held / np.float32(wanted or 1.0)

    def _holders_of_pair(self, one: str, other: str) -> Rows:
        if one not in self._columns or other not in self._columns:
            return _NO_ROWS
        low, high = sorted((self._columns[one], self._columns[other]))
        code = (low * len(self._columns) + high) * self._count
        start, stop = np.searchsorted(self._pairs, (code, code + self._count))
        return self._pairs[start:stop] - code

    def _column(self, term: str) -> tuple[Rows, Floats]:
        """The documents with a term, and its BM25 in each."""
        column = self._columns.get(term)
        if column is None:
            return _NO_ROWS, _NO_WEIGHTS
        span = slice(self._starts[column], self._starts[column + 1])
        return self._rows[span], self._weights[span]

    def _zeros(self) -> Floats:
        return np.zeros(self._count, dtype=np.float32)


_NO_ROWS: Rows = np.empty(0, dtype=np.int64)
_NO_WEIGHTS: Floats = np.empty(0, dtype=np.float32)


def _pairs(stream: Rows, document: Rows, terms_count: int, documents_count: int) -> Rows:
    """Every (pair of neighbouring terms, document) once, as one number each, in order: a search finds a pair's
    documents, and nothing has to be kept for each of thousands of pairs.

    A sort lets others run meanwhile, which ``np.unique`` does not, and takes a tenth of its time."""
    low, high = np.minimum(stream[:-1], stream[1:]), np.maximum(stream[:-1], stream[1:])
    codes = (low * terms_count + high) * documents_count + document[:-1]
    found: Rows = codes[document[:-1] == document[1:]]
    found.sort()
    distinct: Rows = found[np.diff(found, prepend=-1) > 0]
    return distinct
