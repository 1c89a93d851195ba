"""What the trained judge sees of two statements: how their words, names, quantities and vectors lie to each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semmem.extraction.contradiction.quantities import Number, Value
from semmem.extraction.contradiction.reading import DIRECTIONS, FUNCTION, INDEFINITE, MARKS, NEGATIONS, SELF, Told
from semmem.memory import Vector

Row = npt.NDArray[np.float32]


def parts(old: Told, new: Told) -> tuple[str, str]:
    """What is left of both texts without the words that they share: texts to embed, either may be empty."""
    return _without(old, frozenset(new.stems)), _without(new, frozenset(old.stems))


def _without(told: Told, shared: frozenset[str]) -> str:
    return " ".join(
        word for word, stem in zip(told.words, told.stems, strict=True) if stem not in shared and word not in SELF
    )


def nameless(told: Told) -> str:
    """What a statement is about, without the names that it says it of; may be empty."""
    return " ".join(word for word, stem in zip(told.words, told.stems, strict=True) if stem not in told.names)


def of_words(old: Told, new: Told) -> list[float]:
    """One number a feature, each within [0, 1]. Their order is that of the trained weights."""
    return [
        float(value)
        for value in (
            *_overlap(old, new),
            *_values(old, new),
            *_negations(old, new),
            *_marks(old, new),
            *_owners(old, new),
            *_order(old, new),
            *_predicate(old, new),
        )
    ]


def of_vectors(old: Vector, new: Vector, old_part: Vector, new_part: Vector) -> list[float]:
    """Cosines between the texts and what is left of them; a part that is empty is all zeros."""
    return [
        float(a @ b)
        for a, b in (
            (old, new),
            (old_part, new_part),
            (old_part, new),
            (new_part, old),
            (old_part, old),
            (new_part, new),
        )
    ]


def dense(old: Vector, new: Vector, old_part: Vector, new_part: Vector) -> list[Row]:
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


def compared(old: frozenset[Value], new: frozenset[Value]) -> tuple[bool, frozenset[Value], frozenset[Value]]:
    """Whether some quantities agree, and those of either side that agree with none of the other's."""
    met = [(a, b) for a in old for b in new if a[0] == b[0] and _equal(a[1], b[1])]
    return bool(met), old - {a for a, _ in met}, new - {b for _, b in met}


def _equal(a: object, b: object) -> bool:
    return a.agrees(b) if isinstance(a, Number) and isinstance(b, Number) else a == b


def _negations(old: Told, new: Told) -> list[float]:
    return [
        old.negations % 2,
        new.negations % 2,
        (old.negations + new.negations) % 2,
        bool(new.denied & (old.content - old.denied)),
        bool(old.denied & (new.content - new.denied)),
    ]


def _marks(old: Told, new: Told) -> list[float]:
    return [mark in told.marks for told in (old, new) for mark in MARKS]


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


def swapped(old: Told, new: Told) -> bool:
    """Whether the words of content that both have stand in another order."""
    shared = old.content & new.content
    return [s for s in old.stems if s in shared] != [s for s in new.stems if s in shared]


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
