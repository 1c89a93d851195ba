"""Envoy's door over a real gRPC channel: what is said, when the stream ends, and that nothing ever fails a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.envoy.server import SERVICE, ExtProcServer
from semmem.envoy.service import DoorLimits, ExternalProcessor, MessageTimeouts
from semmem.envoy.wire import body_reply, header_values, metadata, plain, read_ticket
from semmem.exchange import RequestResult
from semmem.ports.recording import TurnClosed
from semmem.ports.spans import NO_TRACER, Place, Tracer
from semmem.request.outcome import Outcome
from semmem.request.permission import Switched
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.telemetry.metrics import Metrics
from semmem.turns.observation import Ticket
from tests.core.exchange.world import BUDGET, FOLLOW_UP, QUESTION, World, as_body, thinking
from tests.support.counted import counting


class Door:
    """A served door and a client of it."""

    def __init__(self, world: World, metrics: Metrics, channel: Any) -> None:
        self.world = world
        self.metrics = metrics
        self.channel = channel

    def call(self, metadata: tuple[tuple[str, str], ...] = ()) -> Any:
        return self.channel.stream_stream(
            f"/{SERVICE}/Process",
            request_serializer=pb.ProcessingRequest.SerializeToString,
            response_deserializer=pb.ProcessingResponse.FromString,
        )(metadata=metadata)

    async def send(self, *messages: pb.ProcessingRequest) -> list[pb.ProcessingResponse]:
        """Send the messages one by one, as Envoy does: each after the answer to the one before."""
        call = self.call()
        answers: list[pb.ProcessingResponse] = []
        for message in messages:
            if not await written(call, message):
                break
            answer = await call.read()
            if answer is grpc.aio.EOF:
                break
            answers.append(answer)
        await call.done_writing()
        await ended(call)
        return answers

    async def observe(self, *messages: pb.ProcessingRequest) -> None:
        call = self.call()
        for message in messages:
            message.observability_mode = True
            if not await written(call, message):
                break
        await call.done_writing()
        await ended(call)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


async def written(call: Any, message: pb.ProcessingRequest) -> bool:
    """False when the server has closed the stream, as it may at any time: it wants no more."""
    try:
        await call.write(message)
    except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
        return False
    return True


async def ended(call: Any) -> None:
    """Read what nobody asked for, up to the stream's end, which must be a clean one."""
    while await call.read() is not grpc.aio.EOF:
        pass
    assert await call.code() == grpc.StatusCode.OK


@asynccontextmanager
async def door(
    world: World | None = None,
    *,
    single_filter: bool = False,
    message_timeouts: MessageTimeouts | None = None,
    tracer: Tracer = NO_TRACER,
    **limits: int,
) -> AsyncIterator[Door]:
    world = world or World()
    metrics = Metrics()
    processor = ExternalProcessor(
        world.exchange,
        DoorLimits(**limits),
        announce=counting(metrics),
        single_filter=single_filter,
        message_timeouts=message_timeouts,
        tracer=tracer,
    )
    server = ExtProcServer(processor, address="127.0.0.1:0", message_bytes_max=2**24)
    address = await server.start()
    await server.set_serving(True)
    async with grpc.aio.insecure_channel(address) as channel:
        yield Door(world, metrics, channel)
    await server.stop(0.1)


def headers(end: bool = False, metadata: dict[str, Any] | None = None, **values: str) -> pb.ProcessingRequest:
    sent = {":method": "POST", ":path": "/v1/chat/completions", "x-user-id": "alice"}
    sent |= {name.replace("_", "-"): value for name, value in values.items()}
    message = pb.ProcessingRequest(request_headers=pb.HttpHeaders(end_of_stream=end))
    for name, value in sent.items():
        message.request_headers.headers.headers.add(key=name, raw_value=value.encode())
    for namespace, fields in (metadata or {}).items():
        message.metadata_context.filter_metadata[namespace].update(fields)
    return message


def body(data: bytes, end: bool = True) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(request_body=pb.HttpBody(body=data, end_of_stream=end))


