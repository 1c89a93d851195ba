"""What was learnt from labelled requests: the numbers behind the decision, and the files that they are kept in.

They mean something for vectors of one embedding model alone, which the signature names. docs/decision.md tells what
they were made of and what they are worth."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from semmem.memory import Vector
from semmem.retrieval.decide import request_words

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
REQUEST_SIZE = len(CLASSES) + 1 + request_words.FLAGS
"""How many numbers features.py has of a request; of the best memories; of each memory."""
TOP_SIZE = 5
MEMORY_SIZE = len(EVIDENCE) + 1 + len(KINDS) + len(CLASSES) * (2 + len(KINDS) + len(EVIDENCE))
SHIPPED = Path(__file__).with_name("decision.npz")
SHIPPED_READER = Path(__file__).with_name("reader.npz")

_REQUEST_WEIGHTS = TOP_SIZE + REQUEST_SIZE * (1 + TOP_SIZE) + 1
_UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)
"""What numpy raises of a file that is missing, cut short, damaged, or something else."""


class UnusableWeights(Exception):
    """The file is not what ``Weights.save`` writes; the message says which one and why."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Arrays and numbers for the vectors of the embedding model with this signature, and their file. A subclass has
    fields that are arrays or floats."""

    writer: ClassVar[str]
    """Who writes such files."""
    precision: ClassVar[type[np.floating[Any]]] = np.float16
    """Of the arrays in the file. Half: a weight's error is below 0.1 %, a log-odds moves by less than 0.01."""

    signature: str

    @classmethod
    def load(cls, file: Path) -> Self:
        """Raises UnusableWeights."""
        try:
            with np.load(io.BytesIO(file.read_bytes())) as kept:
                found = cls(**{each.name: _READ[str(each.type)](kept[each.name]) for each in fields(cls)})
        except _UNREADABLE as error:
            reason = error.strerror if isinstance(error, OSError) else f"no file that {cls.writer} wrote"
            raise UnusableWeights(f"{file}: {reason}") from error
        if not found._fits():
            raise UnusableWeights(f"{file}: written by another version of semmem")
        return found

    def save(self, file: Path) -> None:
        """The same bytes for the same numbers."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        numbers = values.items()
        arrays = {name: value.astype(self.precision) for name, value in numbers if isinstance(value, np.ndarray)}
        with file.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **{**values, **arrays})

    def _fits(self) -> bool:
        """Whether the numbers are numbers, and as many as are needed."""
        values = [getattr(self, each.name) for each in fields(self) if each.name != "signature"]
        shapes = [value.shape for value in values if isinstance(value, np.ndarray)]
        return shapes == self._shapes() and all(bool(np.isfinite(value).all()) for value in values)

    def _shapes(self) -> list[tuple[int, ...]]:
        """Those that the arrays must have; none where even one of them is of no use."""
        raise NotImplementedError


_READ: dict[str, Callable[[npt.NDArray[Any]], Any]] = {
    "str": str, "float": float, "Floats": lambda kept: kept.astype(np.float32),
}  # fmt: skip
"""What is made of an array in the file, by the field that it is for."""


@dataclass(frozen=True, slots=True)
class Trained(Weights):
    """C classes, K kinds, E kinds of evidence, vectors of d dimensions.

    ``class_weights`` (C, d + 1) and ``kind_weights`` (K, d + 1) are softmax regressions on a request's and a memory's
    vector, the last column their bias. ``asks_weights`` (d + 1,) and ``word_weights`` (request_words.BUCKETS,): whether
    a request wants any memory, by its vector and its words. ``memory_weights`` and ``request_weights`` are the two
    logistic regressions of features.py, the last number their bias; ``memory_cut`` and ``request_cut`` are the least
    log-odds of what is shown."""

    writer = "semmem calibrate"

    class_weights: Floats
    kind_weights: Floats
    asks_weights: Floats
    word_weights: Floats
    memory_weights: Floats
    request_weights: Floats
    memory_cut: float
    request_cut: float

    def _shapes(self) -> list[tuple[int, ...]]:
        width = self.asks_weights.size
        heads = (len(CLASSES), width), (len(KINDS), width), (width,), (request_words.BUCKETS,)
        return [*heads, (MEMORY_SIZE + 1,), (_REQUEST_WEIGHTS,)]


@dataclass(frozen=True, slots=True)
class Reader(Weights):
    """Reads a request and a memory together: the log-odds that the request needs the memory.

    The regressions compare two vectors that never met. Here both are projected into one space of needs (what a request
    wants, what a memory is good for), multiplied number by number, and weighed by a small network together with the
    evidence of the search. Weights for vectors of d dimensions, each with its bias as the last column:

    ``request_weights`` and ``memory_weights`` (2h, d + 1): both into the space of needs, of which the first h numbers
    go through tanh, the others lose what is below 0. ``hidden_weights`` (k, 4h + E + F + 1): of the products, of the
    first h numbers of both, of the E kinds of evidence, and of the F flags of a request. ``out_weights`` (k + 1,).
    ``cut``: the least log-odds of what is shown; ``share``: of these the reader's, the rest are the regression's."""

    writer = "training.train_reader"

    request_weights: Floats
    memory_weights: Floats
    hidden_weights: Floats
    out_weights: Floats
    cut: float
    share: float

    def _fits(self) -> bool:
        return Weights._fits(self) and 0.0 <= self.share <= 1.0

    def _shapes(self) -> list[tuple[int, ...]]:
        if self.request_weights.ndim != 2 or len(self.request_weights) % 2:
            return []
        needs, width = self.request_weights.shape
        hidden, evidence = self.out_weights.size - 1, len(EVIDENCE) + request_words.FLAGS
        return [(needs, width), (needs, width), (hidden, 2 * needs + evidence + 1), (hidden + 1,)]

    def logits(self, vector: Vector, vectors: Floats, evidence: Floats, flags: Floats) -> Floats:
        """(n,) of the request's ``vector`` (d,) before memories with ``vectors`` (n, d) and ``evidence`` (n, E).
        ``flags`` (F,): of the request's words."""
        half = len(self.request_weights) // 2
        asked = _needs(self.request_weights[:, :-1] @ vector + self.request_weights[:, -1], half)
        offered = _needs(vectors @ self.memory_weights[:, :-1].T + self.memory_weights[:, -1], half)
        weights = self.hidden_weights
        products, of_request = weights[:, : 2 * half], weights[:, 2 * half : 3 * half]
        of_memory, rest = weights[:, 3 * half : 4 * half], weights[:, 4 * half :]
        of_evidence, of_flags = rest[:, : len(EVIDENCE)], rest[:, len(EVIDENCE) : -1]
        # the products by their weights, in one multiplication: what the request asks is the same for all memories
        by_need = products * asked
        by_need[:, :half] += of_memory
        common = of_request @ asked[:half] + of_flags @ flags + rest[:, -1]
        hidden = np.maximum(offered @ by_need.T + evidence @ of_evidence.T + common, 0.0)
        found: Floats = (hidden @ self.out_weights[:-1] + self.out_weights[-1]).astype(np.float32)
        return found


def _needs(found: Floats, half: int) -> Floats:
    """Along the last axis."""
    found[..., :half] = np.tanh(found[..., :half])
    np.maximum(found[..., half:], 0.0, out=found[..., half:])
    return found
