"""Do two statements about a user say the same, exclude each other, or stand side by side? By rules, without a model.

Embeddings cannot tell: "is allergic" and "is not allergic" are 0.98 apart from 1, "lives in Boston" and "moved to
Seattle" 0.61. So the words are compared as they stand (wording.py), and both sentences are read into slots
(statement.py); an old statement gives way only to evidence that it is replaced, whole (replaced.py).
"""

from __future__ import annotations

from semmem.extraction.contradiction.verdict import Verdict, details_differ, judge, may
from semmem.extraction.contradiction.wording import repeats

__all__ = ["Verdict", "details_differ", "judge", "may", "repeats"]
