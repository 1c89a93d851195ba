"""Reads a request and a memory together: the log-odds that the request needs the memory.

The regressions compare two vectors that never met. Here both are projected into one space of needs (what a request
wants, what a memory is good for), multiplied number by number, and weighed by a small network together with the
evidence of the search. It was learnt from people's requests, each with a verdict on every memory: docs/decision.md.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from semmem.memory import Vector
from semmem.retrieval.decide import pronouns
from semmem.retrieval.decide.trained import EVIDENCE, UNREADABLE, Floats, UnusableWeights

SHIPPED_READER = Path(__file__).with_name("reader.npz")


@dataclass(frozen=True, slots=True)
class Reader:
    """Weights for vectors of d dimensions, each with its bias as the last column.

    ``request_weights`` and ``memory_weights`` (2h, d + 1): both into the space of needs, of which the first h numbers
    go through tanh, the others lose what is below 0. ``hidden_weights`` (k, 4h + E + F + 1): of the products, of the
    first h numbers of both, of the E kinds of evidence, and of the F flags of pronouns.py. ``out_weights`` (k + 1,).
    ``cut``: the least log-odds of what is shown; ``share``: of these the reader's, the rest are the regression's.
    """

    signature: str
    request_weights: Floats
    memory_weights: Floats
    hidden_weights: Floats
    out_weights: Floats
    cut: float
    share: float

    @classmethod
    def load(cls, file: Path) -> Reader:
        """Raises UnusableWeights."""
        try:
            with np.load(io.BytesIO(file.read_bytes())) as kept:
                arrays = {name: kept[name].astype(np.float32) for name in _ARRAYS}
                found = cls(
                    signature=str(kept["signature"]),
                    cut=float(kept["cut"]),
                    share=float(kept["share"]),
                    **arrays,
                )
        except UNREADABLE as error:
            raise UnusableWeights(f"{file}: no file that training.train_reader wrote") from error
        if not found._fits():
            raise UnusableWeights(f"{file}: written by another version of semmem")
        return found

    def _fits(self) -> bool:
        """Whether the numbers are numbers, and as many as ``logits`` needs."""
        if self.request_weights.ndim != 2:
            return False
        needs, width = self.request_weights.shape
        hidden = self.out_weights.size - 1
        shapes = (needs, width), (needs, width), (hidden, 2 * needs + len(EVIDENCE) + pronouns.COUNT + 1), (hidden + 1,)
        arrays = [getattr(self, name) for name in _ARRAYS]
        is_whole = needs % 2 == 0 and [array.shape for array in arrays] == list(shapes)
        is_cut = math.isfinite(self.cut) and 0.0 <= self.share <= 1.0
        return is_whole and is_cut and all(bool(np.isfinite(array).all()) for array in arrays)

    def save(self, file: Path) -> None:
        """Half precision: a log-odds moves by less than 0.01."""
        arrays = {name: getattr(self, name).astype(np.float16) for name in _ARRAYS}
        with file.open("wb") as stream:
            told = np.array(self.signature), np.array(self.cut), np.array(self.share)
            named = dict(zip(("signature", "cut", "share"), told, strict=True))
            np.savez_compressed(stream, allow_pickle=False, **named, **arrays)

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


_ARRAYS = tuple(field.name for field in fields(Reader) if field.name.endswith("_weights"))
