"""The one decision, with all the evidence: does this request want anything of the user's memories, and which?

Two calibrated numbers. Each memory has the log-odds that this request needs it: how near it is, how many words it
shares, what kind of memory it is, what kind of request. And the request has the log-odds that it wants any at all. A
memory is shown when both are above their cuts. What matters whenever its topic is touched (an allergy and a dinner)
needs no shared words, and what merely shares words with a poem or a quiz is not shown.

Where a reader was learnt for the embedding model, a memory's log-odds are the mean of what regression and reader
say: the one knows what is asked for in so many words, the other what it is good for. Shown is what is above the
reader's cut.

For vectors of a model that nothing was learnt of nearness alone decides. Does anything here answer the question? Only
the best memory is asked, and it has to be the closer where the question does not speak of whoever asks: "What is the
date?" is near something in every store. And what else may come along? Whatever is not far behind the best, since one
answer often lies in several memories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from semmem.memory import Memory, Vector
from semmem.retrieval.decide import features
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.decide.request_words import speaks_of_user
from semmem.retrieval.decide.signals import asks_for_all
from semmem.retrieval.decide.trained import CLASSES, KINDS, Floats, Reader, Trained
from semmem.retrieval.feedback import Votes
from semmem.retrieval.index.memory_index import Mask, MemoryIndex, Scores

RECALL, PROFILE = CLASSES.index("recall"), CLASSES.index("profile")
MUST = KINDS.index("must")
GENERAL = [CLASSES.index(purpose) for purpose in ("knowledge", "task", "courtesy")]
SPEAKS = slice(len(CLASSES) + 1, None)
SPEAKS_OF_USER = slice(len(CLASSES) + 1, len(CLASSES) + 5)
"""Where the flags of request_words.py stand among the features of a request; of these all but the last."""
GENERAL_LEAST = 0.97
"""From this probability on a request is called one of general knowledge, if it does not speak of the user."""
PROFILE_LEAST = 0.5
"""From this probability on a request is about the user as a person, and lists the profile."""
PROFILE_CUT = -6.0
"""Then only what has hardly anything to do with a profile is left out."""
TOLD_SHARE = 0.9
"""What whoever wrote a memory said of its standing counts so much; the rest is what its vector says."""
STANDING_LEAST = 0.5
"""Of the first three kinds together."""
RECALL_LENIENCY = 0.5
"""How much lower the cut is where a question that asks to be reminded would be shown nothing."""
LOGIT_WEIGHT = 0.3
"""Of a memory's log-odds, in units of cosine: they order what is nearly as near."""
READ_MAX = 200
"""So many memories, the best by the regressions, are read together with the request: 0.3 ms of processor time."""
GENERAL_STRICTNESS = 2.0
"""How much surer a request has to be that looks like general knowledge, a task or a courtesy."""
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


