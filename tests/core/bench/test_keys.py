"""What the figures are to reach."""

from __future__ import annotations

import pytest

from bench.keys import KEYS, verdict_table, verdicts


def _figure(value: float, quartiles: list[float] | None = None) -> dict[str, object]:
    return {"value": value, "quartiles": quartiles}


def test_a_figure_is_met_at_its_target_and_not_beyond_it() -> None:
    parts = {
        "one": {"keys": {"skip_cpu_ratio": _figure(1.3), "hot_p50_ratio": _figure(1.21)}},
        "two": {"keys": {"efficiency": _figure(0.6), "mem0_total_ratio": _figure(2.9)}},
    }
    met = {one["key"]: one["met"] for one in verdicts(parts)}
    assert met == {"skip_cpu_ratio": True, "hot_p50_ratio": False, "efficiency": True, "mem0_total_ratio": False}


def test_what_was_not_measured_has_no_verdict() -> None:
    assert verdicts({"part": {"rounds": 3}}) == []


def test_a_key_that_nobody_has_a_target_for_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="hot_ratio"):
        verdicts({"part": {"keys": {"hot_ratio": _figure(1.0)}}})


def test_the_table_shows_value_target_verdict_and_the_middle_of_the_rounds() -> None:
    parts = {"part": {"keys": {"rss_mb": _figure(593.0), "efficiency": _figure(0.7, [0.65, 0.72])}}}
    _, rss, efficiency = verdict_table(verdicts(parts)).splitlines()
    assert rss.split()[:5] == ["rss_mb", "593.00", "<=", "300", "NO"]
    assert efficiency.split()[:8] == ["efficiency", "0.70", ">=", "0.6", "yes", "0.65", "-", "0.72"]


def test_every_key_is_there_once() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)
