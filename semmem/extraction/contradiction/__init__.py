"""Do two statements about a user say the same, exclude each other, or stand side by side? Without a language model.

Embeddings alone cannot tell: "is allergic" and "is not allergic" are 0.98 apart from 1, "lives in Boston" and "moved
to Seattle" 0.61. So the words are compared as they stand (wording.py, quantities.py); what they leave open a small
judge decides (pair_model.py) from words and vectors together, and only within guards (verdict.py).
"""

from __future__ import annotations

from semmem.extraction.contradiction.pair_model import Likelihoods, PairModel, nameless, parts, trained_for
from semmem.extraction.contradiction.verdict import (
    Judged,
    Verdict,
    apart,
    bars_for,
    closed,
    decided,
    details_differ,
    judge,
    may,
)
from semmem.extraction.contradiction.wording import repeats

__all__ = [
    "Judged",
    "Likelihoods",
    "PairModel",
    "Verdict",
    "apart",
    "bars_for",
    "closed",
    "decided",
    "details_differ",
    "judge",
    "may",
    "nameless",
    "parts",
    "repeats",
    "trained_for",
]
