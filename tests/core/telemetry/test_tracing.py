"""Spans as OpenTelemetry has them: who decides about them, what they join, and what they never tell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, format_span_id, format_trace_id
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from semmem.memory import Scope
from semmem.ports.events import RequestEnded
from semmem.ports.spans import NO_TRACER, NOT_RECORDED, NOWHERE, QUERY_TEXT, RECORDS, Place, current, step
from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.telemetry.tracing import LINKS_MAX, OtelTracer, Telling
from tests.support.counted import counting

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ADA = Scope("ada", session="tuesday")
SECRET = b"sixteen characters and more"


class Traced:
    """A tracer, and what it recorded."""

    def __init__(self, *, ratio: float = 1.0, telling: Telling = Telling(), chance: float = 0.5) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer = OtelTracer(
            SimpleSpanProcessor(self.exporter), ratio=ratio, telling=telling, chance=lambda: chance
        )

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def attributes(self, name: str) -> dict[str, object]:
        return dict(self.spans[name].attributes or {})


def caller(*, sampled: bool = True, state: str = "") -> Place:
    return Place(f"00-{TRACE}-{SPAN}-0{int(sampled)}", state)


def parent_of(span: ReadableSpan) -> str:
    return "" if span.parent is None else format_span_id(span.parent.span_id)


def place_of(span: ReadableSpan) -> SpanContext:
    place = span.get_span_context()
    assert place is not None
    return place


def id_of(span: ReadableSpan) -> str:
    return format_span_id(place_of(span).span_id)


def trace_of(span: ReadableSpan) -> str:
    return format_trace_id(place_of(span).trace_id)


@pytest.mark.parametrize(("ratio", "sampled"), [(0.0, True), (1.0, False)])
def test_the_callers_word_decides_and_not_the_ratio(ratio: float, sampled: bool) -> None:
    traced = Traced(ratio=ratio)
    with traced.tracer.begin("request", lambda: caller(sampled=sampled)):
        pass
    assert bool(traced.spans) is sampled


@pytest.mark.parametrize(("ratio", "recorded"), [(0.4, False), (0.6, True), (0.0, False), (1.0, True)])
@pytest.mark.parametrize("said", ["", "nonsense", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-01"])
def test_without_a_caller_the_ratio_decides(ratio: float, recorded: bool, said: str) -> None:
    traced = Traced(ratio=ratio)
    with traced.tracer.begin("request", lambda: Place(said)):
        pass
    assert bool(traced.spans) is recorded
    assert all(span.parent is None for span in traced.spans.values())


def test_an_answer_goes_on_from_the_request_in_the_callers_trace() -> None:
    traced, elsewhere = Traced(), Traced(ratio=0.0)
    with traced.tracer.begin("request", lambda: caller(state="shop=till7")) as request:
        place = request.place
    with elsewhere.tracer.resume("observe", place):
        pass
    request_span, observe_span = traced.spans["request"], elsewhere.spans["observe"]
    assert (trace_of(request_span), parent_of(request_span)) == (TRACE, SPAN)
    assert (trace_of(observe_span), parent_of(observe_span)) == (TRACE, id_of(request_span))
    assert place_of(observe_span).trace_state["shop"] == "till7"


async def test_steps_join_the_span_of_their_task_and_of_the_task_that_spawned_it() -> None:
    traced = Traced()

    async def embed() -> None:
        with step("embed"):
            await asyncio.sleep(0)

    with traced.tracer.begin("request", caller):
        spawned = asyncio.get_running_loop().create_task(embed())
        with step("search", calls_out=True), step("decide"):
            pass
        await spawned
    assert current() is NOT_RECORDED
    spans = traced.spans
    request, search = id_of(spans["request"]), id_of(spans["search"])
    assert {name: parent_of(span) for name, span in spans.items()} == {
        "request": SPAN,
        "embed": request,
        "search": request,
        "decide": search,
    }


def test_outside_of_a_recorded_span_nothing_is_made() -> None:
    assert step("search") is NOT_RECORDED
    assert current().place is NOWHERE
    with Traced(ratio=0.0).tracer.begin("request", lambda: NOWHERE) as span:
        assert span is step("search") is current() is NOT_RECORDED
    assert Traced().tracer.resume("observe", NOWHERE) is NOT_RECORDED
    assert NO_TRACER.begin("request", _never) is NO_TRACER.gather("learn", [caller().traceparent]) is NOT_RECORDED


def _never() -> Place:
    raise AssertionError("nobody asks where a caller stands while nothing is recorded")


def test_an_error_is_told_by_its_kind_alone() -> None:
    traced = Traced()
    with pytest.raises(ValueError, match="ada is allergic"), traced.tracer.begin("request", caller):
        raise ValueError("ada is allergic to nuts")
    span = traced.spans["request"]
    assert traced.attributes("request") == {"error.type": "ValueError"}
    assert not span.status.is_ok
    assert (span.events, span.status.description) == ((), None)


async def test_being_cancelled_is_no_failure() -> None:
    traced = Traced()

    async def waits() -> None:
        with traced.tracer.begin("request", caller):
            await asyncio.sleep(60)

    task = asyncio.get_running_loop().create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert traced.attributes("request") == {"error.type": "CancelledError"}
    assert traced.spans["request"].status.is_unset


@pytest.mark.parametrize("content", [False, True])
def test_what_users_say_is_told_only_where_that_is_asked_for(content: bool) -> None:
    traced = Traced(telling=Telling(content=content))
    asked: list[str] = []

    def text() -> str:
        asked.append("made")
        return "What may I eat?"

    with traced.tracer.begin("request", caller), step("search_memory") as span:
        span.told(QUERY_TEXT, text)
        span.told(RECORDS, lambda: [{"id": "m1", "content": "User is allergic to nüts"}])
    told = traced.attributes("search_memory")
    assert asked == ["made"] * content
    assert told.get(QUERY_TEXT) == ("What may I eat?" if content else None)
    records = told.get(RECORDS)
    assert json.loads(str(records)) == [{"id": "m1", "content": "User is allergic to nüts"}] if content else not records


def test_users_are_told_apart_by_digests_under_a_key_and_without_one_not_at_all() -> None:
    traced, other, unkeyed = (
        Traced(telling=Telling(user_hmac_secret=secret)) for secret in (SECRET, b"another secret of some length", b"")
    )
    for each in (traced, other, unkeyed):
        with each.tracer.begin("request", caller) as span:
            span.about(ADA)
    told = traced.attributes("request")
    assert set(told) == {"enduser.pseudo.id", "gen_ai.conversation.id"}
    assert "ada" not in str(told)
    assert "tuesday" not in str(told)
    assert told["enduser.pseudo.id"] != other.attributes("request")["enduser.pseudo.id"]
    assert unkeyed.attributes("request") == {}


def test_steps_with_memory_carry_what_the_conventions_ask_for() -> None:
    traced = Traced(telling=Telling(store_id="memories"))
    with traced.tracer.begin("request", caller), step("search_memory"), step("other"):
        pass
    assert traced.attributes("search_memory") == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.provider.name": "semmem",
        "gen_ai.memory.store.id": "memories",
    }
    assert traced.attributes("other") == {}


def test_a_batch_is_a_trace_of_its_own_linked_to_its_turns() -> None:
    traced = Traced(ratio=0.0)
    others = [f"00-{number:032x}-{SPAN}-01" for number in range(1, LINKS_MAX + 10)]
    with traced.tracer.gather("learn", [caller().traceparent, "", caller().traceparent, "nonsense", *others]):
        pass
    span = traced.spans["learn"]
    linked = [format_trace_id(link.context.trace_id) for link in span.links]
    assert (span.parent, linked[0], len(linked), len(set(linked))) == (None, TRACE, LINKS_MAX, LINKS_MAX)
    assert trace_of(span) not in linked


@pytest.mark.parametrize("turns", [[], [""], ["nonsense"]])
def test_a_batch_of_turns_that_were_not_recorded_is_recorded_by_the_ratio(turns: Sequence[str]) -> None:
    for ratio in (0.0, 1.0):
        traced = Traced(ratio=ratio)
        with traced.tracer.gather("learn", turns):
            pass
        assert bool(traced.spans) is bool(ratio)


def test_what_began_before_it_was_known_of_is_recorded_from_its_beginning() -> None:
    traced = Traced()
    traced.tracer.past("commit", caller(), 1000.5)
    traced.tracer.past("not recorded", NOWHERE, 1000.5)
    traced.tracer.past("of a clock that was set back", caller(), 4e9)
    assert set(traced.spans) == {"commit", "of a clock that was set back"}
    assert (traced.spans["commit"].start_time, parent_of(traced.spans["commit"])) == (1_000_500_000_000, SPAN)
    early = traced.spans["of a clock that was set back"]
    assert (early.start_time or 0) <= (early.end_time or 0)


OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"


def test_a_request_that_is_recorded_is_an_example_of_its_time_for_whoever_reads_openmetrics() -> None:
    metrics = Metrics()
    listener, page = counting(metrics), MetricsPage(metrics)
    with Traced().tracer.begin("semmem.request", caller):
        listener(RequestEnded("injected", 0.02))
    listener(RequestEnded("injected", 0.3))  # of no trace
    plain, plain_type = page("text/plain;version=0.0.4,*/*")
    shown, shown_type = page(OPENMETRICS)
    families = text_string_to_metric_families(shown.decode())  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    examples = [(sample.exemplar.labels, sample.exemplar.value) for sample in samples if sample.exemplar]
    assert examples == [({"trace_id": TRACE}, 0.02)]
    assert plain_type == CONTENT_TYPE_LATEST
    assert b" # " not in plain
    assert shown_type.startswith("application/openmetrics-text; version=1.0.0")