def response_headers(ticket: dict[str, Any] | None, status: int = 200, end: bool = False) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest(response_headers=pb.HttpHeaders(end_of_stream=end))
    for name, value in {":status": str(status), "content-type": "application/json"}.items():
        message.response_headers.headers.headers.add(key=name, raw_value=value.encode())
    if ticket is not None:
        message.metadata_context.filter_metadata["semmem"].update(ticket)
    return message


def response_body(data: bytes, end: bool) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(response_body=pb.HttpBody(body=data, end_of_stream=end))


TICKET = {"turn": "t1", "store": True, "dialect": "chat", "outcome": "no_hits"}
ANSWER = json.dumps({"choices": [{"message": {"content": "Ten."}, "finish_reason": "stop"}]}).encode()


async def test_an_injected_body_comes_with_its_length_and_its_ticket() -> None:
    async with door() as d:
        await d.world.knows(BUDGET)
        first, second = await d.send(headers(), body(as_body(QUESTION)))
        assert first.WhichOneof("response") == "request_headers"
        common = second.request_body.response
        assert BUDGET in common.body_mutation.body.decode()
        [length] = common.header_mutation.set_headers
        assert (length.header.key, length.header.value) == ("content-length", "")
        assert length.header.raw_value == str(len(common.body_mutation.body)).encode()
        [turn] = d.world.turns
        assert plain(second.dynamic_metadata)["semmem"] == {
            "outcome": "injected",
            "store": True,
            "turn": turn.id,
            "dialect": "chat",
            "injected": 1.0,
        }
        assert d.metric("semmem_requests_total", outcome="injected") == 1


async def test_a_verdict_is_heard_whether_it_comes_with_the_headers_or_with_the_body() -> None:
    rules = VerdictRules(blocked=VerdictSource(metadata=("guard", "blocked")), pii=VerdictSource("x-pii"))
    async with door(World(upstream=rules)) as d:
        await d.world.knows(BUDGET)
        verdict, said = {"guard": {"blocked": True}}, as_body(QUESTION)
        late = body(said)
        late.metadata_context.filter_metadata["guard"].update({"blocked": 1})
        for sent in ([headers(metadata=verdict), body(said)], [headers(), late], [headers(x_pii="yes"), body(said)]):
            _, answer = await d.send(*sent)
            assert not answer.request_body.response.HasField("body_mutation")
            assert plain(answer.dynamic_metadata)["semmem"]["store"] is False
        assert d.metric("semmem_requests_total", outcome="blocked") == 2
        assert d.metric("semmem_requests_total", outcome="pii") == 1
        assert list(d.world.journal) == []


async def test_what_came_with_the_headers_still_counts_when_the_body_brings_more() -> None:
    rules = VerdictRules(blocked=VerdictSource(metadata=("guard", "blocked")))
    async with door(World(upstream=rules)) as d:
        late = body(as_body(QUESTION))
        late.metadata_context.filter_metadata["other"].update({"a": 1})
        await d.send(headers(metadata={"guard": {"blocked": True}}), late)
        assert d.metric("semmem_requests_total", outcome="blocked") == 1


async def test_a_body_that_does_not_change_is_not_sent_back() -> None:
    async with door() as d:
        _, answer = await d.send(headers(), body(as_body(QUESTION)))
        assert not answer.request_body.response.HasField("body_mutation")
        assert not answer.request_body.response.header_mutation.set_headers


async def test_the_stream_ends_with_the_body_and_does_not_wait_for_the_answer() -> None:
    async with door() as d:
        call = d.call()
        await call.write(headers())
        await call.read()
        await call.write(body(as_body(QUESTION)))
        await call.read()
        assert await asyncio.wait_for(call.read(), 1.0) is grpc.aio.EOF
        assert d.metric("semmem_extproc_streams", role="mutate") == 0


async def test_semmems_own_headers_are_removed() -> None:
    async with door() as d:
        first, *_ = await d.send(headers(x_semmem_memory="read", x_semmem_other="1"), body(as_body(QUESTION)))
        removed = first.request_headers.response.header_mutation.remove_headers
        assert sorted(removed) == ["x-semmem-memory", "x-semmem-other"]


