"""Which of the ranked memories belong to the question at all, where nobody has set a bare threshold.

Two questions, one after the other. Does anything here answer it? Only the best memory is asked, and it has to be the
closer the less the question is about the user's own life: "What is the date?" is near something in every store. And
what else may come along? Whatever is not far behind the best, since one answer often lies in several memories, and
the second is rarely as near as the first.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from semmem.retrieval.index.memory_index import Scores

BELOW_RELEVANCE = "below_relevance"
"""The reason word of what is cut here."""
EVIDENCE_OWN = 0.25
"""How near the best memory has to be to a question about the user's own life, in units of cosine."""
EVIDENCE_OTHER = 0.40
"""How near to any other."""
COVERAGE_WEIGHT = 0.2
"""Of a memory that holds every word of the question."""
COVERAGE_LEAST = 0.5
"""Where no vectors can be compared: the share of the question's words, by rarity, that a memory has to hold."""
SHARE_OF_BEST = 0.5
"""What is kept has at least this share of the best memory's score."""

_OWN = re.compile(
    r"\b(?:my|mine|our|ours|myself|i['’]?m|i['’]ve|(?:do|did|am|was|have|had|were|is|are|should) (?:i|we)"
    r"|mein\w*|unser\w*|mis?|nuestr[oa]s?|mon|mes|nos|notre|minhas?|meus?"
    r"|(?:habe|hatte|bin|war|mag|wohne|arbeite|lebe|esse|trinke|heiße|liebe|hasse|besitze|fahre|spiele|lerne) ich"
    r"|vivo|nací|soy|tengo|me (?:gustan?|encantan?|llamo)|ai-je|suis-je|j['’](?:ai|aime|adore|habite)|je (?:suis|vis)"
    r"|mi[oa]|miei|mie)\b"
    r"|我|私|僕|俺|내|나의|제",
    re.IGNORECASE,
)


def relevant(query: str, scores: Scores) -> npt.NDArray[np.bool_]:
    """A mask (n,) of the memories that may be shown for the question; the others are BELOW_RELEVANCE."""
    evidence = scores.cosine + np.float32(COVERAGE_WEIGHT) * scores.coverage
    by_words: npt.NDArray[np.bool_] = (scores.cosine == 0) & (scores.coverage >= COVERAGE_LEAST)  # 0: never compared
    if evidence.max(initial=0.0) < (EVIDENCE_OWN if is_own(query) else EVIDENCE_OTHER):
        return by_words
    near_the_best: npt.NDArray[np.bool_] = scores.fused >= SHARE_OF_BEST * scores.fused.max()
    return by_words | (near_the_best & (evidence > 0))


def is_own(query: str) -> bool:
    """Whether the question is about the one who asks."""
    return _OWN.search(query) is not None
