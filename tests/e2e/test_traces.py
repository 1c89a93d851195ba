"""Traces of real requests through a real Envoy, as a collector has them that speaks OTLP over HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.collector import Collector, Exported, collector, printed
from tests.support.endpoints import another_endpoint
from tests.support.harness import ADMIN_TOKEN, House, StandInModel, eventually, house, semmem_process

Json = dict[str, Any]

HMAC_SECRET = "a-secret-of-the-tests-alone"
SAID = "What is my budget for the Quokkaland trip? By the way, I am allergic to zibbernuts."
REMEMBERED = "My budget for the Quokkaland trip is $10,000"
OF_USERS = (b"okkaland", b"zibbernut", b"allergic", b"budget", b"10,000")
REQUEST = (
    *("semmem.receive", "semmem.read", "semmem.decide", "semmem.journal", "search_memory"),
    *("semmem.rank", "semmem.render", "semmem.rewrite", "semmem.observe"),
)


@pytest.fixture(scope="module")
def told() -> Iterator[Collector]:
    with collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced(model: StandInModel, told: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("traced"), model, tracing(told)) as running:
        yield running


def tracing(told: Collector) -> Json:
    rules = {"endpoint": told.url, "interval_s": 0.1, "user_hmac_secret": HMAC_SECRET}
    return {"memory": {"backend": "in_process"}, "tracing": rules}


class Caller:
    """Where a client stands in a trace of its own."""

    def __init__(self, *, sampled: bool = True) -> None:
        self.trace, self.span = secrets.token_hex(16), secrets.token_hex(8)
        self.headers = {"traceparent": f"00-{self.trace}-{self.span}-0{int(sampled)}", "tracestate": "shop=till7"}


def spans_of(told: Collector, caller: Caller, *names: str) -> dict[str, list[Exported]]:
    """The caller's trace by names of spans, as soon as these are there."""

    def whole() -> dict[str, list[Exported]] | None:
        found = told.trace(caller.trace)
        return found if all(name in found for name in names) else None

    found: dict[str, list[Exported]] = eventually(whole, within_s=60, what=f"{', '.join(names)} are exported")
    return found


def test_one_request_is_one_trace_from_the_client_to_what_was_learnt(
    traced: House, told: Collector, alice: str
) -> None:
    caller = Caller()
    traced.semmem.remember(alice, REMEMBERED)
    reply = traced.chat(alice, SAID, session="till-session", stream=True, headers=caller.headers)
    assert reply.outcome == "injected"
    wanted = (*REQUEST, "semmem.answer", "semmem.commit", "semmem.learn_at_once", "semmem.extract", "upsert_memory")

    found = spans_of(told, caller, *wanted)

    shown = printed(span for spans in found.values() for span in spans)
    (request,), (observed,), (learnt,) = (
        found[name] for name in ("semmem.request", "semmem.observe", "semmem.learn_at_once")
    )
    assert request.parent == caller.span, shown
    assert request.kind == 2, "a server's"
    assert {found[name][0].parent for name in REQUEST} == {request.id}, shown
    assert {half.parent for half in found["semmem.commit"]} == {request.id, observed.id}, shown
    assert (found["semmem.answer"][0].parent, learnt.parent) == (observed.id, observed.id), shown
    assert {found[name][0].parent for name in ("semmem.extract", "upsert_memory")} == {learnt.id}, shown
    assert (request.state, observed.state) == ("shop=till7", "shop=till7")
    assert request.attributes["semmem.outcome"] == "injected"
    request_id = request.attributes["semmem.request_id"]
    assert traced.semmem.api("GET", f"/v1/requests/{request_id}")["trace_id"] == caller.trace
    assert found["search_memory"][0].attributes["gen_ai.operation.name"] == "search_memory"
    assert found["search_memory"][0].attributes["gen_ai.memory.record.count"] == 1
    assert observed.attributes["semmem.ending"] == "answered"
    assert found["upsert_memory"][0].attributes["semmem.action"] == "created"
    digest = hmac.new(HMAC_SECRET.encode(), alice.encode(), hashlib.sha256).hexdigest()[:16]
    assert request.attributes["enduser.pseudo.id"] == learnt.attributes["enduser.pseudo.id"] == digest
    assert reply.received is not None
    assert reply.received.header("traceparent") == caller.headers["traceparent"], "the model's own joins the client's"

    batch = eventually(lambda: batch_of(told, request), within_s=60, what="the batch")
    assert batch.trace != caller.trace
    assert batch.attributes["semmem.turns"] == 1


def batch_of(told: Collector, request: Exported) -> Exported | None:
    linked = (request.trace, request.id)
    return next((span for span in told.spans if span.name == "semmem.learn" and linked in span.links), None)


