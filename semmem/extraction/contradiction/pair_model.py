"""The trained judge: how likely a new statement repeats an old one, contradicts it, or stands beside it.

The weights are of ``training/train_pairs.py``, for one embedding model; for any other there are the closed forms of
``verdict`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semmem.extraction.contradiction import features
from semmem.extraction.contradiction.reading import read
from semmem.memory import Vector
from semmem.ports.embedder import shipped_for

WEIGHTS_FILE = Path(__file__).with_name("pair_weights.npz")
FEATURE_MAX = 6.0
"""Standard deviations from the mean of training; what lies farther out is nothing that was learnt from."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Three probabilities, whose sum is 1."""

    same: float
    contradiction: float
    different: float


@dataclass(frozen=True, slots=True)
class PairModel:
    """Some small networks of one hidden layer, the mean of which is the answer.

    ``directions``: shape (5, dimension, k), what ``features.dense`` is projected onto. ``centre`` and ``scale``: of the
    features in training. ``hidden``: (networks, features + 1, units), the last row being the bias; ``out``:
    (networks, units + 1, 3).
    """

    signature: str
    directions: Matrix
    centre: Matrix
    scale: Matrix
    hidden: Matrix
    out: Matrix

    def likelihoods(self, old: str, new: str, vectors: tuple[Vector, Vector, Vector, Vector]) -> Likelihoods:
        """``vectors``: of the old text, the new one, and the two ``parts`` of them (zeros for an empty part)."""
        told = np.array(row(old, new, vectors, self.directions), dtype=np.float32)
        scaled = np.clip((told - self.centre) / self.scale, -FEATURE_MAX, FEATURE_MAX)
        units = np.maximum(np.einsum("f,nfu->nu", _with_one(scaled), self.hidden), 0)
        scores = np.einsum(
            "nu,nuc->nc", np.concatenate([units, np.ones((len(units), 1), np.float32)], axis=1), self.out
        )
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        same, contradiction, different = (powers / powers.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
        return Likelihoods(same, contradiction, different)


def parts(old: str, new: str) -> tuple[str, str]:
    """What is left of both texts without the words that they share; either may be empty."""
    return features.parts(read(old), read(new))


def nameless(text: str) -> str:
    """What it is about, without names; may be empty."""
    return features.nameless(read(text))


def row(old: str, new: str, vectors: tuple[Vector, Vector, Vector, Vector], directions: Matrix) -> list[float]:
    """All features of a pair, as they are trained on."""
    one, other = read(old), read(new)
    dense = features.dense(*vectors)
    projected = np.concatenate([part @ direction for part, direction in zip(dense, directions, strict=True)])
    return [*features.of_words(one, other), *features.of_vectors(*vectors), *projected.tolist()]


@cache
def trained_for(signature: str) -> PairModel | None:
    """The judge for an embedder's vectors, or None when none was trained for it."""
    with np.load(shipped_for(WEIGHTS_FILE, signature)) as stored:
        if str(stored["signature"]) != signature:
            return None
        names = ("directions", "centre", "scale", "hidden", "out")
        return PairModel(signature, *(stored[name].astype(np.float32) for name in names))


def _with_one(vector: Matrix) -> Matrix:
    return np.append(vector, np.float32(1))
