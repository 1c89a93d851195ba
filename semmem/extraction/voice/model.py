"""The odds that a unit of a message is not the user's own voice.

A small recurrent network reads the units in both directions: each is its words (hashed, a vector each) and its shape,
so it knows any language that it was taught and needs no embedder. The weights come from ``training/train_voice.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WORD_SIZE, INNER_SIZE, STATE_SIZE = 32, 48, 32
WORDS_MIN = 4
"""The root of the number of words is divided by, so that length does not count; of fewer each says too much."""

Matrix = npt.NDArray[np.float32]


class Weights:
    """What ``save`` has written."""

    def __init__(self, file: Path) -> None:
        with np.load(file) as held:
            self._words: Matrix = held["words.weight"].astype(np.float32) * held["words.unit"].astype(np.float32)
            self._rest = {name: held[name].astype(np.float32) for name in held.files if not name.startswith("words.")}

    def odds(self, words: Sequence[Sequence[int]], shapes: Sequence[Sequence[float]]) -> Matrix:
        """Logarithms of the odds, one a unit of one message."""
        held = self._rest
        vectors = np.stack([self._words[row].sum(axis=0) / max(len(row), WORDS_MIN) ** 0.5 for row in words])
        seen = np.hstack([vectors, np.array(shapes, dtype=np.float32)])
        inner = np.tanh(seen @ held["inner.weight"].T + held["inner.bias"])
        forward = self._read(inner, "")
        backward = self._read(inner[::-1], "_reverse")[::-1]
        both = np.hstack([forward, backward, inner])
        return np.asarray((both @ held["out.weight"].T + held["out.bias"])[:, 0], dtype=np.float32)

    def _read(self, inner: Matrix, direction: str) -> Matrix:
        """The states of a gated recurrent unit (Cho et al. 2014, as PyTorch computes it) behind each unit."""
        held = self._rest
        given = inner @ held[f"gru.weight_ih_l0{direction}"].T + held[f"gru.bias_ih_l0{direction}"]
        recurrent, bias = held[f"gru.weight_hh_l0{direction}"].T, held[f"gru.bias_hh_l0{direction}"]
        state = np.zeros(STATE_SIZE, dtype=np.float32)
        states = []
        for row in given:
            kept = state @ recurrent + bias
            gates = 1 / (1 + np.exp(-(row[: 2 * STATE_SIZE] + kept[: 2 * STATE_SIZE])))
            reset, update = gates[:STATE_SIZE], gates[STATE_SIZE:]
            new = np.tanh(row[2 * STATE_SIZE :] + reset * kept[2 * STATE_SIZE :])
            state = (1 - update) * new + update * state
            states.append(state)
        return np.stack(states)


def save(file: Path, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """The words' vectors as one signed byte each, all else in half precision."""
    words = state["words.weight"]
    unit = float(np.abs(words).max()) / 127
    rest = {name: value.astype(np.float16) for name, value in state.items() if name != "words.weight"}
    packed = {"words.weight": np.round(words / unit).astype(np.int8), "words.unit": np.float32(unit)}
    np.savez_compressed(file, **packed, **rest)  # type: ignore[arg-type]
