"""Whether a clause says something lasting about the user, and what kind of thing: a small network.

It reads what the user says in their own voice (semmem.extraction.voice): the formal features of features.py and, where
the embedder is one that it was trained with, the clause's vector and its message's. Another one reads the features
alone. The weights come from ``training/train_lasting.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.memory import MemoryType, Standing, Vector
from semmem.ports.embedder import learnt_for

SIGNATURES = ("sentence-transformers/all-MiniLM-L6-v2/384/fp32", "sentence-transformers/multilingual-e5-small/384/int8")
"""Of the embedders whose vectors the weights were trained on; those of any other mean nothing here."""
WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
FORM_FILE = Path(__file__).with_name("form.npz")
"""The network for where there are no vectors."""
VECTOR_SCALE = 3.0
"""What vectors are multiplied with beside features that are 0 or 1, so that each is heard."""
TYPES = (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL)
STANDINGS: tuple[Standing | None, ...] = (None, *Standing)

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Judgement:
    """``lasting`` is the probability that the clause says something lasting about the user. The others say what it
    would be if it did."""

    lasting: float
    type: MemoryType
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class Network:
    """``hidden`` (h, d + 1) and ``out`` (1 + T + S, h + 1), the last column of each the bias: of d numbers the log-odds
    of being lasting, and scores of T types and S standings. ``signature``: whose vectors it reads; empty for none."""

    signature: str
    hidden: Matrix
    out: Matrix

    @classmethod
    def load(cls, file: Path) -> Network:
        with np.load(file) as kept:
            found = cls(str(kept["signature"]), *(kept[name].astype(np.float32) for name in ("hidden", "out")))
            known = [kind.value for kind in TYPES], [standing or "" for standing in STANDINGS]
            if (kept["types"].tolist(), kept["standings"].tolist()) != known:
                raise ValueError(f"{file.name}: written by another version of semmem")
        return found

    def save(self, file: Path) -> None:
        """The same bytes for the same numbers."""
        kept: dict[str, npt.NDArray[Any]] = {
            "signature": np.array(self.signature),
            "types": np.array([kind.value for kind in TYPES]),
            "standings": np.array([standing or "" for standing in STANDINGS]),
            "hidden": self.hidden.astype(np.float16),
            "out": self.out.astype(np.float16),
        }
        np.savez_compressed(file, allow_pickle=False, **kept)

    def scores(self, points: Matrix) -> Matrix:
        """(n, 1 + T + S) of ``points`` (n, d)."""
        units = np.maximum(points @ self.hidden[:, :-1].T + self.hidden[:, -1], np.float32(0.0))
        return np.asarray(units @ self.out[:, :-1].T + self.out[:, -1], dtype=np.float32)


@cache
def _network(signature: str) -> Network:
    """For these vectors; for none where it is empty."""
    network = Network.load(learnt_for(WEIGHTS_FILE, signature) if signature else FORM_FILE)
    if network.signature != signature:
        raise ValueError(f"no weights for vectors of {signature}")
    return network


def judge(rows: Sequence[Sequence[float]], vectors: Sequence[Vector] | None, signature: str = "") -> list[Judgement]:
    """A judgement for each row of one message's ``features``. ``vectors``, one a row, are of ``signature``, one of
    SIGNATURES; None when there are none."""
    if not rows:
        return []
    given = None if vectors is None else np.stack(list(vectors)).astype(np.float32)
    found = _network("" if given is None else signature).scores(points(np.array(rows, dtype=np.float32), given))
    lasting = 1.0 / (1.0 + np.exp(-found[:, 0].astype(np.float64)))
    kinds = found[:, 1 : 1 + len(TYPES)].argmax(axis=1)
    standings = found[:, 1 + len(TYPES) :].argmax(axis=1)
    judged = zip(lasting, kinds, standings, strict=True)
    return [Judgement(float(p), TYPES[kind], STANDINGS[standing]) for p, kind, standing in judged]


def points(seen: Matrix, vectors: Matrix | None) -> Matrix:
    """What tells of the clauses of one message, one row a clause: their features, their vectors, and the mean vector of
    the message."""
    if vectors is None:
        return seen
    whole = np.broadcast_to(vectors.mean(axis=0), vectors.shape)
    return np.hstack([seen, VECTOR_SCALE * vectors, VECTOR_SCALE * whole])