async def test_a_request_that_is_not_wanted_sets_both_body_modes_and_ends() -> None:
    async with door(World(request_body_bytes_max=1000)) as d:
        [answer] = await d.send(headers(content_length="5000"))
        assert answer.HasField("mode_override")
        assert answer.mode_override.request_body_mode == pb.ProcessingMode.NONE
        assert answer.mode_override.response_body_mode == pb.ProcessingMode.NONE
        assert plain(answer.dynamic_metadata)["semmem"]["outcome"] == "oversize"
        assert d.metric("semmem_requests_total", outcome="oversize") == 1


def test_what_a_switch_took_away_is_in_the_metadata_whatever_else_is_said() -> None:
    for switched in Switched:
        message = pb.ProcessingResponse.FromString(body_reply(RequestResult(Outcome.NO_HITS, switched=switched)))
        assert plain(message.dynamic_metadata)["semmem"].get("switched_off", "") == switched


def test_of_a_list_in_metadata_the_texts_are_read() -> None:
    struct = struct_pb2.Struct()
    struct.update({"groups": ["staff", 7, "guests", None], "none": []})
    assert plain(struct) == {"groups": ["staff", "guests"], "none": []}


async def test_identity_from_dynamic_metadata_beats_the_header() -> None:
    world = World()
    await world.knows(BUDGET, user="bob")
    async with door(world) as d:
        claims = {"envoy.filters.http.jwt_authn": {"jwt_payload": {"sub": "bob"}}}
        _, answer = await d.send(headers(metadata=claims), body(as_body(QUESTION)))
        assert BUDGET.encode() in answer.request_body.response.body_mutation.body


async def test_headers_without_a_body_are_answered_and_nothing_is_waited_for() -> None:
    async with door() as d:
        [answer] = await d.send(headers(end=True))
        assert answer.WhichOneof("response") == "request_headers"


@pytest.mark.parametrize(
    "message",
    [
        body(b"{}"),
        pb.ProcessingRequest(request_trailers=pb.HttpTrailers()),
        response_headers(None),
        response_body(b"x", True),
        pb.ProcessingRequest(response_trailers=pb.HttpTrailers()),
    ],
)
async def test_every_message_gets_an_answer_of_its_own_kind(message: pb.ProcessingRequest) -> None:
    async with door() as d:
        [answer] = await d.send(message)
        assert answer.WhichOneof("response") == message.WhichOneof("request")


async def test_a_body_that_is_not_whole_is_left_alone() -> None:
    async with door() as d:
        _, answer = await d.send(headers(), body(as_body(QUESTION), end=False))
        assert answer == pb.ProcessingResponse(request_body=pb.BodyResponse())


async def test_a_stream_that_says_nothing_is_told_nothing_and_closed_cleanly() -> None:
    async with door() as d:
        assert await d.send() == []
        assert await d.send(pb.ProcessingRequest()) == [pb.ProcessingResponse()]
        assert d.metric("semmem_extproc_errors_total", role="mutate") == 0


async def test_after_an_exception_of_ours_the_request_goes_on_and_it_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with door() as d:

        async def broken(*_: Any, **__: Any) -> RequestResult:
            raise RuntimeError("what the user said")

        d.world.exchange.request = broken  # type: ignore[method-assign]
        _, answer = await d.send(headers(), body(as_body(QUESTION)))
        assert answer == pb.ProcessingResponse(request_body=pb.BodyResponse())
        assert d.metric("semmem_extproc_errors_total", role="mutate") == 1
        assert d.metric("semmem_extproc_streams", role="mutate") == 0
    assert "RuntimeError" in caplog.text
    assert "the user said" not in caplog.text


class ResetStream:
    """A stream as the server sees it when Envoy resets it between a message and the answer to it."""

    def __init__(self, *messages: pb.ProcessingRequest) -> None:
        self._messages = list(messages)

    async def read(self) -> pb.ProcessingRequest:
        return self._messages.pop(0)

    async def write(self, _reply: bytes) -> None:
        raise grpc.aio.InternalError('Failed "execute_batch"')


