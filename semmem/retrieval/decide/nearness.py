"""Which memories belong to a question, for vectors of a model that nothing was learnt of: by nearness alone.

Two questions, one after the other. Does anything here answer it? Only the best memory is asked, and it has to be the
closer where the question does not speak of whoever asks: "What is the date?" is near something in every store. And
what else may come along? Whatever is not far behind the best, since one answer often lies in several memories.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semmem.retrieval.decide.pronouns import speaks_of_user
from semmem.retrieval.index.memory_index import Scores

EVIDENCE_OWN = 0.25
"""How near the best memory has to be to a question of somebody who speaks of himself, in units of cosine."""
EVIDENCE_OTHER = 0.40
"""How near to any other."""
COVERAGE_WEIGHT = 0.2
"""Of a memory that holds every word of the question."""
COVERAGE_LEAST = 0.5
"""Where no vectors can be compared: the share of the question's words, by rarity, that a memory has to hold."""
SHARE_OF_BEST = 0.5
"""What is kept has at least this share of the best memory's score."""


def near(query: str, scores: Scores) -> npt.NDArray[np.bool_]:
    """A mask (n,) of the memories that may be shown for the question."""
    evidence = scores.cosine + np.float32(COVERAGE_WEIGHT) * scores.coverage
    by_words = held(scores)
    if evidence.max(initial=0.0) < (EVIDENCE_OWN if speaks_of_user(query) else EVIDENCE_OTHER):
        return by_words
    near_the_best: npt.NDArray[np.bool_] = scores.fused >= SHARE_OF_BEST * scores.fused.max()
    return by_words | (near_the_best & (evidence > 0))


def held(scores: Scores) -> npt.NDArray[np.bool_]:
    """A mask (n,) of the memories that were never compared by vector (their cosine is 0) and share enough words."""
    by_words: npt.NDArray[np.bool_] = (scores.cosine == 0) & (scores.coverage >= COVERAGE_LEAST)
    return by_words
