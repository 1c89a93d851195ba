"""The benchmarks that need no Envoy, as small as they can be, with the shipped model and a Milvus Lite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import learning, scale
from bench.plan import FULL, Place
from bench.scale_figures import PATHS
from semmem.request.outcome import Outcome

pytestmark = pytest.mark.long(20)

PLAN = replace(
    FULL,
    scale_memories=(40, 60),
    scale_users=(4, 20),
    scale_calls=12,
    scale_rounds=2,
    journalled=200,
    sessions=2,
    turns_alone=2,
    turns_burst=4,
)


def _place(folder: Path) -> Place:
    return Place(folder / "no-envoy", folder)


def test_every_path_finds_memories_by_the_way_it_means(tmp_path: Path) -> None:
    found = scale.measure(PLAN, _place(tmp_path), lambda _line: None, server=tmp_path / "none")
    assert set(found["sizes"]) == {"40x4", "60x20"}
    for size in found["sizes"].values():
        assert set(size) == set(PATHS)
        assert size["hot"]["as_meant"] > 0
        assert size["cold"]["as_meant"] > 0
        assert set(size["dense"]["outcomes"]) <= {Outcome.COLD_DENSE, Outcome.NO_HITS}
        assert {path: row["latency_ms"]["samples"] for path, row in size.items()} == dict.fromkeys(PATHS, 12)
        assert all(row["latency_ms"]["p50"] > 0 for row in size.values())
    assert found["milvus"].startswith("milvus_lite")


def test_what_is_said_is_journalled_and_learnt_in_batches_and_at_once(tmp_path: Path) -> None:
    found = learning.measure(PLAN, _place(tmp_path), lambda _line: None)
    assert found["journal"]["turns"] == 200
    assert found["batches"]["statuses"] == {"stored": 2}
    assert found["batches"]["stored_per_s"] > 0
    assert found["at_once"]["statuses"].get("stored", 0) >= 2
    assert sum(found["at_once"]["statuses"].values()) == 6
    assert "turns a second committed" in learning.table(found)
