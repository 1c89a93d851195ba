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

from semmem.extraction.contradiction.quantities import compared
from semmem.extraction.contradiction.reading import (
    DIRECTIONS,
    FUNCTION,
    INDEFINITE,
    MARKS,
    NEGATIONS,
    SELF,
    Told,
    read,
    swapped,
)
from semmem.memory import Vector
from semmem.ports.embedder import shipped_for
from semmem.text.quoting import unquoted

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

    ``directions``: shape (5, dimension, k), what ``dense`` is projected onto. ``centre`` and ``scale``: of the
    features in training. ``hidden``: (networks, features + 1, units), the last row being the bias; ``out``:
    (networks, units + 1, 3)."""

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
        units = np.maximum(np.einsum("f,nfu->nu", np.append(scaled, np.float32(1)), self.hidden), 0)
        with_bias = np.concatenate([units, np.ones((len(units), 1), np.float32)], axis=1)
        scores = np.einsum("nu,nuc->nc", with_bias, self.out)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        same, contradiction, different = (powers / powers.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
        return Likelihoods(same, contradiction, different)


def parts(old: str, new: str) -> tuple[str, str]:
    """What is left of both texts without the words that they share: texts to embed, either may be empty. Where they
    share nothing but words of grammar, the texts as they are, whose vectors are known."""
    one, other = read(old), read(new)
    if one.content.isdisjoint(other.content):
        return unquoted(old), unquoted(new)
    return _without(one, frozenset(other.stems)), _without(other, frozenset(one.stems))


def row(old: str, new: str, vectors: tuple[Vector, Vector, Vector, Vector], directions: Matrix) -> list[float]:
    """All features of a pair, as they are trained on."""
    one, other = read(old), read(new)
    differences = dense(*vectors)
    projected = np.concatenate([part @ direction for part, direction in zip(differences, directions, strict=True)])
    # The order is that of the trained weights; each number of the words is within [0, 1].
    groups = (_overlap, _values, _negations_and_marks, _owners, _order, _predicate)
    words = [float(value) for group in groups for value in group(one, other)]
    return [*words, *_of_vectors(*vectors), *projected.tolist()]


@cache
def trained_for(signature: str) -> PairModel | None:
    """The judge for an embedder's vectors, or None when none was trained for it."""
    with np.load(shipped_for(WEIGHTS_FILE, signature)) as stored:
        if str(stored["signature"]) != signature:
            return None
        names = ("directions", "centre", "scale", "hidden", "out")
        return PairModel(signature, *(stored[name].astype(np.float32) for name in names))


def _without(told: Told, shared: frozenset[str]) -> str:
    return " ".join(
        word for word, stem in zip(told.words, told.stems, strict=True) if stem not in shared and word not in SELF
    )


def _of_vectors(old: Vector, new: Vector, old_part: Vector, new_part: Vector) -> list[float]:
    """Cosines between the texts and what is left of them; a part that is empty is all zeros."""
    pairs = ((old, new), (old_part, new_part), (old_part, new), (new_part, old), (old_part, old), (new_part, new))
    return [float(one @ other) for one, other in pairs]


def dense(old: Vector, new: Vector, old_part: Vector, new_part: Vector) -> list[Matrix]:
    """What is projected onto the trained directions: each of shape (dimension,)."""
    return [old * new, np.abs(old - new), old_part * new_part, new - old, new_part - old_part]


def _overlap(old: Told, new: Told) -> list[float]:
    old_only, new_only, shared = old.content - new.content, new.content - old.content, old.content & new.content
    return [
        min(len(old_only), 6) / 6,
        min(len(new_only), 6) / 6,
        min(len(shared), 6) / 6,
        len(shared) / max(1, len(old.content)),
        len(shared) / max(1, len(new.content)),
        not old_only,
        not new_only,
        not old_only and not new_only,
        len(old_only) == 1,
        len(new_only) == 1,
        min(len(old.words), 20) / 20,
        min(len(new.words), 20) / 20,
    ]


def _values(old: Told, new: Told) -> list[float]:
    gone, come = bool(old.names - new.content), bool(new.names - old.content)
    agree, old_alone, new_alone = compared(old.quantities, new.quantities)
    kinds = {kind for kind, _ in old_alone} & {kind for kind, _ in new_alone}
    return [
        bool(old.names & new.names),
        gone,
        come,
        gone and come,
        agree,
        bool(kinds),
        bool(old_alone),
        bool(new_alone),
        bool(old.quantities),
        bool(new.quantities),
    ]


def _negations_and_marks(old: Told, new: Told) -> list[float]:
    return [
        old.negations % 2,
        new.negations % 2,
        (old.negations + new.negations) % 2,
        bool(new.denied & (old.content - old.denied)),
        bool(old.denied & (new.content - new.denied)),
        *(mark in told.marks for told in (old, new) for mark in MARKS),
    ]


def _owners(old: Told, new: Told) -> list[float]:
    gone, come = bool(old.kin - new.kin), bool(new.kin - old.kin)
    return [
        old.owner == new.owner,
        old.owner == new.owner == "",
        bool(old.owner) != bool(new.owner),
        bool(old.owner and new.owner and old.owner != new.owner),
        bool(old.kin & new.kin),
        gone,
        come,
        gone and come,
        old.quoted,
        new.quoted,
    ]


def _order(old: Told, new: Told) -> list[float]:
    one, other = frozenset(old.words) & DIRECTIONS, frozenset(new.words) & DIRECTIONS
    return [
        not swapped(old, new),
        bool(one - other),
        bool(other - one),
        bool(old.stems) and old.stems[-1] not in new.stems,
        bool(new.stems) and new.stems[-1] not in old.stems,
        _first(old) == _first(new),
        _one_of_several(old, new),
        _one_of_several(new, old),
    ]


def _first(told: Told) -> str:
    """The stem of the first word of content."""
    pairs = zip(told.words, told.stems, strict=True)
    return next((stem for word, stem in pairs if word not in FUNCTION and word not in NEGATIONS), "")


def _one_of_several(one: Told, other: Told) -> bool:
    """Whether a word of its own stands behind an indefinite article."""
    pairs = zip(one.words, one.stems[1:], strict=False)
    return any(word in INDEFINITE and after not in other.stems for word, after in pairs)


def _predicate(old: Told, new: Told) -> list[float]:
    """How many words they share beside whose it is: a verb, an attribute."""
    topic = old.kin | new.kin | old.names | new.names | {old.owner, new.owner}
    shared = (old.content & new.content) - topic
    return [min(len(shared), 4) / 4, bool(shared)]
