"""What was learnt from labelled requests: the numbers behind the decision, and the file that they are kept in.

They mean something for vectors of one embedding model alone, which the signature names. docs/decision.md tells what
they were made of and what they are worth.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semmem.retrieval.decide import pronouns, request_words

Floats = npt.NDArray[np.float32]

CLASSES = ("advice", "plan", "creation", "draft", "recall", "profile", "knowledge", "task", "courtesy")
"""What a request is for. A draft is something written for the user's own life or project, a creation is anything else
that is made up; a task can be done with nothing but the words of the request."""
KINDS = (
    "must", "profile", "style", "preference", "habit", "event", "project", "person", "opinion", "possession",
)  # fmt: skip
"""What a memory is about. The first three are the words of ``semmem.memory.Standing``."""
EVIDENCE = ("cosine", "coverage", "words", "behind_nearest", "behind_best", "rank")
"""Of each memory: its cosine; the share of the request's words that it holds; what its fused score has beyond the
cosine; how far its cosine is behind the nearest one's, and its fused score behind the best one's; 1 / its rank."""
REQUEST_SIZE = len(CLASSES) + 1 + pronouns.COUNT
"""How many numbers features.py has of a request; of the best memories; of each memory."""
TOP_SIZE = 5
MEMORY_SIZE = len(EVIDENCE) + 1 + len(KINDS) + len(CLASSES) * (2 + len(KINDS) + len(EVIDENCE))
SHIPPED = Path(__file__).with_name("decision.npz")


class UnusableWeights(Exception):
    """The file is not what ``Trained.save`` writes; the message says which one and why."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Weights; C classes, K kinds, E kinds of evidence, vectors of d dimensions.

    ``class_weights`` (C, d + 1) and ``kind_weights`` (K, d + 1) are softmax regressions on a request's and a memory's
    vector, the last column their bias. ``asks_weights`` (d + 1,) and ``word_weights`` (request_words.BUCKETS,): whether
    a request wants any memory, by its vector and its words. ``memory_weights`` and ``request_weights`` are the two
    logistic regressions of features.py, the last number their bias; ``memory_cut`` and ``request_cut`` are the least
    log-odds of what is shown.
    """

    signature: str
    class_weights: Floats
    kind_weights: Floats
    asks_weights: Floats
    word_weights: Floats
    memory_weights: Floats
    request_weights: Floats
    memory_cut: float
    request_cut: float

    @classmethod
    def load(cls, file: Path) -> Trained:
        """Raises UnusableWeights."""
        try:
            with np.load(io.BytesIO(file.read_bytes())) as kept:
                found = cls(
                    signature=str(kept["signature"]),
                    memory_cut=float(kept["memory_cut"]),
                    request_cut=float(kept["request_cut"]),
                    **{name: kept[name].astype(np.float32) for name in _ARRAYS},
                )
        except UNREADABLE as error:
            reason = error.strerror if isinstance(error, OSError) else "no file that semmem calibrate wrote"
            raise UnusableWeights(f"{file}: {reason}") from error
        if not found._fits():
            raise UnusableWeights(f"{file}: written by another version of semmem")
        return found

    def _fits(self) -> bool:
        """Whether the numbers are numbers, and as many as features.py has."""
        width = self.asks_weights.size
        heads = (len(CLASSES), width), (len(KINDS), width), (width,), (request_words.BUCKETS,)
        shapes = *heads, (MEMORY_SIZE + 1,), (_REQUEST_WEIGHTS,)
        arrays = [getattr(self, name) for name in _ARRAYS]
        cuts_are_finite = math.isfinite(self.memory_cut) and math.isfinite(self.request_cut)
        return [array.shape for array in arrays] == list(shapes) and cuts_are_finite and all(map(_is_finite, arrays))

    def save(self, file: Path) -> None:
        """Half precision: a weight's error is below 0.1 %, and the file half as large."""
        arrays = {name: getattr(self, name).astype(np.float16) for name in _ARRAYS}
        cuts = {"memory_cut": self.memory_cut, "request_cut": self.request_cut}
        with file.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, signature=np.array(self.signature), **arrays, **cuts)


_ARRAYS = tuple(field.name for field in fields(Trained) if field.name.endswith("_weights"))
_REQUEST_WEIGHTS = TOP_SIZE + REQUEST_SIZE * (1 + TOP_SIZE) + 1
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)
"""What numpy raises of a file that is missing, cut short, damaged, or something else."""


def _is_finite(array: Floats) -> bool:
    return bool(np.isfinite(array).all())