@dataclass(frozen=True, slots=True)
class RequestVerdict:
    """What was decided of a request. ``logit``: the log-odds that it wants any memory, minus infinity where there is
    none; ``is_served``: they are high enough. ``purpose``: one of CLASSES. ``is_general``: it is plain that nobody's
    memories have to do with it. ``lists_profile``: it asks for all that is known of the user."""

    logit: float
    is_served: bool
    purpose: str
    is_general: bool
    lists_profile: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided of n memories. ``shown`` (n,) may be shown; ``standing`` (n,) have a budget of their own;
    ``logits`` (n,) are the log-odds of each. ``logits`` and ``request`` are None where the decision is uncalibrated."""

    shown: Mask
    standing: Mask
    logits: Floats | None = None
    request: RequestVerdict | None = None


class Decision:
    """Judges requests with one set of weights. ``trained`` None: uncalibrated, by nearness alone. ``reader`` None: by
    the regressions alone. ``votes``: what users said of their memories, which moves each memory's own log-odds a
    little, and the request's not at all."""

    def __init__(
        self, trained: Trained | None = None, votes: Votes | None = None, reader: Reader | None = None
    ) -> None:
        self._trained = trained
        self._reader = reader
        self._votes = Votes() if votes is None else votes
        self._known: WeakKeyDictionary[MemoryIndex, _Known] = WeakKeyDictionary()

    @property
    def cut(self) -> float:
        """The least log-odds of what is shown; minus infinity where it is uncalibrated."""
        if self._reader is not None:
            return self._reader.cut
        return -math.inf if self._trained is None else self._trained.memory_cut

    def feedback_stamp(self, user: str) -> int:
        """Another one whenever the user has said something of a memory."""
        return self._votes.stamp(user)

    def heard(self, text: str) -> RequestWords | None:
        """What a request's words say for themselves, so that it can be worked out while its vector is made; None where
        nothing was learnt of words."""
        return None if self._trained is None else features.request_words_of(self._trained, text)

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
        """Which of the index's memories, as far as they are ``members`` (n,), this request shows. ``wants``: somebody
        else has said that the request is not one of general knowledge. ``said``: what ``heard`` says of the text, where
        that is known."""
        trained, places = self._trained, np.flatnonzero(members)
        if trained is None or not len(places) or not _is_for(trained, vector):
            told = np.array([memory.standing is not None for memory in index.memories], dtype=np.bool_)
            return Verdict(members & near(text, scores), members & told)
        about = _about(trained, text, vector, said)
        known, is_all = self._known_of(index, trained), len(places) == len(members)
        shifts = self._shifts(index, known)
        kinds, here = (known.kinds, scores) if is_all else (known.kinds[places], scores.at(places))
        found = features.evidence(here)
        logits = features.memory_logits(trained.memory_weights, about, found, kinds)
        request = _request_verdict(trained, about, features.top_features(about, found, logits), wants=wants)
        reader = self._reader if request.is_served and not request.lists_profile else None
        if reader is not None:
            vectors = index.vectors if is_all else index.vectors[places]
            logits = _read(reader, logits, vector, vectors, found.each, about[SPEAKS])
        if shifts is not None and not request.lists_profile:
            logits = logits + (shifts if is_all else shifts[places])
        shown = held(here)
        if request.is_served:
            cut = PROFILE_CUT if request.lists_profile else self.cut
            if not request.lists_profile and logits.max() < cut:
                cut -= RECALL_LENIENCY * float(about[RECALL])
            shown = shown | (logits >= np.float32(cut))
        if is_all:
            return Verdict(shown, known.standing, logits, request)
        shown, logits = _spread(shown, places, len(members), False), _spread(logits, places, len(members), -np.inf)
        return Verdict(shown, known.standing & members, logits, request)

    def request_alone(
        self, text: str, vector: Vector, *, wants: bool = False, said: RequestWords | None = None
    ) -> RequestVerdict | None:
        """What can be said of a request where there is no memory to show: what it is for, by its class alone. None
        where the decision is uncalibrated."""
        trained = self._trained
        if trained is None or not _is_for(trained, vector):
            return None
        return _request_verdict(trained, _about(trained, text, vector, said), None, wants=wants)

    def _known_of(self, index: MemoryIndex, trained: Trained) -> _Known:
        known = self._known.get(index)
        if known is None:
            kinds = told_kinds(index.memories, features.kinds(trained, index.vectors))
            known = self._known[index] = _Known(kinds, kinds[:, :3].sum(axis=1) >= STANDING_LEAST)
        return known

    def _shifts(self, index: MemoryIndex, known: _Known) -> Floats | None:
        """What the user's votes add to the log-odds (n,); None where there are none. What the user must or must not is
        not voted away."""
        votes = self._votes.of(index.memories[0].user)
        if votes is None:
            return None
        if known.shifts is None or known.shifts[0] != votes.stamp:
            said = np.array([votes.shift(memory) for memory in index.memories], dtype=np.float32)
            known.shifts = votes.stamp, np.where(said < 0, said * (1 - known.kinds[:, MUST]), said)
        return known.shifts[1]


