"""What takes part in a run, in this process: requests, routes, client, upstream, floors, and what is read of others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.bare import Bare, timed
from bench.cases import MEMORIES, REQUEST_CASES, STREAM_CASES, distinct_question, general_question, known_question
from bench.client import Connection, connect
from bench.kernel import age_s, children, cpu_seconds, resident_mb
from bench.noop import go_on, growing, processing
from bench.plan import FULL, changed
from bench.routes import envoy_config
from bench.saturation import SEARCH, Offered, offer
from bench.sidecars import Counts, counts_in, semmem_config
from bench.upstream import Upstream
from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.config import Settings
from semmem.memory import Vector
from semmem.telemetry.metrics import Metrics, MetricsPage
from tests.support.configuration import check

# --- requests --------------------------------------------------------------------------------------------------------


def test_questions_are_distinct_and_known_ones_repeat() -> None:
    assert len({distinct_question(n) for n in range(1000)}) == 1000
    assert len({general_question(n) for n in range(2000)}) == 2000
    assert len({known_question(n) for n in range(1000)}) == 20
    assert len(set(MEMORIES)) == 100


def test_a_request_is_of_the_user_that_is_named_and_whole() -> None:
    head, _, body = REQUEST_CASES[0].request(3, "somebody").partition(b"\r\n\r\n")
    assert b"authorization: Bearer demo-somebody" in head
    assert f"content-length: {len(body)}".encode() in head


# --- Envoy -----------------------------------------------------------------------------------------------------------


def test_each_case_has_a_route_with_its_own_filters_and_each_filter_its_sidecar() -> None:
    ports = {"semmem": 1, "noop": 2, "rewrite": 3, "cold": 4, "embed": 5}
    config = envoy_config(REQUEST_CASES, sidecars=ports, upstream_port=9)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    enabled = [tuple(route.get("typed_per_filter_config", {})) for route in routes]
    assert enabled == [case.filters for case in REQUEST_CASES]
    clusters = {
        entry["name"]: entry["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"]
        for entry in manager["http_filters"]
        if "grpc_service" in entry["typed_config"]
    }
    assert clusters == {f"{name}.{role}": name for name in ports for role in ("mutate", "observe")}
    listening = {
        cluster["name"]: cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"][
            "socket_address"
        ]["port_value"]
        for cluster in config["static_resources"]["clusters"]
    }
    assert listening == {"llm": 9, **ports}


def test_a_patient_run_has_longer_deadlines_in_envoy_too() -> None:
    def timeouts(patience: float) -> set[str]:
        config = envoy_config(REQUEST_CASES[:1], sidecars={"semmem": 1}, upstream_port=9, patience=patience)
        manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        return {entry["typed_config"].get("message_timeout", "") for entry in manager["http_filters"]}

    assert timeouts(1.0) == {"", "0.5s"}
    assert timeouts(4.0) == {"", "2s"}


# --- client and upstream ---------------------------------------------------------------------------------------------


async def test_client_and_upstream_agree_on_answers_and_tokens() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(5, 0.01), "127.0.0.1", 0)
    try:
        connection = await _connected(server.sockets[0].getsockname()[1])
        plain = await connection.ask(REQUEST_CASES[0].request(1), 60)
        streaming = loop.create_task(connection.ask(STREAM_CASES[0].request(2), 60))
        await connection.has_token.wait()
        assert connection.tokens
        streamed = await streaming
        again = await connection.ask(REQUEST_CASES[0].request(1), 60)
        connection.close()
    finally:
        server.close()
        await server.wait_closed()
    assert (plain.status, plain.first_token_s, plain.tokens) == (200, None, ())
    assert not connection.has_token.is_set()  # the last answer was none of tokens
    assert plain.prompt_bytes == again.prompt_bytes == len(REQUEST_CASES[0].request(1).partition(b"\r\n\r\n")[2])
    read_at = [at for at, _ in streamed.tokens]
    assert len(read_at) == 5
    assert read_at == sorted(read_at)
    assert all(transit >= 0 for _, transit in streamed.tokens)
    assert streamed.first_token_s is not None
    assert streamed.first_token_s <= streamed.seconds


async def test_a_client_that_gets_no_answer_says_so() -> None:
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    try:
        connection = await _connected(server.sockets[0].getsockname()[1])
        with pytest.raises(TimeoutError):
            await connection.ask(REQUEST_CASES[0].request(1), 0.05)
        connection.close()
    finally:
        server.close()


async def _connected(port: int) -> Connection:
    return (await connect(port, 1))[0]


async def test_a_request_that_is_due_waits_for_a_connection_and_the_wait_is_its_own() -> None:
    """Ten are offered within 0.1 s to one connection whose every answer is a stream of 0.05 s."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(5, 0.01), "127.0.0.1", 0)
    try:
        connections = await connect(server.sockets[0].getsockname()[1], 1)
        offered = await offer(STREAM_CASES[0], connections, count(), 100.0, 0.1)
        connections[0].close()
    finally:
        server.close()
        await server.wait_closed()
    assert len(offered.seconds) == 10
    assert offered.degraded == 0.0
    assert offered.seconds[0] < offered.seconds[-1]
    assert offered.seconds[-1] > 0.3


def test_a_rate_holds_while_p99_is_in_time_and_one_in_a_hundred_is_degraded() -> None:
    in_time = [0.1] * 99 + [2.0]
    assert Offered(50.0, in_time, 0.01).holds(0.35)
    assert not Offered(50.0, in_time, 0.011).holds(0.35)
    assert not Offered(50.0, [0.1] * 98 + [2.0] * 2, 0.0).holds(0.35)
    assert SEARCH.outcomes == ("injected",)


