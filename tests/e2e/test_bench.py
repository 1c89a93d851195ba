"""The benchmark measures what it says it does. Of times nothing is asked: they are the machine's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.cases import CASES, JSON_CASES, STREAM_CASES
from bench.road import cpu_seconds
from demo.stack import HOME

pytestmark = pytest.mark.timeout(300)  # a whole road is started: seconds on a quiet machine

COUNTS = ["--requests", "2", "--rounds", "2", "--concurrency", "2", "--streams", "2", "--tokens", "3"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run with tiny counts, as ``make bench`` runs it."""
    out = tmp_path_factory.mktemp("bench") / "out.json"
    argv = [sys.executable, "-m", "bench", "--out", str(out), "--token-interval-ms", "5", "--patience", "20", *COUNTS]
    done = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    found["stdout"] = done.stdout
    return found


@pytest.mark.long(25)
def test_every_case_is_measured_at_every_concurrency(report: dict[str, Any]) -> None:
    levels = {name: set(levels) for name, levels in report["cases"].items()}
    assert levels == {case.name: {"c1", "c2"} for case in JSON_CASES} | {case.name: {"c2"} for case in STREAM_CASES}
    assert report["rounds"] == 2
    assert all(row["requests"] in (2, 4) for levels in report["cases"].values() for row in levels.values())


def test_every_request_ended_as_its_case_means(report: dict[str, Any]) -> None:
    for case in CASES:
        for row in report["cases"][case.name].values():
            assert row["outcomes"] == {case.outcome: row["requests"]}
            assert row["statuses"] == {"200": row["requests"]}


def test_only_searches_make_the_prompt_longer(report: dict[str, Any]) -> None:
    prompts = {name: row["c2"]["prompt_bytes"] for name, row in report["cases"].items()}
    asked = {case.name: len(case.request(300).partition(b"\r\n\r\n")[2]) for case in CASES}
    longer = {name for name in prompts if prompts[name] > asked[name] + 100}
    assert longer == {case.name for case in CASES if case.outcome == "injected"}


def test_the_cpu_of_a_case_is_its_own_sidecars(report: dict[str, Any]) -> None:
    cpu = {name: row["c2"]["cpu_us_per_request"] for name, row in report["cases"].items()}
    assert cpu["search"]["semmem"] > cpu["noop"]["semmem"]
    assert cpu["noop_both"]["noop"] > cpu["search"]["noop"]
    assert cpu["search"]["milvus_lite"] < cpu["search"]["semmem"]  # the user's memories are in process


def test_every_token_of_a_stream_is_seen(report: dict[str, Any]) -> None:
    for case in STREAM_CASES:
        row = report["cases"][case.name]["c2"]
        assert row["first_token_ms"]["samples"] == row["requests"]
        assert row["token_transit_ms"]["samples"] == row["requests"] * 3
        assert 0 < row["token_transit_ms"]["p50"] < row["first_token_ms"]["p99"]


def test_the_stages_of_a_search_lie_within_its_latency(report: dict[str, Any]) -> None:
    stages = report["cases"]["search"]["c1"]["stage_mean_ms"]
    assert stages["embed"] > 0
    assert stages["store"] < stages["request"] / 2  # the user's memories are in process
    assert stages["embed"] + stages["store"] < stages["request"] < stages["whole"]
    assert report["cases"]["skip"]["c1"]["stage_mean_ms"]["store"] == 0


def test_ratios_are_to_the_floor_of_the_same_run_and_concurrency(report: dict[str, Any]) -> None:
    for case in CASES:
        for level, row in report["cases"][case.name].items():
            assert set(row["ratios"]) == set(case.floors)
            for floor, ratio in row["ratios"].items():
                figure = "token_transit_ms" if case.stream else "latency_ms"
                its = report["cases"][floor][level]
                assert ratio[figure]["p50"] == pytest.approx(row[figure]["p50"] / its[figure]["p50"])


def test_the_report_says_where_it_was_seen(report: dict[str, Any]) -> None:
    assert {"envoy", "python", "grpcio", "pymilvus", "torch", "semmem", "commit"} <= set(report["versions"])
    machine = report["machine"]
    assert machine["cores"] >= 1
    assert len(machine["load_average"]) == len(machine["load_average_after"]) == 3
    assert report["command"][:3] == ["python", "-m", "bench"]
    assert "JSON requests, 2 at a time" in report["stdout"]
    assert report["versions"]["envoy"] in report["stdout"]


def test_the_cpu_clock_of_a_process_counts_its_work() -> None:
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, began = cpu_seconds(burner.pid), time.monotonic()
        while (used := cpu_seconds(burner.pid) - before) < 0.05:
            assert time.monotonic() - began < 20
            time.sleep(0.01)
        ticks = Path(f"/proc/{burner.pid}/stat").read_text().rpartition(")")[2].split()
        assert (int(ticks[11]) + int(ticks[12])) / 100 == pytest.approx(used + before, abs=0.3)
    finally:
        burner.kill()
        burner.wait()
