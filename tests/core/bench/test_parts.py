"""From what was seen to figures, keys and tables, for blocks that never ran."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from bench import requests, streams
from bench.__main__ import astray
from bench.blocks import Block
from bench.cases import REQUEST_CASES, STREAM_CASES, Case
from bench.client import Reply
from bench.plan import Plan
from bench.sidecars import TIMERS, Counts
from bench.streams import Streams

PLAN = Plan(levels=(1, 8), stream_levels=(2, 32), stream_rounds=2, tokens=3)
MS = {"none": 1.0, "noop": 2.0, "noop_both": 2.0, "rewrite": 3.0, "embed": 9.0, "nothing": 9.0}
MS |= {"search": 13.0, "cold": 20.0}
"""How long a request takes of each case; the others 4."""
CPU_US = {"noop": 400.0, "rewrite": 500.0, "skip": 800.0, "known": 1500.0}
FORWARD_MS, LIST_MS, SEARCH_MS = 5.0, 2.0, 1.0


def _block(case: Case, slower: float) -> Block:
    """Four replies; a machine that is ``slower`` is so for all."""
    reply = Reply(200, case.outcomes[0] if case.outcomes else "", 2000, MS.get(case.name, 4.0) / 1000 * slower)
    cpu = {"envoy": 0.001} | ({case.sidecar: CPU_US.get(case.name, 1000.0) * 4e-6 * slower} if case.sidecar else {})
    timers = {name: (0.004, 4.0 if name == "request" else 0.0) for name in TIMERS}
    if case.name == "cold":
        timers["list"] = (0.01, 4.0)
    return Block([reply] * 4, cpu, Counts(timers, {0.001: 99.0, 0.01: 100.0, math.inf: 100.0}))


def _seen(slower: Sequence[float] = (1.0, 3.0)) -> requests.Seen:
    seen = requests.Seen(rounds=len(slower), seconds=1.0, loads=[0.1] * len(slower), grown_bytes=600)
    for level in PLAN.levels:
        for factor in slower:
            for case in REQUEST_CASES:
                seen.blocks[case.name, level].append(_block(case, factor))
            for work, took in (("forward", FORWARD_MS), ("list", LIST_MS), ("search", SEARCH_MS)):
                seen.bare[work, level].append([took / 1000 * factor] * 4)
    return seen


def test_the_keys_are_ratios_of_what_is_added_and_of_processor_time() -> None:
    keys = {name: key["value"] for name, key in requests.figures(_seen(), PLAN)["keys"].items()}
    assert keys == {
        "skip_cpu_ratio": pytest.approx(800 / 400),
        "known_cpu_ratio": pytest.approx(1500 / 500),
        "gate_skip_p50_ratio": pytest.approx((9 - 1) / (2 - 1 + 5)),
        "hot_p50_ratio": pytest.approx((13 - 1) / (3 - 1 + 5)),
        "cold_p50_ratio": pytest.approx((20 - 1) / (3 - 1 + 5 + 2)),
        "skip_p99_ms": pytest.approx(12 - 1),
        "loop_lag_p99_ms": pytest.approx(1.0),
    }


def test_cases_with_a_new_question_stand_beside_a_no_op_that_embeds_as_well() -> None:
    beside = requests.figures(_seen(), PLAN)["added_to_embed"]["c1"]
    assert {case: ratio["value"] for case, ratio in beside.items()} == {
        "nothing": pytest.approx((9 - 1) / (9 - 1)),
        "search": pytest.approx((13 - 1) / (9 - 1)),
        "search_both": pytest.approx((4 - 1) / (9 - 1)),
        "cold": pytest.approx((20 - 1) / (9 - 1)),
    }


def test_a_machine_that_gets_slower_changes_no_ratio_of_rounds() -> None:
    found = requests.figures(_seen((1.0, 1.0, 7.0)), PLAN)["ratios"]["c1"]["hot_p50_ratio"]
    assert found["by_round"] == pytest.approx([found["value"]] * 3)


def test_a_cold_search_is_compared_with_the_call_that_it_makes() -> None:
    seen = _seen()
    for level in PLAN.levels:
        for block in seen.blocks["cold", level]:
            timers = {"list": (0.0, 1.0), "search": (0.01, 4.0)}
            object.__setattr__(block.counts, "timers", {**block.counts.timers, **timers})
    value = requests.figures(seen, PLAN)["keys"]["cold_p50_ratio"]["value"]
    assert value == pytest.approx((20 - 1) / (3 - 1 + 5 + 1))


def test_times_are_judged_at_one_connection_and_processor_time_at_eight() -> None:
    seen = _seen((1.0,))
    dear = seen.blocks["skip", 1][0]
    seen.blocks["skip", 1] = [Block(dear.replies, {**dear.cpu_s, "semmem": 1.0}, dear.counts)]
    slow = seen.blocks["search", 8][0]
    late = [Reply(200, "injected", 2000, 1.0)] * 4
    seen.blocks["search", 8] = [Block(late, slow.cpu_s, slow.counts)]
    keys = requests.figures(seen, PLAN)["keys"]
    assert keys["skip_cpu_ratio"]["value"] == pytest.approx(2.0)
    assert keys["hot_p50_ratio"]["value"] == pytest.approx(12 / 7)


def test_the_lag_is_that_of_the_hot_semmem_from_the_most_connections() -> None:
    seen = _seen((1.0,))
    for level, late in ((1, "known"), (8, "cold")):
        fine = seen.blocks[late, level][0]
        lags = {0.001: 0.0, 0.01: 0.0, 1.0: 10_000.0, math.inf: 10_000.0}
        seen.blocks[late, level] = [Block(fine.replies, fine.cpu_s, Counts(fine.counts.timers, lags))]
    assert requests.figures(seen, PLAN)["keys"]["loop_lag_p99_ms"]["value"] == pytest.approx(1.0)
    fine = seen.blocks["known", 8][0]
    lags = {0.001: 0.0, 0.01: 100.0, math.inf: 100.0}
    seen.blocks["known", 8] = [Block(fine.replies, fine.cpu_s, Counts(fine.counts.timers, lags))]
    assert requests.figures(seen, PLAN)["keys"]["loop_lag_p99_ms"]["value"] > 9


def test_the_tables_have_a_row_for_every_case_at_every_level() -> None:
    lines = requests.table(requests.figures(_seen(), PLAN)).splitlines()
    for case in REQUEST_CASES:
        assert len([line for line in lines if line.startswith(case.title + "  ")]) >= len(PLAN.levels), case.title
    assert sum(line.startswith("bare ") for line in lines) == 3 * len(PLAN.levels)
    assert "2.00x noop" in next(line for line in lines if line.startswith("rule skip  "))


def _streams(case: Case, transit_ms: float) -> Streams:
    tokens = [(float(n), transit_ms / 1000) for n in range(6)]
    reply = Reply(200, case.outcomes[0] if case.outcomes else "", 2000, 1.0, 0.02, tuple(tokens[:3]))
    return Streams([reply, reply], tokens, {"envoy": 0.0006, "noop": 0.0, "semmem": 0.0012})


def test_a_tokens_transit_is_compared_with_two_no_op_filters_at_32_streams() -> None:
    transit = {("noop_both", 32): 0.2, ("semmem", 32): 0.3, ("semmem", 2): 50.0}
    seen = {
        (case.name, level): [_streams(case, transit.get((case.name, level), 0.1) * slower) for slower in (1, 4)]
        for case in STREAM_CASES
        for level in PLAN.stream_levels
    }
    keys = streams._keys(seen, PLAN)
    assert keys["token_transit_ratio"]["by_round"] == pytest.approx([1.5, 1.5])
    hung = {"streams": 2, "tokens_to_come": 6, "tokens_came": 6, "transit_ms": None, "gap_ms_max": 51.0, "passed": 1.0}
    found = streams.figures(seen, PLAN) | {"hung": hung}
    assert found["cases"]["semmem"]["c32"]["cpu_us_per_token"]["semmem"] == pytest.approx(200.0)
    lines = streams.table(found).splitlines()
    assert len([line for line in lines if line.startswith("no-op mutate + observe  ")]) == 2
    assert "6 of 6 tokens came" in lines[-1]


def _row(meant: float, status: str = "200") -> dict[str, Any]:
    return {"as_meant": meant, "outcomes": {}, "statuses": {status: 10}}


def test_requests_that_ended_otherwise_break_a_run_of_one_at_a_time_and_are_noted_of_many() -> None:
    cases = {"fine": {"c1": _row(0.96), "c8": _row(1.0)}, "slow": {"c8": _row(0.5)}, "wrong": {"c1": _row(0.9)}}
    notes, broken = astray({"requests": {"cases": cases}, "process": {}})
    assert [note.partition(":")[2].split()[0] for note in notes] == ["slow"]
    assert [line.partition(":")[2].split()[0] for line in broken] == ["wrong"]


def test_an_answer_other_than_200_breaks_a_run() -> None:
    assert astray({"streams": {"cases": {"one": {"c8": _row(1.0, "503")}}}})[1]
