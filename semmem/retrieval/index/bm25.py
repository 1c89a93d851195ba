"""BM25 by bm25s, for all documents at once and without scipy.

bm25s goes document by document, each with arrays of its own: for memories of a line or two some six microseconds each,
a third of what it takes to make a user's index. The formula is its own, and so are the scores, to the last digit.

bm25s takes scipy's matrices where scipy happens to be installed, which other libraries bring along; this project uses
numpy's. Importing them in vain is 13 MB of every process and a tenth of a second of its start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semmem.imports import as_if_absent

with as_if_absent("scipy"):
    from bm25s.scoring import _score_idf_lucene, _score_tfc_lucene

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def bm25(
    stream: Numbers, document: Numbers, lengths: Numbers, terms_count: int, *, k1: float, b: float
) -> tuple[Numbers, Numbers, Floats]:
    """The scores of every term in every document that holds it, by Lucene's formula.

    ``stream``: the terms of all documents, one after another, as numbers below ``terms_count``, at least one;
    ``document``: whose each is; ``lengths``: of each document, in terms. Back come where each term's scores begin and
    the last one's end (terms_count + 1,), and for each score its document, in order, and the score.
    """
    count = len(lengths)
    held, frequency = _counted(stream * count + document)
    term, of = np.divmod(held, count)
    holders = np.bincount(term, minlength=terms_count)
    idf = np.array([_score_idf_lucene(n, N=count) for n in range(1, int(holders.max()) + 1)], dtype=np.float32)
    share = _score_tfc_lucene(frequency.astype(np.float32), lengths[of], lengths.mean(), k1=k1, b=b)
    starts = np.concatenate(([0], np.cumsum(holders)))
    return starts, of, (idf[holders[term] - 1] * share).astype(np.float32)


def _counted(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct ones in order, and how often each is there."""
    ordered = np.sort(numbers)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[first], np.diff(first, append=len(ordered))
