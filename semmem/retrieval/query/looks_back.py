"""What was learnt of questions that ask for former conversations, where the form of words alone does not tell.

"my loaves burned at the bottom, you had something with rice, what was it" has no word for a conversation. A logistic
regression on the question's vector, its words (by the place that their spelling hashes to), its pronouns and whether
its form is one of those known gives the log-odds that it asks for one. The weights mean something for vectors of one
embedding model alone, which the signature names; training/train_looks_back.py makes them.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semmem.memory import Vector
from semmem.retrieval.decide import pronouns, request_words

Floats = npt.NDArray[np.float32]

BUCKETS = 4096
WORDS_SCALE, FLAGS_SCALE = 0.5, 0.5
"""Beside a vector of length 1."""
SHIPPED = Path(__file__).with_name("looks_back.npz")


class UnusableWeights(Exception):
    """The file is not what ``LooksBack.save`` writes; the message says which one and why."""


@dataclass(frozen=True, slots=True)
class LooksBack:
    """``vector`` (d,), ``words`` (BUCKETS,), ``flags`` (1 + pronouns.COUNT,): the form, then pronouns. ``cut`` is the
    least log-odds of a question that asks for a conversation."""

    signature: str
    vector: Floats
    words: Floats
    flags: Floats
    bias: float
    cut: float

    def asks(self, question: str, vector: Vector, *, in_form: bool) -> bool:
        """Whether the question asks for a former conversation; ``vector`` is its own, of the same model."""
        return self.logit(question, vector, in_form=in_form) >= self.cut

    def logit(self, question: str, vector: Vector, *, in_form: bool) -> float:
        """The log-odds of it."""
        said, flags = places(question), flags_of(question, in_form=in_form)
        by_words = WORDS_SCALE * self.words[said].sum() / max(len(said), 1) ** 0.5
        return float(self.vector @ vector + self.flags @ flags + by_words + self.bias)

    def save(self, file: Path) -> None:
        """Write the file, the same bytes for the same numbers."""
        rows = {each.name: getattr(self, each.name) for each in fields(self)}
        with zipfile.ZipFile(file, "w") as archive:
            for name, value in rows.items():
                told = io.BytesIO()
                np.save(told, np.asarray(value), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), told.getvalue(), zipfile.ZIP_DEFLATED)

    @classmethod
    def load(cls, file: Path) -> LooksBack:
        """Raises UnusableWeights."""
        try:
            with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as kept:
                floats = {name: kept[name].astype(np.float32) for name in ("vector", "words", "flags")}
                found = cls(str(kept["signature"]), bias=float(kept["bias"]), cut=float(kept["cut"]), **floats)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as wrong:
            raise UnusableWeights(f"{file.name}: {wrong}") from wrong
        if found.words.size != BUCKETS or found.flags.size != 1 + pronouns.COUNT:
            raise UnusableWeights(f"{file.name}: {found.words.size} words and {found.flags.size} flags")
        return found


def places(question: str) -> list[int]:
    """Where the weights of its words stand."""
    return sorted({place % BUCKETS for place in request_words.places(question)})


def flags_of(question: str, *, in_form: bool) -> Floats:
    """Its form, and whom it speaks of."""
    return np.array([1.0 if in_form else 0.0, *pronouns.flags(question)], dtype=np.float32) * FLAGS_SCALE