async def test_a_stream_that_is_reset_while_it_is_answered_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    await ExternalProcessor(World().exchange, DoorLimits(), announce=counting(metrics)).process(
        None, ResetStream(headers())
    )
    assert not metrics.registry.get_sample_value("semmem_extproc_errors_total", {"role": "mutate"})
    assert metrics.registry.get_sample_value("semmem_extproc_streams", {"role": "mutate"}) == 0
    assert "failed" not in caplog.text


async def test_a_stream_beyond_the_limit_goes_on_without_memory() -> None:
    async with door(mutate_streams_max=1) as d:
        waiting = d.call()
        await waiting.write(headers())
        await waiting.read()
        assert await d.send(headers()) == [pb.ProcessingResponse(request_headers=pb.HeadersResponse())]
        assert d.metric("semmem_extproc_streams_shed_total", role="mutate") == 1
        waiting.cancel()


async def test_streams_beyond_the_limit_are_closed_cleanly_and_observing_never_starves_mutating() -> None:
    async with door(mutate_streams_max=1, observe_streams_max=1) as d:
        waiting = d.call()
        observing = response_headers(TICKET)
        observing.observability_mode = True
        await waiting.write(observing)
        while d.metric("semmem_extproc_streams", role="observe") < 1:
            await asyncio.sleep(0.01)
        await d.observe(response_headers(TICKET))
        assert d.metric("semmem_extproc_streams_shed_total", role="observe") == 1
        assert len(await d.send(headers(), body(as_body(QUESTION)))) == 2
        waiting.cancel()


def closed(d: Door) -> list[TurnClosed]:
    return [half for half in d.world.journal if isinstance(half, TurnClosed)]


async def test_an_observed_answer_closes_its_turn() -> None:
    async with door() as d:
        await d.observe(response_headers(TICKET), response_body(ANSWER[:9], False), response_body(ANSWER[9:], True))
        assert [(half.turn_id, half.answer) for half in closed(d)] == [("t1", "Ten.")]
        assert d.metric("llm_memory_turns_total", status="answered") == 1


async def test_prompt_tokens_and_those_cached_are_counted_where_a_provider_reports_both() -> None:
    answers: list[dict[str, Any]] = [
        {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 800}},
        {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 0}},
        {"prompt_tokens": 7000, "prompt_tokens_details": None},
        {"prompt_tokens": 7000, "prompt_tokens_details": {"cached_tokens": 7001}},
        {"prompt_tokens": 7000},
    ]
    async with door() as d:
        for usage in answers:
            answer = json.loads(ANSWER) | {"usage": usage}
            await d.observe(response_headers(TICKET), response_body(json.dumps(answer).encode(), True))
        await d.observe(response_headers(TICKET, status=503))
        assert d.metric("llm_memory_turns_total", status="answered") == len(answers)
        assert d.metric("semmem_prompt_tokens_total") == 1050
        assert d.metric("semmem_cached_prompt_tokens_total") == 800


@pytest.mark.parametrize(
    "last", [pb.ProcessingRequest(response_trailers=pb.HttpTrailers()), response_body(b"", True), None]
)
async def test_trailers_and_the_streams_end_are_ends_too(last: pb.ProcessingRequest | None) -> None:
    async with door() as d:
        await d.observe(response_headers(TICKET), response_body(ANSWER, False), *([last] if last else []))
        assert [half.answer for half in closed(d)] == ["Ten."]


async def test_an_answer_that_breaks_off_is_lost() -> None:
    async with door() as d:
        await d.observe(response_headers(TICKET), response_body(ANSWER[:9], False))
        assert [(half.status, half.answer) for half in closed(d)] == [("answer_lost", None)]


@pytest.mark.parametrize("ticket", [None, {}, {"turn": "t1", "store": False}, {"store": True}, {"turn": 7.0}])
async def test_without_a_ticket_the_stream_is_closed_at_its_first_message(ticket: dict[str, Any] | None) -> None:
    async with door() as d:
        await asyncio.wait_for(d.observe(response_headers(ticket)), 2.0)
        assert closed(d) == []


