"""What the decision looks at, as numbers: the same for learning from labelled requests and for judging a new one."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from semmem.memory import Vector
from semmem.retrieval.decide import request_words
from semmem.retrieval.decide.trained import CLASSES, EVIDENCE, KINDS, REQUEST_SIZE, Floats, Trained
from semmem.retrieval.index.memory_index import Scores

ASKS_SCALE = 0.25
"""Brings log-odds into the range of the other numbers."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each of n memories: ``each`` (n, len(EVIDENCE)); ``nearest``, the best cosine."""

    each: Floats
    nearest: float


@dataclass(frozen=True, slots=True)
class RequestWords:
    """What the words of a request say for themselves: ``asks``, log-odds; ``flags``, of ``request_words.flags``."""

    asks: float
    flags: tuple[float, ...]


def request_words_of(trained: Trained, text: str) -> RequestWords:
    """What ``request_features`` needs of a text but for its vector."""
    places = request_words.places(text)
    return RequestWords(trained.word_weights[places].sum() / max(len(places), 1) ** 0.5, request_words.flags(text))


def request_features(trained: Trained, text: str, vector: Vector, said: RequestWords | None = None) -> Floats:
    """(REQUEST_SIZE,): the probabilities of CLASSES, whether anything is asked of memory, whom it speaks of. ``said``:
    the text's words, where they were read already."""
    said = request_words_of(trained, text) if said is None else said
    features = np.empty(REQUEST_SIZE, dtype=np.float32)
    features[: len(CLASSES)] = softmax(trained.class_weights[:, :-1] @ vector + trained.class_weights[:, -1])
    asks = ASKS_SCALE * float(trained.asks_weights[:-1] @ vector + trained.asks_weights[-1] + said.asks)
    features[len(CLASSES) :] = (asks, *said.flags)
    return features


def kinds(trained: Trained, vectors: Floats) -> Floats:
    """(n, len(KINDS)): the probabilities of KINDS of memories with these vectors (n, d)."""
    return softmax(vectors @ trained.kind_weights[:, :-1].T + trained.kind_weights[:, -1])


def evidence(scores: Scores) -> Evidence:
    """Of all memories that are searched."""
    cosine, fused = scores.cosine, scores.fused
    nearest, best = float(cosine.max(initial=0.0)), float(fused.max(initial=0.0))
    rank = np.empty(len(fused), dtype=np.float32)
    rank[np.argsort(-fused, kind="stable")] = 1.0 / np.arange(1, len(fused) + 1, dtype=np.float32)
    each = np.empty((len(fused), len(EVIDENCE)), dtype=np.float32)
    for column, values in enumerate((cosine, scores.coverage, fused - cosine, nearest - cosine, best - fused, rank)):
        each[:, column] = values
    return Evidence(each, nearest)


def memory_features(request: Floats, found: Evidence, kinds: Floats) -> Floats:
    """(n, MEMORY_SIZE): the evidence, the kinds, and both by each class of request."""
    classes, count = request[: len(CLASSES)], len(found.each)
    by_kind = np.einsum("c,nk->nck", classes, kinds).reshape(count, -1)
    by_evidence = np.einsum("c,ne->nce", classes, found.each).reshape(count, -1)
    common = np.concatenate([[found.nearest], classes, classes * found.nearest]).astype(np.float32)
    return np.concatenate([found.each, kinds, by_kind, by_evidence, np.tile(common, (count, 1))], axis=1)


_ENDS = list(accumulate([len(EVIDENCE), len(KINDS), len(CLASSES) * len(KINDS), len(CLASSES) * len(EVIDENCE)]))
"""Where among ``memory_features`` the evidence, the kinds and both by each class end."""


def memory_logits(weights: Floats, request: Floats, found: Evidence, kinds: Floats) -> Floats:
    """(n,): ``memory_features(...) @ weights[:-1] + weights[-1]`` without making the features, which takes longer."""
    classes, (own, sorts, by_kind, by_evidence) = request[: len(CLASSES)], _ENDS
    of_evidence = weights[:own] + classes @ weights[by_kind:by_evidence].reshape(len(CLASSES), len(EVIDENCE))
    of_kinds = weights[own:sorts] + classes @ weights[sorts:by_kind].reshape(len(CLASSES), len(KINDS))
    common = np.concatenate([[found.nearest], classes, classes * found.nearest]) @ weights[by_evidence:-1] + weights[-1]
    logits: Floats = (found.each @ of_evidence + kinds @ of_kinds + common).astype(np.float32)
    return logits


def top_features(request: Floats, found: Evidence, logits: Floats) -> Floats:
    """(TOP_SIZE + REQUEST_SIZE * (1 + TOP_SIZE),): the best of the memories, the request, and the one by the other."""
    ordered = np.sort(logits)[::-1]
    expected = float((1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))).sum())
    coverage = float(found.each[:, 1].max(initial=0.0))
    top = np.array([ordered[0], ordered[min(1, len(ordered) - 1)], found.nearest, coverage, np.log(expected + 1e-3)])
    return np.concatenate([top, request, np.outer(request, top).ravel()]).astype(np.float32)


def softmax(logits: Floats) -> Floats:
    """Along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares
