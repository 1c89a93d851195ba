"""Which memories hold a question's words (BM25, the words' relatives, pairs of words) and the kind of answer it wants.

BM25 is made for all documents at once and without scipy. bm25s goes document by document, each with arrays of its own:
for memories of a line or two some six microseconds each, a third of what it takes to make a user's index. The formula
is its own, and so are the scores, to the last digit. It takes scipy's matrices where other libraries have brought scipy
along; importing them in vain is 13 MB of every process and a tenth of a second of its start."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from sys import getsizeof

import numpy as np
import numpy.typing as npt

from semmem.imports import as_if_absent
from semmem.retrieval.index.sizes import INTEGER_BYTES, REAL_BYTES
from semmem.text.number_words import CARDINALS, MULTIPLES, ORDINALS
from semmem.text.terms import RELATED
from semmem.text.times.calendar import MONTHS, WEEKDAYS

with as_if_absent("scipy"):
    from bm25s.scoring import _score_idf_lucene, _score_tfc_lucene

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
            starts, self._rows, self._weights = _bm25(stream, document, lengths, len(self._columns))
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
    documents, and nothing has to be kept for each of thousands of pairs. A sort lets others run meanwhile, which
    ``np.unique`` does not, and takes a tenth of its time."""
    low, high = np.minimum(stream[:-1], stream[1:]), np.maximum(stream[:-1], stream[1:])
    codes = (low * terms_count + high) * documents_count + document[:-1]
    return _counted(codes[document[:-1] == document[1:]])[0]


def _bm25(stream: Rows, document: Rows, lengths: Rows, terms_count: int) -> tuple[Rows, Rows, Floats]:
    """The scores of every term in every document that holds it, by Lucene's formula. ``stream``: the terms of all
    documents, one after another, as numbers below ``terms_count``, at least one; ``document``: whose each is;
    ``lengths``: of each document, in terms. Back come where each term's scores begin and the last one's end
    (terms_count + 1,), and for each score its document, in order, and the score."""
    count = len(lengths)
    held, frequency = _counted(stream * count + document)
    term, of = np.divmod(held, count)
    holders = np.bincount(term, minlength=terms_count)
    idf = np.array([_score_idf_lucene(n, N=count) for n in range(1, int(holders.max()) + 1)], dtype=np.float32)
    share = _score_tfc_lucene(
        frequency.astype(np.float32), lengths[of], lengths.mean(), k1=SATURATION, b=LENGTH_PENALTY
    )
    starts = np.concatenate(([0], np.cumsum(holders)))
    return starts, of, (idf[holders[term] - 1] * share).astype(np.float32)


def _counted(numbers: Rows) -> tuple[Rows, Rows]:
    """The distinct ones in order, and how often each is there."""
    ordered = np.sort(numbers)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[first], np.diff(first, append=len(ordered))


# --- the kind of answer ----------------------------------------------------------------------------------------------

# Only English is known. A wrong guess costs little: agreement orders memories that are nearly as good as each other.
KINDS = ("time", "number", "place", "person", "name")

_WANTS = {
    "time": re.compile(r"\bwhen\b|how long|what (?:date|year|month|day|time)\b|which (?:year|month|day)\b", re.I),
    "number": re.compile(r"how (?:many|old|much|often|long)\b|number of|what (?:age|percent)", re.I),
    "place": re.compile(r"\bwhere\b|\b(?:which|what) (?:country|city|place|state|town|location|area)\b", re.I),
    "person": re.compile(r"\bwho(?:m|se)?\b", re.I),
    "name": re.compile(r"\bname|called|title|\b(?:which|what) (?:book|movie|game|song|show|band|author)\b", re.I),
}
_TIMES = frozenset(
    (
        "yesterday today tonight tomorrow last next ago since recently weekend week weeks month months year years day"
        " days morning evening summer winter spring fall autumn"
    ).split()
).union(MONTHS, WEEKDAYS)
_DATE = re.compile(r"(?:19|20)\d\d|\d+(?:st|nd|rd|th)")
_NUMBERS = frozenset("dozen couple several once twice half".split()).union(CARDINALS, ORDINALS, MULTIPLES)
_PLACES = frozenset(
    (
        "country city town beach park school shelter studio store mountain museum home house street church gym office"
        " restaurant cafe café lake"
    ).split()
)
_TO_A_NAME = re.compile(r"\b(?:in|at|to|from|near|visit(?:ed|ing)?)\s+(?:the\s+)?[A-Z]\w")
_PROPER_NAME = re.compile(r"(?<!^)(?<![.!?]\s)\b(?!User\b)[A-Z][a-z]+")
_QUOTED = re.compile(r"""["“][^"”]{3,40}["”]|(?<!\w)'\w[^']{2,40}'(?!\w)""")


def wanted(question: str) -> list[int]:
    """The kinds of answer that would fit, as positions in KINDS."""
    return [at for at, kind in enumerate(KINDS) if _WANTS[kind].search(question)]


def offered(text: str, words: Sequence[str]) -> tuple[bool, ...]:
    """For each of KINDS whether the text, given also as its folded words, holds one."""
    numbers = [word for word in words if word[0].isdecimal()]
    is_named = _PROPER_NAME.search(text) is not None
    return (
        not _TIMES.isdisjoint(words) or any(map(_DATE.fullmatch, numbers)),
        bool(numbers) or not _NUMBERS.isdisjoint(words),
        not _PLACES.isdisjoint(words) or _TO_A_NAME.search(text) is not None,
        is_named,
        is_named or _QUOTED.search(text) is not None,
    )