async def test_an_error_answer_is_closed_without_reading_it() -> None:
    async with door() as d:
        await asyncio.wait_for(d.observe(response_headers(TICKET, status=429)), 2.0)
        assert [half.status for half in closed(d)] == ["refused"]


# --- one filter for both ---------------------------------------------------------------------------------------------


async def test_a_single_filter_answers_every_message_and_reads_the_answer() -> None:
    async with door(single_filter=True) as d:
        request = [headers(), body(as_body(QUESTION))]
        answer = [response_headers(None), response_body(ANSWER[:9], False), response_body(ANSWER[9:], True)]
        replies = await d.send(*request, *answer)
        assert [reply.WhichOneof("response") for reply in replies] == [
            "request_headers",
            "request_body",
            "response_headers",
            "response_body",
            "response_body",
        ]
        assert replies[2].mode_override.request_body_mode == pb.ProcessingMode.BUFFERED
        assert replies[2].mode_override.response_body_mode == pb.ProcessingMode.STREAMED
        assert all(not reply.response_body.HasField("response") for reply in replies[3:])
        assert [half.answer for half in closed(d)] == ["Ten."]
        assert [half.turn_id for half in closed(d)] == [turn.id for turn in d.world.turns]


async def test_a_single_filter_wants_no_body_it_will_not_read() -> None:
    async with door(single_filter=True) as d:
        *_, reply = await d.send(headers(), body(as_body(QUESTION)), response_headers(None, status=429))
        assert reply == pb.ProcessingResponse(response_headers=pb.HeadersResponse())
        assert [half.status for half in closed(d)] == ["refused"]


async def test_a_single_filter_ends_with_the_request_when_nothing_is_stored() -> None:
    async with door(single_filter=True) as d:
        call = d.call()
        for message in (headers(x_semmem_memory="read"), body(as_body(QUESTION))):
            await call.write(message)
            await call.read()
        assert await asyncio.wait_for(call.read(), 1.0) is grpc.aio.EOF


async def test_a_single_filters_answer_that_breaks_off_is_lost() -> None:
    async with door(single_filter=True) as d:
        await d.send(headers(), body(as_body(QUESTION)), response_headers(None), response_body(ANSWER[:9], False))
        assert [half.status for half in closed(d)] == ["answer_lost"]


@pytest.mark.parametrize(
    ("single_filter", "ended", "known"), [(True, False, False), (True, True, True), (False, False, True)]
)
async def test_a_stream_that_broke_off_is_known_to_have_failed_unless_envoy_only_waited_no_longer(
    single_filter: bool, ended: bool, known: bool
) -> None:
    async with door(single_filter=single_filter) as d:
        heard: list[bool] = []
        exchange: Any = d.world.exchange
        exchange._close_turn = lambda *_, failed: heard.append(failed)
        opening = response_headers(None if single_filter else TICKET)
        for each in opening.response_headers.headers.headers:
            if each.key == "content-type":
                each.raw_value = b"text/event-stream"
        answer = [opening, response_body(b"data: {}\n\n", ended)]
        if single_filter:
            await d.send(headers(), body(as_body(QUESTION)), *answer)
        else:
            await d.observe(*answer)
        assert heard == [known]


async def test_a_status_that_is_none_is_an_answer_lost_and_no_failure() -> None:
    async with door() as d:
        strange = response_headers(TICKET)
        strange.response_headers.headers.headers[0].raw_value = "²00".encode()
        await d.observe(strange)
        assert [half.status for half in closed(d)] == ["answer_lost"]
        assert d.metric("semmem_extproc_errors_total", role="observe") == 0


async def test_health_follows_serving_for_both_names() -> None:
    async with door() as d:
        stub = health_pb2_grpc.HealthStub(d.channel)
        for name in ("", SERVICE):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_an_address_in_use_is_an_error_that_names_it() -> None:
    processor = ExternalProcessor(World().exchange, DoorLimits())
    one = ExtProcServer(processor, address="127.0.0.1:0", message_bytes_max=1024)
    taken = await one.start()
    other = ExtProcServer(processor, address=taken, message_bytes_max=1024)
    with pytest.raises(OSError, match=taken):
        await other.start()
    await one.stop(0)