def test_nothing_a_user_said_and_no_ones_name_is_told_to_the_collector(
    traced: House, told: Collector, bob: str
) -> None:
    callers = [Caller() for _ in range(3)]
    traced.semmem.remember(bob, REMEMBERED)
    traced.chat(bob, SAID, session="till-session", headers=callers[0].headers)
    traced.chat(bob, SAID, session="till-session", stream=True, headers=callers[1].headers)
    malformed = b'{"model": "zibbernut", "messages": [{"role": "user", "content": 7}]}'
    traced.send(malformed, user=bob, headers=callers[2].headers)
    for caller in callers[:2]:
        spans_of(told, caller, "semmem.request", "semmem.observe")
    spans_of(told, callers[0], "semmem.learn_at_once", "upsert_memory")
    spans_of(told, callers[2], "semmem.request")
    everything = b"\n".join(told.bodies)
    answer = json.loads(traced.chat(bob, SAID).body)["choices"][0]["message"]["content"].encode()
    names = (bob.encode(), b"till-session", answer)
    assert [word for word in (*OF_USERS, *names) if word in everything] == []
    assert b"semmem.outcome" in everything, "what is searched is what was told"


def test_a_call_of_the_api_is_in_its_callers_trace(traced: House, told: Collector, alice: str) -> None:
    caller, asking = Caller(), {"authorization": f"Bearer {ADMIN_TOKEN}"}
    api, http = traced.semmem.api_url, traced.semmem.http
    new = {"user_id": alice, "content": REMEMBERED}
    assert http.post(f"{api}/v1/memory", json=new, headers=asking | caller.headers).status_code == 201
    found = spans_of(told, caller, "POST /v1/memory", "put in_process")
    (call,) = found["POST /v1/memory"]
    assert (call.parent, call.kind, call.state) == (caller.span, 2, "shop=till7")
    assert {span.parent for name, spans in found.items() for span in spans if name.startswith("embeddings ")} == {
        call.id
    }, printed(span for spans in found.values() for span in spans)


def test_a_caller_who_records_nothing_is_obeyed(traced: House, told: Collector, alice: str) -> None:
    unrecorded, recorded = Caller(sampled=False), Caller()
    traced.chat(alice, SAID, headers=unrecorded.headers)
    traced.chat(alice, SAID, headers=recorded.headers)
    spans_of(told, recorded, "semmem.observe")
    assert told.trace(unrecorded.trace) == {}


def test_a_collector_that_is_slow_or_refuses_costs_no_request(traced: House, told: Collector, alice: str) -> None:
    before = traced.semmem.metric("semmem_trace_spans_total", result="failed")
    told.status = 500
    told.go_on.clear()
    try:
        replies = [traced.chat(alice, f"What is my budget? ({number})") for number in range(20)]
    finally:
        told.go_on.set()
    assert {reply.status for reply in replies} == {200}
    assert max(reply.seconds for reply in replies) < 15, "the collector answers after thirty"
    eventually(
        lambda: traced.semmem.metric("semmem_trace_spans_total", result="failed") > before, within_s=60, what="counted"
    )
    told.status = 200
    caller = Caller()
    traced.chat(alice, SAID, headers=caller.headers)
    spans_of(told, caller, "semmem.request")

    def times(words: str) -> int:
        return sum(words in line for line in traced.semmem.child.printed().splitlines())

    # the collector has the spans before semmem has its answer
    eventually(lambda: times("traces are exported again") == 1, within_s=15, what="said")
    assert times("traces are not exported") == 1


def test_envoys_own_spans_and_those_of_two_replicas_are_in_the_same_trace(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    with collector() as told, semmem_process(tmp_path / "other", tracing(told)) as other:

        def adapt(config: Json) -> None:
            another_endpoint(config, other.grpc_port)["health_check_config"] = {"disable_active_health_check": True}
            envoy_traces(config, told.url)

        with house(tmp_path, model, tracing(told), adapt) as pair:
            callers = [Caller() for _ in range(4)]
            for caller in callers:
                assert pair.chat(alice, SAID, headers=caller.headers).status == 200
            traces = [spans_of(told, caller, "ingress", "semmem.request", "semmem.observe") for caller in callers]
    for caller, found in zip(callers, traces, strict=True):
        (ingress,), (request,), (observed,) = (found[name] for name in ("ingress", "semmem.request", "semmem.observe"))
        calls = {span.id for name, spans in found.items() if "ext_proc" in name for span in spans}
        assert (ingress.parent, observed.parent) == (caller.span, request.id)
        assert request.parent in calls
    assert any(len(replicas(found)) == 2 for found in traces), "another replica observes the answer"


def replicas(found: dict[str, list[Exported]]) -> set[str]:
    spans = (*found["semmem.request"], *found["semmem.observe"])
    return {span.resource["service.instance.id"] for span in spans}


def envoy_traces(config: Json, url: str) -> None:
    """Envoy sends spans of its own to this collector."""
    where, resources = urlsplit(url), config["static_resources"]
    address = {"socket_address": {"address": where.hostname, "port_value": where.port}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    assignment = {"cluster_name": "collector", "endpoints": endpoints}
    resources["clusters"].append({"name": "collector", "type": "STATIC", "load_assignment": assignment})
    provider = {
        "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
        "http_service": {"http_uri": {"uri": url, "cluster": "collector", "timeout": "1s"}},
        "service_name": "envoy",
    }
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["tracing"] = {"provider": {"name": "envoy.tracers.opentelemetry", "typed_config": provider}}
