"""The benchmark measures what it says it does. Of times nothing is asked: they are the machine's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.cases import KNOWN_QUESTIONS, REQUEST_CASES, STREAM_CASES
from bench.keys import KEYS
from tests.support import forked
from tests.support.forked import STARTS_FORKS

pytestmark = pytest.mark.timeout(420)  # roads are started one after the other: half a minute on a quiet machine

PARTS = ("requests", "streams", "process", "saturation")
PLAN = {
    "patience": "100",
    "settle_s": "0.1",
    "warm_up": "4",
    "levels": "1,2",
    "block": "2",
    "cheap_factor": "2",
    "rounds": "2",
    "stream_levels": "1,2",
    "stream_rounds": "2",
    "tokens": "6",
    "token_interval_ms": "40",
    "starts": "1",
    "users": "2",
    "memories": "3",
    "requests": "6",
    "idle_s": "1",
    "step_s": "0.5",
    "steps": "2",
}
"""Tiny."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run of every part that goes through Envoy, as ``make bench`` runs it."""
    out = tmp_path_factory.mktemp("bench") / "out.json"
    settings = [word for name, value in PLAN.items() for word in ("--set", f"{name}={value}")]
    words = ["bench", "--only", ",".join(PARTS), "--out", out, *settings]
    done = forked.finished(STARTS_FORKS, words, timeout_s=400)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    found["stdout"] = done.stdout
    return found


