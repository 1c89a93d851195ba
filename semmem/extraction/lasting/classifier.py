"""Whether a clause says something lasting about the user, and what kind of thing: three small linear models.

They read what the user says in their own voice (semmem.extraction.voice). Each is a softmax regression over the formal
features of features.py and, where the embedder is the one it was trained with, the clause's vector. The weights come
from ``training/train_lasting.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semmem.extraction.lasting.features import ELSEWHERE
from semmem.memory import MemoryType, Standing, Vector
from semmem.ports.embedder import learnt_for

LANGUAGES = ("english", "elsewhere")
"""English has heads of its own: what is learnt of languages of whose texts the vectors say little costs it nothing."""
SIGNATURE = "sentence-transformers/all-MiniLM-L6-v2/384/fp32"
"""Whose heads serve where there are no vectors."""
SIGNATURES = (SIGNATURE, "sentence-transformers/multilingual-e5-small/384/int8")
"""Of the embedders whose vectors the weights were trained on; those of any other mean nothing here."""
VECTOR_SCALE = 3.0
PAIR_SCALE = 0.4
"""What vectors and pairs of features are multiplied with beside features that are 0 or 1, so that the penalty on large
weights lets each of them speak as much as it is worth."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Judgement:
    """``lasting`` is the probability that the clause says something lasting about the user. The others say what it
    would be if it did."""

    lasting: float
    type: MemoryType
    standing: Standing | None


def _softmax(points: Matrix, weights: Matrix, bias: Matrix) -> Matrix:
    """``weights`` has one row a class, less the first one's where there are two classes."""
    logits = points @ weights.T + bias
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


TYPES = (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL)
STANDINGS: tuple[Standing | None, ...] = (None, *Standing)


def weights_file(language: str, signature: str) -> Path:
    """Where the weights for this language and these vectors lie."""
    return learnt_for(Path(__file__).with_name(f"{language}.json"), signature)


@cache
def _heads(given: str, language: str, signature: str) -> dict[str, list[Matrix]]:
    """The weights and the bias of each. Its types and standings in the order of TYPES and STANDINGS."""
    trained = json.loads(weights_file(language, signature).read_text("utf-8"))
    expected = [signature, [kind.value for kind in TYPES], [standing or "" for standing in STANDINGS]]
    if [trained[name] for name in ("signature", "types", "standings")] != expected:
        raise ValueError(f"{language}: written by another version of semmem")
    names = ("weights", "bias")
    return {head: [np.array(of[name], dtype=np.float32) for name in names] for head, of in trained[given].items()}


def judge(
    rows: Sequence[Sequence[float]], vectors: Sequence[Vector] | None, signature: str = SIGNATURE
) -> list[Judgement]:
    """A judgement for each row of one message's ``features``.

    ``vectors``, one a row, are of ``signature``, one of SIGNATURES; None when there are none."""
    if not rows:
        return []
    seen = np.array(rows, dtype=np.float32)
    given = None if vectors is None else np.stack(list(vectors)).astype(np.float32)
    language = "elsewhere" if seen[:, ELSEWHERE.stop - 1].any() else "english"
    seen = seen if language == "elsewhere" else without_elsewhere(seen)
    heads = _heads("without_vector" if given is None else "with_vector", language, signature)
    few = plain_points(seen, given)
    lasting = _softmax(points(seen, given), *heads["lasting"])[:, 1]
    kinds, standings = (_softmax(few, *heads[name]).argmax(axis=1) for name in ("type", "standing"))
    found = zip(lasting, kinds, standings, strict=True)
    return [Judgement(float(p), TYPES[kind], STANDINGS[standing]) for p, kind, standing in found]


def without_elsewhere(seen: Matrix) -> Matrix:
    """The features that the heads for English know."""
    return np.delete(seen, ELSEWHERE, axis=1)


def points(seen: Matrix, vectors: Matrix | None) -> Matrix:
    """What tells whether the clauses of one message are lasting, one row a clause: their features, every two of these
    together, their vectors, and the mean vector of the message."""
    first, second = np.triu_indices(seen.shape[1], 1)
    pairs = PAIR_SCALE * seen[:, first] * seen[:, second]
    if vectors is None:
        return np.hstack([seen, pairs])
    whole = np.broadcast_to(vectors.mean(axis=0), vectors.shape)
    return np.hstack([seen, pairs, VECTOR_SCALE * vectors, VECTOR_SCALE * whole])


def plain_points(seen: Matrix, vectors: Matrix | None) -> Matrix:
    """What tells everything else about a clause: its features and its vector."""
    return seen if vectors is None else np.hstack([seen, VECTOR_SCALE * vectors])
