"""Decisions that are made beforehand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from semmem.memory import Vector
from semmem.retrieval.decide import request_words
from semmem.retrieval.decide.decision import Decision, RequestVerdict, Verdict
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.decide.trained import CLASSES, KINDS, MEMORY_SIZE, REQUEST_SIZE, TOP_SIZE, Trained
from semmem.retrieval.index.memory_index import Mask, MemoryIndex, Scores

REFUSALS = {"greeting": "courtesy", "general_fact": "knowledge"}
"""The outcome of a request of this class, for which nobody's memories are shown."""


class Decided(Decision):
    """Every request is what ``word`` says: for ``greeting`` and ``general_fact`` nothing is shown, for ``search`` what
    is near. Remembers what it was asked."""

    def __init__(self, word: str = "search") -> None:
        super().__init__()
        self.word = word
        self.asked: list[str] = []

    def request_alone(
        self, text: str, vector: Vector, *, wants: bool = False, said: RequestWords | None = None
    ) -> RequestVerdict:
        purpose = REFUSALS.get(self.word, "recall")
        is_general = not wants and purpose != "recall"
        return RequestVerdict(-math.inf, False, purpose, is_general, lists_profile=False)

    def verdict(
        self,
        text: str,
        vector: Vector,
        index: MemoryIndex,
        scores: Scores,
        members: Mask,
        *,
        wants: bool = False,
        said: RequestWords | None = None,
    ) -> Verdict:
        self.asked.append(text)
        purpose = REFUSALS.get(self.word, "recall")
        is_served = wants or purpose == "recall"
        found = super().verdict(text, vector, index, scores, members)
        shown = found.shown if is_served else np.zeros_like(members)
        request = RequestVerdict(0.0, is_served, purpose, not is_served, lists_profile=False)
        return replace(found, shown=shown, request=request)


def weights(dimension: int, *, signature: str = "made/by/hand") -> Trained:
    """Weights that know nothing, all of them 0, to be changed at some places."""
    top = TOP_SIZE + REQUEST_SIZE * (1 + TOP_SIZE)
    return Trained(
        signature,
        class_weights=np.zeros((len(CLASSES), dimension + 1), dtype=np.float32),
        kind_weights=np.zeros((len(KINDS), dimension + 1), dtype=np.float32),
        asks_weights=np.zeros(dimension + 1, dtype=np.float32),
        word_weights=np.zeros(request_words.BUCKETS, dtype=np.float32),
        memory_weights=np.zeros(MEMORY_SIZE + 1, dtype=np.float32),
        request_weights=np.zeros(top + 1, dtype=np.float32),
        memory_cut=0.0,
        request_cut=0.0,
    )
