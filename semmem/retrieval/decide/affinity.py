"""Which memories a request goes with though they share neither word nor meaning: learnt from what was wanted.

A vector says what a text is about. A dinner is about food, an allergy about health, and still the one wants the other.
So the request's and the memory's vector are each brought to a few numbers, and the sum of their products is added to
the memory's log-odds: a bilinear form of low rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semmem.retrieval.decide.trained import AFFINITIES, Floats

PENALTY = 3e-5
"""Of the square of each weight, beside the mean loss of a row. This and the next were chosen by the average precision
on our own scenes, each judged by what the others taught."""
ROUNDS, ROWS_AT_A_TIME = 10, 4096
RATE, RATE_KEPT = 0.016, 0.8
"""How far a step goes, and what is left of that after each round."""
MEAN_KEPT, SQUARE_KEPT, LEAST = 0.9, 0.999, 1e-8
"""Adam's (Kingma and Ba 2015), as they propose them."""
START = 0.3
SEED = 7


@dataclass(frozen=True, slots=True)
class Rows:
    """What is learnt from, n rows: the vectors of ``requests`` (m, d) and which of them (n,) each row is of; the
    vectors of ``memories`` (n, d), whether each was ``wanted`` (n,), its ``logits`` (n,) so far, and how much it
    counts."""

    requests: Floats
    request_of: npt.NDArray[np.int64]
    memories: Floats
    wanted: npt.NDArray[np.bool_]
    logits: Floats
    weights: npt.NDArray[np.float64]


def learn(rows: Rows) -> tuple[Floats, Floats]:
    """Both maps, (AFFINITIES, d) each: of requests, and of memories. The same rows give the same numbers."""
    chance = np.random.default_rng(SEED)
    shape = (rows.requests.shape[1], AFFINITIES)
    maps = [_Map((START * chance.standard_normal(shape)).astype(np.float32)) for _ in range(2)]
    rate = RATE
    for _ in range(ROUNDS):
        for some in np.array_split(chance.permutation(len(rows.wanted)), len(rows.wanted) // ROWS_AT_A_TIME + 1):
            asking, held = rows.requests[rows.request_of[some]], rows.memories[some]
            of_request, of_memory = asking @ maps[0].weights, held @ maps[1].weights
            logits = rows.logits[some] + (of_request * of_memory).sum(axis=1)
            wrong = rows.weights[some] * (1 / (1 + np.exp(-logits)) - rows.wanted[some]) / len(some)
            maps[0].step(asking.T @ (wrong[:, None] * of_memory), rate)
            maps[1].step(held.T @ (wrong[:, None] * of_request), rate)
        rate *= RATE_KEPT
    return maps[0].weights.T, maps[1].weights.T


class _Map:
    """Weights that are moved against their gradients, by Adam."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)
        self._steps = 0

    def step(self, gradient: npt.NDArray[np.float64], rate: float) -> None:
        slope: Floats = (gradient + 2 * PENALTY * self.weights).astype(np.float32)
        self._steps += 1
        self._mean = MEAN_KEPT * self._mean + (1 - MEAN_KEPT) * slope
        self._square = SQUARE_KEPT * self._square + (1 - SQUARE_KEPT) * slope**2
        mean = self._mean / (1 - MEAN_KEPT**self._steps)
        square = self._square / (1 - SQUARE_KEPT**self._steps)
        self.weights = (self.weights - rate * mean / (np.sqrt(square) + LEAST)).astype(np.float32)
