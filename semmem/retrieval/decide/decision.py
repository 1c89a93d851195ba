"""The one decision, with all the evidence: does this request want anything of the user's memories, and which?

Two calibrated numbers. Each memory has the log-odds that this request needs it: how near it is, how many words it
shares, what kind of memory it is, what kind of request. And the request has the log-odds that it wants any at all. A
memory is shown when both are above their cuts. What matters whenever its topic is touched (an allergy and a dinner)
needs no shared words, and what merely shares words with a poem or a quiz is not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from semmem.memory import Memory, Vector
from semmem.retrieval.decide import features
from semmem.retrieval.decide.features import Heads
from semmem.retrieval.decide.trained import CLASSES, KINDS, Floats, Trained
from semmem.retrieval.index.memory_index import MemoryIndex, Scores

Mask = npt.NDArray[np.bool_]

PROFILE_LEAST = 0.5
"""From this probability on a request is about the user as a person, and lists the profile."""
PROFILE_CUT = -6.0
"""Then only what has hardly anything to do with a profile is left out."""
TOLD_SHARE = 0.9
"""What whoever wrote a memory said of its standing counts so much; the rest is what its vector says."""
STANDING_LEAST = 0.5
UNCALIBRATED_COSINE, UNCALIBRATED_SHARE = 0.3, 0.5
"""For vectors that nothing was learnt of: the best memory has to be so near, and the others to have such a share of its
score (docs/decision.md)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided of n memories. ``logits`` (n,) are the log-odds of each, ``request_logit`` those of the request;
    None where the decision is uncalibrated. ``shown`` (n,) may be shown; ``standing`` (n,) have a budget of their own.
    ``request_class``: one of CLASSES, or empty. ``lists_profile``: the request asks for all that is known."""

    shown: Mask
    standing: Mask
    logits: Floats | None = None
    request_logit: float | None = None
    request_class: str = ""
    lists_profile: bool = False


class Decision:
    """Judges requests with one set of weights. ``trained`` None: uncalibrated, by nearness alone."""

    def __init__(self, trained: Trained | None) -> None:
        self._trained = trained
        self._kinds: WeakKeyDictionary[MemoryIndex, Floats] = WeakKeyDictionary()

    @property
    def is_calibrated(self) -> bool:
        """Whether anything was learnt of this embedding model's vectors."""
        return self._trained is not None

    def verdict(self, text: str, vector: Vector, index: MemoryIndex, scores: Scores, members: Mask) -> Verdict:
        """Which of the index's memories, as far as they are ``members`` (n,), this request shows."""
        trained = self._trained
        if trained is None or trained.class_weights.shape[1] != vector.shape[0] + 1:
            return _by_nearness(index, scores, members)
        heads = heads_of(trained)
        places = np.flatnonzero(members)
        if not len(places):
            return Verdict(members, members)
        kinds = self._kinds_of(index, heads)[places]
        request = features.request_features(heads, text, vector)
        found = features.evidence(scores.at(places))
        logits = features.memory_logits(trained.memory_weights, request, found, kinds)
        weights = trained.request_weights
        request_logit = float(features.top_features(request, found, logits) @ weights[:-1] + weights[-1])
        lists_profile = bool(request[CLASSES.index("profile")] >= PROFILE_LEAST)
        cut = PROFILE_CUT if lists_profile else trained.memory_cut
        shown = (logits >= cut) & (lists_profile or request_logit >= trained.request_cut)
        count = len(index.memories)
        return Verdict(
            shown=_spread(shown, places, count),
            standing=_spread(_is_standing(kinds), places, count),
            logits=_spread_logits(logits, places, count),
            request_logit=request_logit,
            request_class=CLASSES[int(request[: len(CLASSES)].argmax())],
            lists_profile=lists_profile,
        )

    def _kinds_of(self, index: MemoryIndex, heads: Heads) -> Floats:
        known = self._kinds.get(index)
        if known is None:
            known = self._kinds[index] = told_kinds(index.memories, features.kinds(heads, index.vectors))
        return known


def heads_of(trained: Trained) -> Heads:
    """The regressions on vectors alone."""
    return Heads(trained.class_weights, trained.kind_weights, trained.asks_weights)


def told_kinds(memories: Sequence[Memory], guessed: Floats) -> Floats:
    """The kinds (n, K) by vector, moved to what was said of a memory's standing when it was written."""
    told = guessed.copy()
    for row, memory in enumerate(memories):
        if memory.standing is not None:
            told[row] *= 1 - TOLD_SHARE
            told[row, KINDS.index(memory.standing)] += TOLD_SHARE
    return told


def _is_standing(kinds: Floats) -> Mask:
    standing: Mask = kinds[:, :3].sum(axis=1) >= STANDING_LEAST
    return standing


def _by_nearness(index: MemoryIndex, scores: Scores, members: Mask) -> Verdict:
    near = scores.fused >= UNCALIBRATED_SHARE * scores.fused.max(initial=0.0)
    is_anything = bool(scores.cosine.max(initial=0.0) >= UNCALIBRATED_COSINE)
    standing = np.array([memory.standing is not None for memory in index.memories], dtype=np.bool_)
    return Verdict(members & near & (scores.cosine > 0) & is_anything, members & standing)


def _spread(values: Mask, places: npt.NDArray[np.int64], count: int) -> Mask:
    """``values`` at their places among ``count``, false elsewhere."""
    spread = np.zeros(count, dtype=np.bool_)
    spread[places] = values
    return spread


def _spread_logits(logits: Floats, places: npt.NDArray[np.int64], count: int) -> Floats:
    spread = np.full(count, -np.inf, dtype=np.float32)
    spread[places] = logits
    return spread