def test_header_bytes_of_any_kind_are_read() -> None:
    sent = pb.HeaderMap()
    sent.headers.add(key="X-A", raw_value="ü".encode())
    sent.headers.add(key="x-a", raw_value=b"\xff")
    sent.headers.add(key="x-b", value="old form")
    assert header_values(sent) == {"x-a": ("ü", "ÿ"), "x-b": ("old form",)}


# --- more time -------------------------------------------------------------------------------------------------------


async def answers(d: Door, question: bytes) -> list[pb.ProcessingResponse]:
    """Everything that is said after the body, up to the stream's end."""
    call = d.call()
    assert await written(call, headers())
    await call.read()
    assert await written(call, body(question))
    said: list[pb.ProcessingResponse] = []
    while (answer := await call.read()) is not grpc.aio.EOF:
        said.append(answer)
    return said


async def test_before_a_model_is_asked_envoy_is_asked_to_wait_longer() -> None:
    message_timeouts = MessageTimeouts(phase_s=0.1, message_timeout_s=0.5, max_message_timeout_s=10.0)
    async with door(thinking(0.05), message_timeouts=message_timeouts) as d:
        await d.world.knows(BUDGET)
        first, second = await answers(d, as_body(FOLLOW_UP))
        assert first.WhichOneof("response") is None
        assert first.override_message_timeout.ToMilliseconds() == 5500
        assert BUDGET in second.request_body.response.body_mutation.body.decode()
        [only] = await answers(d, as_body(QUESTION))
        assert not only.HasField("override_message_timeout")


async def test_a_failure_after_envoy_was_asked_for_time_still_lets_the_request_go_on() -> None:
    message_timeouts = MessageTimeouts(phase_s=0.1, message_timeout_s=0.5, max_message_timeout_s=10.0)
    async with door(message_timeouts=message_timeouts) as d:

        async def broken_later(*_: Any, **given: Any) -> RequestResult:
            await given["extend_deadline"](5.0)
            raise RuntimeError

        d.world.exchange.request = broken_later  # type: ignore[method-assign]
        first, last = await answers(d, as_body(FOLLOW_UP))
        assert first.override_message_timeout.ToMilliseconds() == 5500
        assert last == pb.ProcessingResponse(request_body=pb.BodyResponse())
        assert d.metric("semmem_extproc_errors_total", role="mutate") == 1


@pytest.mark.parametrize(
    "message_timeouts",
    [
        MessageTimeouts(phase_s=0.1, message_timeout_s=6.0, max_message_timeout_s=20.0),
        MessageTimeouts(phase_s=0.1, message_timeout_s=0.5),
        MessageTimeouts(phase_s=0.1, message_timeout_s=0.5, max_message_timeout_s=5.4),
    ],
    ids=["it is patient enough", "it cannot be asked", "it would not wait that long"],
)
async def test_envoy_is_not_asked_for_what_it_need_not_or_will_not_give(message_timeouts: MessageTimeouts) -> None:
    async with door(thinking(0.05), message_timeouts=message_timeouts) as d:
        await d.world.knows(BUDGET)
        [only] = await answers(d, as_body(FOLLOW_UP))
        assert not only.HasField("override_message_timeout")
        assert BUDGET in only.request_body.response.body_mutation.body.decode()


def test_a_ticket_names_every_turn_of_its_request_and_its_place_in_a_trace() -> None:
    ticket = Ticket("t_3", "chat", ("t_1", "t_2"), Place("00-1-2-01", "shop=till7"))
    message = pb.ProcessingRequest()
    message.metadata_context.filter_metadata["semmem"].CopyFrom(
        metadata(RequestResult(Outcome.NO_HITS, ticket=ticket)).fields["semmem"].struct_value
    )
    assert read_ticket(message) == ticket
