"""Removals are counted by reason and logged by ids, never with content."""

from __future__ import annotations

import logging

import pytest

from semmem.extraction.dedup import Removal
from semmem.extraction.result import BatchResult
from semmem.memory import Scope
from semmem.ports.learning import Batch
from semmem.telemetry.metering import count_removals
from semmem.telemetry.metrics import Metrics


def test_each_removal_is_one_line_and_one_count(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    batch = Batch("b-1", Scope("alice"), (), (), "end", 1)
    removals = (
        Removal("repeated", "mem_new", "mem_old"),
        Removal("contradicted", "mem_boston", "mem_seattle"),
        Removal("updated", "mem_budget", "mem_budget"),
        Removal("updated", "mem_age", "mem_age"),
    )
    with caplog.at_level(logging.INFO, "semmem"):
        count_removals(metrics, batch, BatchResult("stored", rejected={"over_limit": 3}, removals=removals))
    registry = metrics.registry
    assert registry.get_sample_value("semmem_facts_dropped_total", {"reason": "repeated"}) == 1
    assert registry.get_sample_value("semmem_memories_removed_total", {"reason": "contradicted"}) == 1
    assert registry.get_sample_value("semmem_memories_removed_total", {"reason": "updated"}) == 2
    assert caplog.messages == [
        "batch b-1: repeated mem_new, in favour of mem_old",
        "batch b-1: contradicted mem_boston, in favour of mem_seattle",
        "batch b-1: updated mem_budget, in favour of mem_budget",
        "batch b-1: updated mem_age, in favour of mem_age",
        "batch b-1: 3 facts rejected (over_limit)",
    ]
    assert "alice" not in caplog.text
