"""Which memories a request goes with, learnt from what was wanted."""

from __future__ import annotations

import numpy as np

from semmem.retrieval.decide.affinity import Rows, learn
from semmem.retrieval.decide.trained import AFFINITIES, Floats

DIMENSION, COUNT = 12, 20_000


def rows() -> Rows:
    """What a request wants is told by another direction than that in which it lies; the logits so far say nothing."""
    chance = np.random.default_rng(1)
    requests, memories = (chance.normal(size=(COUNT, DIMENSION)).astype(np.float32) for _ in range(2))
    wanted = requests[:, 0] * memories[:, 5] > 0
    nothing: Floats = np.zeros(COUNT, dtype=np.float32)
    return Rows(requests, np.arange(COUNT), memories, wanted, nothing, np.ones(COUNT))


def test_what_goes_with_what_is_learnt_though_they_lie_in_no_common_direction() -> None:
    made = rows()
    asking, held = learn(made)
    assert asking.shape == held.shape == (AFFINITIES, DIMENSION)
    logits = ((made.requests @ asking.T) * (made.memories @ held.T)).sum(axis=1)
    assert ((logits > 0) == made.wanted).mean() > 0.75


def test_what_counts_nothing_is_not_learnt_from() -> None:
    made = rows()
    made.weights[:] = 0.0
    asking, held = learn(made)
    logits = ((made.requests @ asking.T) * (made.memories @ held.T)).sum(axis=1)
    assert ((logits > 0) == made.wanted).mean() < 0.6
