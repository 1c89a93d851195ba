"""The benchmark's figures, and its client and upstream beside each other in one process."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from bench.cases import CASES, JSON_CASES, MEMORIES, STREAM_CASES, cached_question, distinct_question
from bench.client import Connection, connect
from bench.plan import Plan
from bench.report import figures, percentile, ratios, spread, table
from bench.road import envoy_config
from bench.run import Result, Tally
from bench.upstream import Upstream

# --- figures ---------------------------------------------------------------------------------------------------------


def test_a_percentile_is_a_sample_that_was_seen() -> None:
    samples = [float(n) for n in range(100, 0, -1)]
    assert [percentile(samples, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 0.5) == 7.0


def test_a_spread_is_in_milliseconds_over_all_rounds_and_by_round() -> None:
    found = spread([[0.001, 0.002, 0.003], [0.010], []])
    assert found == {"p50": 2.0, "p99": 10.0, "p50_best_round": 2.0, "p50_by_round": [2.0, 10.0], "samples": 4}


def _row(rounds: list[list[float]], cpu_us: float) -> dict[str, Any]:
    return {
        "sidecar": "semmem",
        "latency_ms": spread(rounds),
        "cpu_us_per_request": {"envoy": 2 * cpu_us, "noop": 0.0, "semmem": cpu_us, "milvus_lite": 5.0},
    }


def test_ratios_divide_by_the_floor() -> None:
    found = ratios(_row([[0.004], [0.030]], 600.0), _row([[0.002], [0.010]], 200.0))
    assert found["latency_ms"] == {
        "p50": pytest.approx(2.0),
        "p99": pytest.approx(3.0),
        "p50_paired": pytest.approx(2.5),
        "p50_added_ms": pytest.approx(2.0),
    }
    assert found["cpu_sidecar"] == pytest.approx(3.0)
    assert found["cpu_envoy"] == pytest.approx(3.0)


def test_nothing_is_divided_by_the_cpu_of_a_sidecar_that_was_not_asked() -> None:
    nobody = _row([[0.002]], 200.0) | {"sidecar": ""}
    assert ratios(_row([[0.004]], 600.0), nobody)["cpu_sidecar"] is None


def test_the_table_has_a_row_for_every_case() -> None:
    plan = Plan(requests=1, rounds=1, concurrency=2, streams=2, tokens=3)
    result = Result(rounds=1)
    for case in CASES:
        for level in (2,) if case.stream else (1, 2):
            tally = Tally(seconds=[[0.002]], outcomes=Counter({case.outcome: 1}), statuses=Counter({200: 1}))
            tally.prompt_bytes.append(10)
            tally.first_token_s, tally.transit_s = [[0.001]], [[0.0001]]
            tally.cpu_s = Counter({"envoy": 0.001, "noop": 0.001, "semmem": 0.002, "milvus_lite": 0.0})
            result.tallies[case.name, level] = tally
    lines = table(figures(result, plan), plan).splitlines()
    for case in CASES:
        times = 1 if case.stream else 2
        group = [line for line in lines if line.startswith(case.title + "  ")]
        assert len(group) >= times, case.title
    assert "1.00x noop" in next(line for line in lines if line.startswith("semmem, rule skip  "))


# --- pieces ----------------------------------------------------------------------------------------------------------


def test_distinct_questions_are_distinct_and_known_ones_repeat() -> None:
    assert len({distinct_question(n) for n in range(1000)}) == 1000
    assert len({cached_question(n) for n in range(1000)}) == 20
    assert len(set(MEMORIES)) == 100


def test_each_case_has_a_route_with_its_own_filters() -> None:
    config = envoy_config(CASES, semmem_port=1, noop_port=2, upstream_port=3)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    enabled = [tuple(route.get("typed_per_filter_config", {})) for route in routes]
    assert enabled == [case.filters for case in CASES]
    clusters = {
        entry["name"]: entry["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"]
        for entry in manager["http_filters"]
        if "grpc_service" in entry["typed_config"]
    }
    assert clusters == {"semmem.mutate": "semmem", "semmem.observe": "semmem"} | {
        "noop.mutate": "noop",
        "noop.observe": "noop",
    }


async def test_client_and_upstream_agree_on_answers_and_tokens() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(5, 0.01), "127.0.0.1", 0)
    try:
        connection = await _connected(server.sockets[0].getsockname()[1])
        plain = await connection.ask(JSON_CASES[0].request(1), 5)
        streamed = await connection.ask(STREAM_CASES[0].request(2), 5)
        again = await connection.ask(JSON_CASES[0].request(1), 5)
        connection.close()
    finally:
        server.close()
        await server.wait_closed()
    assert (plain.status, plain.first_token_s, plain.transits_s) == (200, None, ())
    assert plain.prompt_bytes == again.prompt_bytes == len(JSON_CASES[0].request(1).partition(b"\r\n\r\n")[2])
    assert len(streamed.transits_s) == 5
    assert streamed.first_token_s is not None
    assert streamed.first_token_s < streamed.seconds - 0.03


async def test_a_client_that_gets_no_answer_says_so() -> None:
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    try:
        connection = await _connected(server.sockets[0].getsockname()[1])
        with pytest.raises(TimeoutError):
            await connection.ask(JSON_CASES[0].request(1), 0.05)
        connection.close()
    finally:
        server.close()


async def _connected(port: int) -> Connection:
    return (await connect(port, 1))[0]