@dataclass(slots=True)
class _Known:
    """Of n memories, whatever is asked: their ``kinds`` (n, K), which are ``standing`` (n,), and what votes add to each
    (n,), with the stamp of these votes."""

    kinds: Floats
    standing: Mask
    shifts: tuple[int, Floats] | None = None


def _about(trained: Trained, text: str, vector: Vector, said: RequestWords | None) -> Floats:
    """The request's own features; of one that asks for all that is known, the class is certain."""
    about = features.request_features(trained, text, vector, said)
    if asks_for_all(text):
        about[: len(CLASSES)] = 0.0
        about[PROFILE] = 1.0
    return about


def _read(reader: Reader, proposed: Floats, vector: Vector, vectors: Floats, evidence: Floats, flags: Floats) -> Floats:
    """The mean (n,) of what the regression and the reader say of the best READ_MAX that the regression proposes; minus
    infinity of the others."""
    is_few = len(proposed) <= READ_MAX
    best = slice(None) if is_few else np.argpartition(-proposed, READ_MAX)[:READ_MAX]
    logits = np.full(len(proposed), -np.inf, dtype=np.float32)
    read = reader.logits(vector, vectors[best], evidence[best], flags)
    logits[best] = np.float32(1.0 - reader.share) * proposed[best] + np.float32(reader.share) * read
    return logits


def _is_for(trained: Trained, vector: Vector) -> bool:
    """Whether anything can be said of this vector: it is of the right length, and says something itself."""
    return trained.asks_weights.size == vector.size + 1 and bool(np.isfinite(vector).all() and vector.any())


def _request_verdict(trained: Trained, about: Floats, top: Floats | None, *, wants: bool) -> RequestVerdict:
    """``about``: the request's own features; ``top``: with those of the best memories, None where there is none."""
    general, lists_profile = float(about[GENERAL].sum()), bool(about[PROFILE] >= PROFILE_LEAST)
    logit, is_served = -math.inf, False
    if top is not None:
        logit = float(top @ trained.request_weights[:-1] + trained.request_weights[-1])
        cut = trained.request_cut + GENERAL_STRICTNESS * general
        is_served = wants or lists_profile or logit >= cut
    is_general = not wants and not is_served and general >= GENERAL_LEAST and not about[SPEAKS_OF_USER].any()
    return RequestVerdict(logit, is_served, CLASSES[int(about[: len(CLASSES)].argmax())], is_general, lists_profile)


def told_kinds(memories: Sequence[Memory], guessed: Floats) -> Floats:
    """The kinds (n, K) by vector, moved to what was said of a memory's standing when it was written."""
    told = guessed.copy()
    for row, memory in enumerate(memories):
        if memory.standing is not None:
            told[row] *= 1 - TOLD_SHARE
            told[row, KINDS.index(memory.standing)] += TOLD_SHARE
    return told


def _spread(values: npt.NDArray[Any], places: npt.NDArray[np.int64], count: int, otherwise: float) -> npt.NDArray[Any]:
    """``values`` at their places among ``count``, something else elsewhere."""
    spread = np.full(count, otherwise, dtype=values.dtype)
    spread[places] = values
    return spread


# --- by nearness alone -----------------------------------------------------------------------------------------------


def near(query: str, scores: Scores) -> Mask:
    """A mask (n,) of the memories that may be shown for the question."""
    evidence = scores.cosine + np.float32(COVERAGE_WEIGHT) * scores.coverage
    by_words = held(scores)
    if evidence.max(initial=0.0) < (EVIDENCE_OWN if speaks_of_user(query) else EVIDENCE_OTHER):
        return by_words
    near_the_best: Mask = scores.fused >= SHARE_OF_BEST * scores.fused.max()
    return by_words | (near_the_best & (evidence > 0))


def held(scores: Scores) -> Mask:
    """A mask (n,) of the memories that were never compared by vector (their cosine is 0) and share enough words."""
    by_words: Mask = (scores.cosine == 0) & (scores.coverage >= COVERAGE_LEAST)
    return by_words
