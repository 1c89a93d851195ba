"""Whether a clause says something lasting about the user, and what kind of thing: three small linear models.

Each is a softmax regression over the formal features of features.py and, where the embedder is the one it was trained
with, the clause's vector. The weights come from ``training/train_lasting.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semmem.memory import MemoryType, Standing, Vector

_TRAINED = json.loads(Path(__file__).with_name("weights.json").read_text(encoding="utf-8"))
SIGNATURE: str = _TRAINED["signature"]
"""Of the embedder whose vectors the weights were trained on; those of any other mean nothing here."""
VECTOR_SCALE: float = _TRAINED["vector_scale"]
"""The vectors' share beside features that are 0 or 1: what they are multiplied with."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Judgement:
    """``lasting`` is the probability that the clause says something lasting about the user. The others say what it
    would be if it did."""

    lasting: float
    type: MemoryType
    standing: Standing | None


class _Softmax:
    """``weights`` has one row a class."""

    def __init__(self, trained: dict[str, list[list[float]]]) -> None:
        self.weights = np.array(trained["weights"], dtype=np.float32)
        self.bias = np.array(trained["bias"], dtype=np.float32)

    def __call__(self, points: Matrix) -> Matrix:
        logits = points @ self.weights.T + self.bias
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


_HEADS = ("lasting", "type", "standing")
_MODELS = {
    name: {head: _Softmax(_TRAINED[name][head]) for head in _HEADS} for name in ("with_vector", "without_vector")
}
TYPES = tuple(MemoryType(name) for name in _TRAINED["types"])
STANDINGS: tuple[Standing | None, ...] = tuple(Standing(name) if name else None for name in _TRAINED["standings"])


def judge(rows: Sequence[Sequence[float]], vectors: Sequence[Vector] | None) -> list[Judgement]:
    """A judgement for each row of ``features``; ``vectors``, one a row, are SIGNATURE's, None when there are none."""
    if not rows:
        return []
    points = np.array(rows, dtype=np.float32)
    if vectors is not None:
        points = np.hstack([points, VECTOR_SCALE * np.stack(list(vectors)).astype(np.float32)])
    heads = _MODELS["without_vector" if vectors is None else "with_vector"]
    lasting = heads["lasting"](points)[:, 1]
    kinds = heads["type"](points).argmax(axis=1)
    standings = heads["standing"](points).argmax(axis=1)
    return [
        Judgement(float(p), TYPES[kind], STANDINGS[standing])
        for p, kind, standing in zip(lasting, kinds, standings, strict=True)
    ]