# --- floors ----------------------------------------------------------------------------------------------------------


class _Stream:
    """What grpc.aio gives a servicer: messages to read, and a place for answers."""

    def __init__(self, *messages: Any) -> None:
        self._messages = list(messages)
        self.written: list[Any] = []

    async def read(self) -> Any:
        return self._messages.pop(0)

    async def write(self, answer: Any) -> None:
        self.written.append(answer)


def _body(body: bytes) -> Any:
    return pb.ProcessingRequest(request_body=pb.HttpBody(body=body, end_of_stream=True))


async def test_the_rewriting_floor_answers_with_a_longer_body_and_its_length() -> None:
    stream = _Stream(pb.ProcessingRequest(request_headers=pb.HttpHeaders()), _body(b'{"a": 1}'))
    await processing(growing(700))(None, stream)
    headers, body = stream.written
    assert headers.HasField("request_headers")
    common = body.request_body.response
    assert common.body_mutation.body == b'{"a": 1}' + b" " * 700
    (length,) = common.header_mutation.set_headers
    assert (length.header.key, length.header.raw_value) == ("content-length", b"708")


async def test_the_floor_says_go_on_and_no_more() -> None:
    stream = _Stream(pb.ProcessingRequest(request_headers=pb.HttpHeaders()), _body(b"{}"))
    await processing(go_on)(None, stream)
    assert stream.written == [
        pb.ProcessingResponse(request_headers=pb.HeadersResponse()),
        pb.ProcessingResponse(request_body=pb.BodyResponse()),
    ]


async def test_bare_work_is_timed_one_by_one_and_so_many_at_a_time() -> None:
    under_way, most = 0, 0

    async def work(_item: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1

    seconds = await timed(work, range(7), 3)
    assert len(seconds) == 7
    assert all(0.015 < each < 1 for each in seconds)
    assert most == 3


class _Embedder:
    """Notes how it was asked."""

    dimension, signature = 3, "test/3"

    def __init__(self) -> None:
        self.asked: list[tuple[str, float | None]] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.asked.append((text, within_s))
        await asyncio.sleep(0.001)
        return np.ones(3, dtype=np.float32)

    def at_hand(self, text: str) -> Vector | None:
        return None


async def test_bare_forwards_are_asked_for_as_requests_are_not_as_background_work() -> None:
    embedder = _Embedder()
    bare = Bare(Settings(), embedder, "")
    one_by_one = await bare.do({"do": "forward", "texts": ["a", "b"], "at_once": 1})
    assert len(one_by_one["seconds"]) == 2
    assert [text for text, _ in embedder.asked] == ["a", "b"]
    batched = await bare.do({"do": "batched", "seconds": 0.05, "at_once": 4})
    assert 0 < batched["a_second"] <= 4 / 0.001
    assert len({text for text, _ in embedder.asked}) == len(embedder.asked) > 6
    assert all(within_s is not None and within_s >= 10 for _, within_s in embedder.asked)


# --- what is read of others ------------------------------------------------------------------------------------------


def test_what_semmem_counted_is_the_difference_of_two_pages() -> None:
    metrics = Metrics()
    before = _counts(metrics)
    metrics.request_seconds.labels("injected").observe(0.3)
    metrics.request_seconds.labels("greeting").observe(0.1)
    metrics.store_seconds.labels("milvus", "list").observe(0.02)
    metrics.store_seconds.labels("milvus", "put").observe(7.0)
    metrics.loop_lag_seconds.observe(0.004)
    found = _counts(metrics).since(before)
    assert list(found.timers["request"]) == pytest.approx([0.4, 2])
    assert list(found.timers["list"]) == pytest.approx([0.02, 1])
    assert list(found.timers["search"]) == list(found.timers["embed"]) == [0, 0]
    assert [found.lags[0.003], found.lags[0.005]] == [0, 1]


def _counts(metrics: Metrics) -> Counts:
    return counts_in(MetricsPage(metrics)()[0].decode())


@pytest.mark.parametrize("settings", [[], ["milvus=127.0.0.1:19530", "patience=3"]])
@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize("learns", [True, False])
def test_semmem_accepts_the_configuration_that_it_is_measured_with(
    tmp_path: Path, settings: list[str], hot: bool, learns: bool
) -> None:
    config = semmem_config(tmp_path / "data", "a-token-of-some-length", changed(FULL, settings), hot=hot, learns=learns)
    file = tmp_path / "config.json"  # JSON is YAML
    file.write_text(json.dumps(config))
    assert check(file, {}) == []


def test_the_clocks_of_a_process_count_its_work_and_its_age() -> None:
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert burner.pid in children(os.getpid())
        before, began = cpu_seconds(burner.pid), time.monotonic()
        while (used := cpu_seconds(burner.pid) - before) < 0.05:
            assert time.monotonic() - began < 120
            time.sleep(0.01)
        ticks = Path(f"/proc/{burner.pid}/stat").read_text().rpartition(")")[2].split()
        assert (int(ticks[11]) + int(ticks[12])) / 100 == pytest.approx(used + before, abs=0.3)
        assert time.monotonic() - began <= age_s(burner.pid) + 0.02
        resident = resident_mb(burner.pid)
        assert 2 < resident["rss"] < 500
        assert 0 < resident["pss"] <= resident["rss"]
    finally:
        burner.kill()
        burner.wait()
