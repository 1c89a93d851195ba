"""Which of the ranked memories belong to the question at all, where nobody has set a bare threshold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semmem.retrieval.memory_index import Scores

BELOW_RELEVANCE = "below_relevance"
COSINE_SURE = 0.35
"""From here on a memory is relevant by its meaning alone."""
COSINE_LEAST = 0.15
"""Below this no words help."""
COVERAGE_LEAST = 0.5


def relevant(query: str, scores: Scores) -> npt.NDArray[np.bool_]:
    """A mask (n,) of the memories that may be shown for the question; the reason of the others: BELOW_RELEVANCE."""
    by_words = (scores.cosine >= COSINE_LEAST) & (scores.coverage >= COVERAGE_LEAST)
    return (scores.cosine >= COSINE_SURE) | by_words
