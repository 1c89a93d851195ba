"""Traces at Envoy's door: whose they join, and that the answer's is the request's."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from semmem.envoy.wire import plain
from semmem.memory import Turn
from semmem.ports.recording import TurnClosed
from semmem.telemetry.tracing import OtelTracer
from tests.core.envoy.test_service import Door, body, door, headers, response_body, response_headers
from tests.core.exchange.world import BUDGET, QUESTION, as_body

TRACE, CLIENT, ENVOY = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
ANSWER = b'{"choices": [{"message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}]}'


def place(span: str) -> str:
    return f"00-{TRACE}-{span}-01"


class Traced:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer(SimpleSpanProcessor(self._exporter), ratio=0.0)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def parent(self, name: str) -> str:
        above = self.spans[name].parent
        return "" if above is None else f"{above.span_id:016x}"

    def place(self, name: str) -> str:
        here = self.spans[name].get_span_context()
        assert here is not None
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-01"


async def asked(d: Door, **values: Any) -> dict[str, Any]:
    """The ticket of one request."""
    _, last = await d.send(headers(**values), body(as_body(QUESTION)))
    ticket: dict[str, Any] = plain(last.dynamic_metadata)["semmem"]
    return ticket


@pytest.mark.parametrize("single_filter", [False, True])
async def test_the_answer_is_observed_where_its_request_stands_and_the_turn_knows_both(single_filter: bool) -> None:
    traced = Traced()
    async with door(tracer=traced.tracer, single_filter=single_filter) as d:
        await d.world.knows(BUDGET)
        if single_filter:
            sent = headers(traceparent=place(CLIENT), tracestate="shop=till7")
            await d.send(sent, body(as_body(QUESTION)), response_headers(None), response_body(ANSWER, True))
        else:
            ticket = await asked(d, traceparent=place(CLIENT), tracestate="shop=till7")
            assert (ticket["traceparent"], ticket["tracestate"]) == (traced.place("semmem.request"), "shop=till7")
            await d.observe(response_headers(ticket), response_body(ANSWER, True))
        [opened] = [half for half in d.world.journal if isinstance(half, Turn)]
        [closed] = [half for half in d.world.journal if isinstance(half, TurnClosed)]
    assert traced.parent("semmem.request") == CLIENT
    assert traced.place("semmem.request").split("-")[2] == traced.parent("semmem.observe")
    assert (opened.trace, closed.trace) == (traced.place("semmem.request"), traced.place("semmem.observe"))
    assert all(span.context is not None and f"{span.context.trace_id:032x}" == TRACE for span in traced.spans.values())


async def test_where_envoy_traces_as_well_its_own_span_is_the_parent() -> None:
    traced = Traced()
    async with door(tracer=traced.tracer) as d:
        call = d.call((("traceparent", place(ENVOY)), ("tracestate", "shop=envoy")))
        await call.write(headers(traceparent=place(CLIENT)))
        await call.read()
        await call.write(body(as_body(QUESTION)))
        await call.read()
        await call.done_writing()
    assert traced.parent("semmem.request") == ENVOY


async def test_a_request_that_is_not_recorded_leaves_no_word_of_traces() -> None:
    traced = Traced()
    async with door(tracer=traced.tracer) as d:
        for flags in ("00", "zz"):
            ticket = await asked(d, traceparent=f"00-{TRACE}-{CLIENT}-{flags}")
            assert not {"traceparent", "tracestate"} & set(ticket)
            await d.observe(response_headers(ticket), response_body(ANSWER, True))
        assert [half.trace for half in d.world.journal] == ["", ""] * 2
    assert traced.spans == {}


async def test_the_line_of_a_request_has_its_outcome(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="semmem.envoy.service")
    async with door() as d:
        await asked(d)
    [line] = [record for record in caplog.records if record.message.startswith("request:")]
    assert (vars(line)["outcome"], vars(line)["seconds"] > 0) == ("no_hits", True)
