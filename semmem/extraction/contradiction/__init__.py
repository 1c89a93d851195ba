"""Do two statements about a user say the same, exclude each other, or stand side by side? By rules, without a model.

Embeddings cannot tell: "is allergic" and "is not allergic" are 0.98 apart from 1, "lives in Boston" and "moved to
Seattle" 0.61. So both sentences are read into slots (statement.py), and the slots are compared here.
"""

from __future__ import annotations

from semmem.extraction.contradiction.verdict import Verdict, details_differ, judge

__all__ = ["Verdict", "details_differ", "judge"]