@pytest.fixture
def requests(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["parts"]["requests"]
    return found


@pytest.mark.long(60)
def test_every_case_is_measured_at_every_level(report: dict[str, Any], requests: dict[str, Any]) -> None:
    assert {name: set(levels) for name, levels in requests["cases"].items()} == {
        case.name: {"c1", "c2"} for case in REQUEST_CASES
    }
    assert requests["rounds"] == 2
    for case in REQUEST_CASES:
        each = 2 if case.embeds else 4
        assert requests["cases"][case.name]["c1"]["requests"] == 2 * each
        assert requests["cases"][case.name]["c2"]["requests"] == 2 * 4
    streams = report["parts"]["streams"]["cases"]
    assert {name: set(levels) for name, levels in streams.items()} == {case.name: {"c1", "c2"} for case in STREAM_CASES}


def test_every_request_ended_as_its_case_means(report: dict[str, Any]) -> None:
    for part, cases in (("requests", REQUEST_CASES), ("streams", STREAM_CASES)):
        for case in cases:
            for level, row in report["parts"][part]["cases"][case.name].items():
                assert row["as_meant"] == 1.0, (part, case.name, level, row["outcomes"])
                assert row["statuses"] == {"200": row["requests"]}


def test_every_key_of_a_request_and_a_process_has_a_verdict(report: dict[str, Any]) -> None:
    elsewhere = {key.name for key in KEYS if key.name.startswith(("mem0_", "scale_", "prompt_cache_"))}
    found = {verdict["key"] for verdict in report["verdicts"]}
    # so short a run may end before the event loop is looked at
    assert found | {"loop_lag_p99_ms"} == {key.name for key in KEYS} - elsewhere
    for name in found:
        assert name in report["stdout"]


def test_only_searches_and_the_rewriting_floors_make_the_prompt_longer(requests: dict[str, Any]) -> None:
    prompts = {name: levels["c2"]["prompt_bytes"] for name, levels in requests["cases"].items()}
    asked = {case.name: len(case.request(100).partition(b"\r\n\r\n")[2]) for case in REQUEST_CASES}
    longer = {name for name in prompts if prompts[name] > asked[name] + 100}
    assert longer == {case.name for case in REQUEST_CASES if case.outcomes == ("injected",)} | {"rewrite", "embed"}
    for floor in ("rewrite", "embed"):
        assert prompts[floor] == pytest.approx(prompts["search"], rel=0.15)


def test_the_cpu_of_a_case_is_its_own_sidecars(requests: dict[str, Any]) -> None:
    """A sidecar that is asked uses more than one that rests: what it uses is tens of times what an idle one does."""
    cpu = {name: levels["c2"]["cpu_us_per_request"] for name, levels in requests["cases"].items()}
    assert cpu["search"]["semmem"] > cpu["noop"]["semmem"]
    assert cpu["noop_both"]["noop"] > cpu["search"]["noop"]
    assert cpu["rewrite"]["rewrite"] > cpu["noop"]["rewrite"]
    assert cpu["embed"]["embed"] > cpu["noop"]["embed"]
    assert cpu["cold"]["cold"] > cpu["search"]["cold"]


def test_a_known_question_needs_no_forward_pass_and_a_new_one_does(requests: dict[str, Any]) -> None:
    for level in ("c1", "c2"):
        stages = {name: requests["cases"][name][level]["stage_mean_ms"] for name in ("known", "search")}
        assert stages["known"]["embed"] < stages["search"]["embed"] / 2, level


def test_a_hot_search_asks_no_store_and_a_cold_one_each_time(requests: dict[str, Any]) -> None:
    stages = {name: levels["c1"].get("stage_mean_ms") for name, levels in requests["cases"].items()}
    assert stages["search"]["list_calls"] == stages["search"]["search_calls"] == 0
    assert 1 <= stages["cold"]["list_calls"] < 2  # beside them, at times, one that somebody else caused
    assert stages["cold"]["search_calls"] == 0
    assert stages["search"]["embed"] > 0
    assert stages["skip"]["embed"] == stages["skip"]["list"] == 0


def test_the_floors_of_a_search_are_measured_in_the_same_rounds(requests: dict[str, Any]) -> None:
    for work in ("forward", "list", "search"):
        for level in ("c1", "c2"):
            assert len(requests["bare"][work][level]["p50_by_round"]) == 2
            assert requests["bare"][work][level]["p50"] > 0


def test_every_token_of_a_stream_is_seen_also_while_the_sidecar_is_stopped(report: dict[str, Any]) -> None:
    found = report["parts"]["streams"]
    for case in STREAM_CASES:
        row = found["cases"][case.name]["c2"]
        assert row["tokens"] == row["requests"] * 6
        assert 0 < row["token_transit_ms"]["samples"] <= row["tokens"]
    assert found["hung"]["streams"] <= KNOWN_QUESTIONS
    assert found["hung"]["tokens_came"] == found["hung"]["tokens_to_come"] > 0


def test_the_process_is_weighed_without_its_milvus(report: dict[str, Any]) -> None:
    found = report["parts"]["process"]
    resident = {name: of["rss"] for name, of in found["resident_mb"].items()}
    assert {"semmem", "milvus_lite"} < set(resident)  # and the process in which texts are read
    assert found["keys"]["rss_mb"]["value"] == pytest.approx(sum(resident.values()) - resident["milvus_lite"])
    assert len(found["ready_s"]) == 1
    assert found["idle_cpu_ms_per_s"]["semmem"]["value"] > 0


def test_rates_rise_until_they_do_not_hold(report: dict[str, Any]) -> None:
    found = report["parts"]["saturation"]
    assert [step["requests"] > 0 for step in found["steps"]] == [True, True]
    bare = found["bare_forwards_a_second"]
    assert found["questions_a_second"] <= bare["alone"]
    assert found["keys"]["efficiency"]["value"] == pytest.approx(
        found["questions_a_second"] / bare["beside_as_many_requests"]
    )


def test_the_report_says_where_it_was_seen(report: dict[str, Any]) -> None:
    assert {"envoy", "python", "grpcio", "pymilvus", "onnxruntime", "semmem", "commit"} <= set(report["versions"])
    machine = report["machine"]
    assert machine["cores"] >= 1
    assert len(machine["load_average"]) == len(machine["load_average_after"]) == 3
    assert report["command"][:3] == ["python", "-m", "bench"]
    assert report["plan"]["levels"] == [1, 2]
    assert report["versions"]["envoy"] in report["stdout"]


def test_a_part_or_a_setting_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for words, named in ((["--only", "weather"], "weather"), (["--set", "tempo=3"], "tempo")):
        done = forked.finished("bench.__main__", [*words, "--out", tmp_path / "out.json"], timeout_s=120)
        assert done.returncode == 2
        assert named in done.stderr
        assert not (tmp_path / "out.json").exists()
