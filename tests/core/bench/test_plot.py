"""Pictures of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.cases import REQUEST_CASES, STREAM_CASES
from bench.plot import MET, MISSED, main
from bench.scale_figures import PATHS


def _verdict(key: str, value: float, *, met: bool) -> dict[str, Any]:
    return {
        "key": key,
        "value": value,
        "quartiles": [value / 2, value * 2],
        "target": 1.0,
        "at_least": False,
        "met": met,
    }


def _report() -> dict[str, Any]:
    latency = {"latency_ms": {"p50": 1.0, "p99": 3.0}}
    of_tokens = {
        "first_token_ms": {"p50": 2.0},
        "token_transit_ms": {"p50": 0.1},
        "cpu_us_per_token": {"noop": 100.0, "semmem": 120.0},
    }
    step = {"rate": 10.0, "p50_ms": 8.0, "p99_ms": 20.0}
    return {
        "verdicts": [_verdict("skip_cpu_ratio", 0.9, met=True), _verdict("known_cpu_ratio", 77.25, met=False)],
        "parts": {
            "requests": {
                "ratios": {"c1": {}, "c8": {}},
                "cases": {case.name: {"c1": latency, "c8": latency} for case in REQUEST_CASES},
            },
            "streams": {"cases": {case.name: {"c1": of_tokens, "c32": of_tokens} for case in STREAM_CASES}},
            "process": {},
            "scale": {"sizes": {size: dict.fromkeys(PATHS, latency) for size in ("1000x10", "100000x10000")}},
            "mem0": {
                "systems": {
                    "semmem": {"embed_ms": {"p50": 5.0}, "search_ms": {"p50": 1.0}, "recall_at_5": 0.75},
                    "mem0_milvus": {"embed_ms": {"p50": 11.0}, "search_ms": {"p50": 8.0}, "recall_at_5": 0.7},
                }
            },
            "saturation": {
                "steps": [step, {**step, "rate": 11.5}],
                "deadline_ms": 350.0,
                "bare_forwards_a_second": {"beside_as_many_requests": 90.0},
            },
        },
    }


def _drawn(report: dict[str, Any], folder: Path) -> dict[str, str]:
    """What was written, by name."""
    folder.mkdir()
    figures = folder / "figures.json"
    figures.write_text(json.dumps(report))
    assert main([str(figures), str(folder)]) == 0
    return {file.name: file.read_text() for file in folder.glob("*.svg")}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return _drawn(_report(), tmp_path_factory.mktemp("plots") / "one")


def test_each_part_with_a_picture_has_one_that_is_well_formed(drawn: dict[str, str]) -> None:
    parts = ("verdicts", "requests", "streams", "saturation", "scale", "mem0")
    assert set(drawn) == {f"bench-{part}.svg" for part in parts}
    for text in drawn.values():
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_what_is_met_and_what_is_missed_differ_in_colour_and_both_show_their_numbers(drawn: dict[str, str]) -> None:
    text = drawn["bench-verdicts.svg"]
    assert MET in text
    assert MISSED in text
    assert "0.90 (≤ 1)" in text
    assert "77.25 (≤ 1)" in text


def test_every_case_is_named(drawn: dict[str, str]) -> None:
    for case in REQUEST_CASES:
        assert case.title in drawn["bench-requests.svg"]
    for case in STREAM_CASES:
        assert case.title in drawn["bench-streams.svg"]


def test_every_size_and_every_system_is_named(drawn: dict[str, str]) -> None:
    assert "100,000 of 10,000" in drawn["bench-scale.svg"]
    assert "bare search" in drawn["bench-scale.svg"]
    assert "mem0_milvus" in drawn["bench-mem0.svg"]
    assert "recall@5 75%" in drawn["bench-mem0.svg"]


def test_the_same_figures_give_the_same_bytes(drawn: dict[str, str], tmp_path: Path) -> None:
    assert _drawn(_report(), tmp_path / "again") == drawn


def test_a_part_that_was_not_measured_has_no_picture(tmp_path: Path) -> None:
    report = _report()
    del report["parts"]["saturation"], report["parts"]["streams"], report["parts"]["scale"]
    report["parts"]["mem0"] = {"systems": {}, "not_measured": {"mem0_total_ratio": "mem0 is not installed"}}
    assert set(_drawn(report, tmp_path / "fewer")) == {"bench-verdicts.svg", "bench-requests.svg"}


def test_without_figures_and_a_folder_it_says_what_it_wants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures.json"]) == 2
    assert "usage: python -m bench.plot figures.json folder/" in capsys.readouterr().err
