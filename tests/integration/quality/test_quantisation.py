"""What an index costs, measured on memories whose nearest are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.recalling import memory, milvus_at
from quality.quantisation import LIMIT, NOW, Cost, Material, cost_of

DIMENSION = 32
USERS, EACH = ("ann", "bob"), 60


@pytest.fixture(scope="module")
def material() -> Material:
    random = np.random.default_rng(3)
    vectors = random.standard_normal((len(USERS) * EACH, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    memories = {
        user: [memory(at, user, f"memory {at}", vectors[at], NOW) for at in range(number * EACH, (number + 1) * EACH)]
        for number, user in enumerate(USERS)
    }
    return Material(memories, [(user, vectors[at]) for user in USERS for at in range(0, 120, 10)])


def test_the_exact_nearest_are_the_users_own(material: Material) -> None:
    user, question = material.questions[0]
    exact = material.exact(user, question)
    assert len(exact) == LIMIT
    assert next(iter(exact)) == "m0"
    assert exact["m0"] == pytest.approx(1.0, abs=1e-6)
    assert exact.keys() <= {one.id for one in material.memories["ann"]}


async def test_flat_costs_nothing_and_bytes_cost_a_little(material: Material, tmp_path: Path) -> None:
    async with milvus_at("", tmp_path / "milvus") as uri:
        flat, eight = [await cost_of(index, uri, material, DIMENSION) for index in ("FLAT", "IVF_SQ8")]
    assert (flat.recall, flat.short) == (1.0, 0)
    assert flat.error_max < 1e-5
    assert isinstance(eight, Cost)
    assert eight.short == 0
    assert eight.recall > 0.9
    assert 1e-5 < eight.error_max < 0.02
