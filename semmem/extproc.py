"""Envoy's door: ext_proc over gRPC. Protobuf in, plain calls to the exchange, protobuf out. Nothing else.

One servicer, two roles, told apart by ``observability_mode`` in a stream's first message:

- *mutate* answers the request's headers and its buffered body, then returns. A stream that the server closes cleanly
  lets Envoy go on by itself, so the stream lives for a millisecond and not for the whole answer.
- *observe* only listens to the response; Envoy ignores whatever would be said.

Whatever goes wrong in here, the client's request goes on as it came: a stream is then closed cleanly, which Envoy
reads as "continue", whatever its failure mode.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import grpc
from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.exchange import Aside, Exchange, RequestResult, by_length
from semmem.identity import RequestHead, read_headers
from semmem.metrics import Metrics
from semmem.observation import Observation, Ticket

log = logging.getLogger(__name__)

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
NAMESPACE = "semmem"
"""The dynamic metadata namespace that joins the two filters of one request."""

CONTINUE = {
    "request_headers": pb.ProcessingResponse(request_headers=pb.HeadersResponse()),
    "response_headers": pb.ProcessingResponse(response_headers=pb.HeadersResponse()),
    "request_body": pb.ProcessingResponse(request_body=pb.BodyResponse()),
    "response_body": pb.ProcessingResponse(response_body=pb.BodyResponse()),
    "request_trailers": pb.ProcessingResponse(request_trailers=pb.TrailersResponse()),
    "response_trailers": pb.ProcessingResponse(response_trailers=pb.TrailersResponse()),
}

RESPONSE_WANTED = pb.ProcessingResponse(
    response_headers=pb.HeadersResponse(),
    # Both body modes, always: an override has no "unchanged" for them. Never BUFFERED: an answer beyond Envoy's buffer
    # would become an error, and a stream would arrive in one piece.
    mode_override=pb.ProcessingMode(
        request_body_mode=pb.ProcessingMode.BUFFERED, response_body_mode=pb.ProcessingMode.STREAMED
    ),
)


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Streams at once per role (more are closed at once: the request passes without memory), message size in bytes.

    Messages above ``inline_bytes_max`` are decoded and encoded beside the event loop.
    """

    mutate_streams_max: int = 256
    observe_streams_max: int = 1024
    message_bytes_max: int = 64 * 1024 * 1024
    inline_bytes_max: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Patience:
    """How long Envoy waits for one answer (``message_timeout``), and how long it may be asked to (0: it may not).

    ``phase_s``: what a request takes at most without any extra; with what it takes on top still below
    ``message_timeout_s`` nothing is asked.
    """

    phase_s: float = 0.35
    message_timeout_s: float = 0.5
    max_message_timeout_s: float = 0.0


class ExternalProcessor:
    """The ext_proc service.

    ``single_filter``: one filter does both, for gateways that cannot have two. Each chunk of an answer then waits for
    semmem, and a stream lives as long as its answer.
    """

    def __init__(
        self,
        exchange: Exchange,
        metrics: Metrics,
        limits: DoorLimits,
        *,
        single_filter: bool = False,
        patience: Patience | None = None,
        aside: Aside = asyncio.to_thread,
        aside_long: Aside | None = None,
    ) -> None:
        self._exchange = exchange
        self._aside, self._aside_long = aside, aside_long
        self._inline_bytes_max = limits.inline_bytes_max
        self._patience = patience or Patience()
        self._single_filter = single_filter
        self._metrics = metrics
        self._limits = {"mutate": limits.mutate_streams_max, "observe": limits.observe_streams_max}
        self._streams = {"mutate": 0, "observe": 0}

    async def serve(self, requests: Any, stream: Any) -> None:
        """One gRPC stream of messages as bytes."""
        await self.process(requests, _Messages(stream, self._aside_for, self._inline_bytes_max))

    async def process(self, _requests: Any, stream: Any) -> None:
        """One gRPC stream. Never raises but for cancellation: a clean close means continue."""
        first = await stream.read()
        if first is grpc.aio.EOF:
            return
        role = "observe" if first.observability_mode else "mutate"
        if self._streams[role] >= self._limits[role]:
            self._metrics.streams_shed.labels(role).inc()
            return
        self._streams[role] += 1
        self._metrics.streams.labels(role).inc()
        try:
            await (self._observe(first, stream) if role == "observe" else self._mutate(first, stream))
        except grpc.aio.InternalError:  # reset while we wrote: the client left, or Envoy waited no longer
            log.debug("%s stream was reset", role)
        except Exception as error:  # the one last resort: the client's request must go on
            self._metrics.door_errors.labels(role).inc()
            log.error("%s stream failed: %s in %s", role, type(error).__name__, _where(error))
        finally:
            self._streams[role] -= 1
            self._metrics.streams.labels(role).dec()

    # --- request -----------------------------------------------------------------------------------------------------

    async def _mutate(self, first: pb.ProcessingRequest, stream: Any) -> None:
        if first.WhichOneof("request") != "request_headers":
            await _continue(first, stream)
            return
        started = time.perf_counter()
        head = request_head(first)
        refusal = self._exchange.refuses(head, body_follows=not first.request_headers.end_of_stream)
        if refusal is not None:
            self._count(refusal, started)
            await stream.write(headers_reply(head, self._exchange, refusal))
            return
        await stream.write(headers_reply(head, self._exchange, None))
        message = await stream.read()
        if message is grpc.aio.EOF:
            return
        if message.WhichOneof("request") != "request_body" or not message.request_body.end_of_stream:
            await _continue(message, stream)
            return
        started = time.perf_counter()
        head = with_metadata(head, message)
        more_time = partial(_ask_for_time, stream, self._patience)
        result = await self._exchange.request(head, message.request_body.body, more_time=more_time)
        del message  # its copy of the body
        self._count(result, started)  # before the last word: Envoy may end the stream with it
        await stream.write(await self._body_reply(result))
        if self._single_filter and result.ticket is not None:
            await self._follow(result.ticket, stream)

    async def _body_reply(self, result: RequestResult) -> pb.ProcessingResponse:
        if len(result.body or b"") <= self._inline_bytes_max:
            return body_reply(result)
        return await self._aside_for(len(result.body or b""))(partial(body_reply, result))

    def _aside_for(self, body_bytes: int) -> Aside:
        return by_length(body_bytes, self._aside, self._aside_long)

    def _count(self, result: RequestResult, started: float) -> None:
        log.debug("request: %s", result.outcome)
        self._metrics.outcomes.labels(result.outcome).inc()
        self._metrics.request_seconds.labels(result.outcome).observe(time.perf_counter() - started)
        if result.injected:
            self._metrics.injected_memories.inc(result.injected)
            self._metrics.injected_tokens.inc(result.tokens)

    # --- response ----------------------------------------------------------------------------------------------------

    async def _observe(self, first: pb.ProcessingRequest, stream: Any) -> None:
        """Listen to an answer; nothing that is said here reaches Envoy."""
        ticket = read_ticket(first)
        if ticket is None or first.WhichOneof("request") != "response_headers":
            return
        observation = self._begin(ticket, first)
        if observation.wants_body and not first.response_headers.end_of_stream:
            while not _is_last(message := await stream.read()):
                observation.feed(message.response_body.body)
            _feed_last(observation, message)
        self._metrics.turns.labels(observation.end()).inc()

    async def _follow(self, ticket: Ticket, stream: Any) -> None:
        """The response phase of the only filter: every message is answered at once, and read after that."""
        first = await stream.read()
        if first is grpc.aio.EOF:
            return
        if first.WhichOneof("request") != "response_headers":
            await _continue(first, stream)
            return
        observation = self._begin(ticket, first)
        wanted = observation.wants_body and not first.response_headers.end_of_stream
        await stream.write(RESPONSE_WANTED if wanted else CONTINUE["response_headers"])
        if wanted:
            while not _is_last(message := await stream.read()):
                await _continue(message, stream)
                observation.feed(message.response_body.body)
            if message is not grpc.aio.EOF:
                await _continue(message, stream)
            _feed_last(observation, message)
        self._metrics.turns.labels(observation.end()).inc()

    def _begin(self, ticket: Ticket, message: pb.ProcessingRequest) -> Observation:
        headers = header_values(message.response_headers.headers)
        return self._exchange.response(
            ticket,
            status=_status(headers.get(":status", ("",))[0]),
            content_type=headers.get("content-type", ("",))[0],
            content_encoding=headers.get("content-encoding", ("",))[0],
        )


class _Messages:
    """A stream of gRPC as one of messages. A copy of sixteen megabytes takes longer than anybody else should wait."""

    def __init__(self, stream: Any, aside: Callable[[int], Aside], inline_bytes_max: int) -> None:
        self._stream = stream
        self._aside = aside
        self._inline_bytes_max = inline_bytes_max

    async def read(self) -> Any:
        """The next message, or EOF; EOF also for bytes that are no message."""
        data = await self._stream.read()
        if data is grpc.aio.EOF:
            return data
        try:
            if len(data) <= self._inline_bytes_max:
                return pb.ProcessingRequest.FromString(data)
            return await self._aside(len(data))(partial(pb.ProcessingRequest.FromString, data))
        except DecodeError:
            log.warning("a message that is none of ext_proc")
            return grpc.aio.EOF

    async def write(self, reply: pb.ProcessingResponse) -> None:
        size = reply.ByteSize() if reply.HasField("request_body") else 0
        large = size > self._inline_bytes_max
        data = await self._aside(size)(reply.SerializeToString) if large else reply.SerializeToString()
        await self._stream.write(data)


def _status(text: str) -> int:
    """An HTTP status; 0 for what is none."""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() else 0


def _is_last(message: Any) -> bool:
    """The end of a body: the last chunk, the trailers, or the stream's end."""
    return message is grpc.aio.EOF or not message.HasField("response_body") or message.response_body.end_of_stream


def _feed_last(observation: Observation, message: Any) -> None:
    if message is not grpc.aio.EOF and message.HasField("response_body"):
        observation.feed(message.response_body.body)


async def _ask_for_time(stream: Any, patience: Patience, extra_s: float) -> None:
    """Have Envoy wait longer for the answer to this message. It allows that once per message, up to its own
    max_message_timeout, and ignores it where that is not set."""
    wanted_s = patience.message_timeout_s + extra_s
    if patience.phase_s + extra_s < patience.message_timeout_s or wanted_s > patience.max_message_timeout_s:
        return
    reply = pb.ProcessingResponse()
    reply.override_message_timeout.FromMilliseconds(round(1000 * wanted_s))
    await stream.write(reply)


async def _continue(message: pb.ProcessingRequest, stream: Any) -> None:
    """The answer of the message's own kind; none to a kind that is not known here."""
    kind = message.WhichOneof("request")
    if kind is not None:
        await stream.write(CONTINUE[kind])


# --- protobuf in -----------------------------------------------------------------------------------------------------


def header_values(headers: pb.HeaderMap) -> dict[str, tuple[str, ...]]:
    """Header values by lower-case name, as every door reads them."""
    return read_headers((header.key, header.raw_value or header.value.encode()) for header in headers.headers)


def request_head(message: pb.ProcessingRequest) -> RequestHead:
    """The plain form of a request_headers message."""
    headers = header_values(message.request_headers.headers)
    return RequestHead(
        method=headers.get(":method", ("",))[0],
        path=headers.get(":path", ("",))[0],
        headers=headers,
        metadata=_metadata_of(message),
    )


def with_metadata(head: RequestHead, message: pb.ProcessingRequest) -> RequestHead:
    """The head with the metadata of a later message: a filter that judges bodies speaks after the headers passed."""
    later = _metadata_of(message)
    return replace(head, metadata={**head.metadata, **later}) if later else head


def _metadata_of(message: pb.ProcessingRequest) -> dict[str, dict[str, Any]]:
    return {name: plain(struct) for name, struct in message.metadata_context.filter_metadata.items()}


def plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    """A protobuf Struct as plain values; lists are left out, nothing of ours is one."""
    values: dict[str, Any] = {}
    for name, value in struct.fields.items():
        kind = value.WhichOneof("kind")
        if kind == "struct_value":
            values[name] = plain(value.struct_value)
        elif kind in ("string_value", "number_value", "bool_value"):
            values[name] = getattr(value, kind)
    return values


def read_ticket(message: pb.ProcessingRequest) -> Ticket | None:
    """What mutate wrote for observe, or None when there is nothing to observe."""
    if NAMESPACE not in message.metadata_context.filter_metadata:
        return None
    fields = plain(message.metadata_context.filter_metadata[NAMESPACE])
    if not fields.get("store") or not fields.get("turn"):
        return None
    earlier = tuple(str(fields.get("earlier", "")).split())
    return Ticket(turn_id=str(fields["turn"]), dialect=str(fields.get("dialect", "")), earlier=earlier)


# --- protobuf out ----------------------------------------------------------------------------------------------------


def headers_reply(head: RequestHead, exchange: Exchange, refusal: RequestResult | None) -> pb.ProcessingResponse:
    """Remove semmem's own headers; when the body is not wanted, say so and why."""
    reply = pb.ProcessingResponse(request_headers=pb.HeadersResponse())
    if own := exchange.own_headers(head):
        reply.request_headers.response.header_mutation.remove_headers.extend(own)
    if refusal is not None:
        # both body modes, always: an override has no "unchanged" for them
        reply.mode_override.request_body_mode = pb.ProcessingMode.NONE
        reply.mode_override.response_body_mode = pb.ProcessingMode.NONE
        reply.dynamic_metadata.CopyFrom(metadata(refusal))
    return reply


def body_reply(result: RequestResult) -> pb.ProcessingResponse:
    """The new body with its length (Envoy answers 500 to a stale one), and the metadata for the rest of the chain."""
    reply = pb.ProcessingResponse(request_body=pb.BodyResponse(), dynamic_metadata=metadata(result))
    if result.body is not None:
        common = reply.request_body.response
        common.body_mutation.body = result.body
        length = common.header_mutation.set_headers.add()
        length.header.key = "content-length"
        length.header.raw_value = str(len(result.body)).encode()
    return reply


def metadata(result: RequestResult) -> struct_pb2.Struct:
    """Few and small, because Envoy repeats them with every observed message."""
    fields: dict[str, str | bool | float] = {"outcome": str(result.outcome), "store": result.ticket is not None}
    if result.ticket is not None:
        fields |= {"turn": result.ticket.turn_id, "dialect": result.ticket.dialect}
        if result.ticket.earlier:
            fields["earlier"] = " ".join(result.ticket.earlier)
    if result.injected:
        fields["injected"] = result.injected
    struct = struct_pb2.Struct()
    inner = struct.fields[NAMESPACE].struct_value
    for name, value in fields.items():
        if isinstance(value, bool):
            inner.fields[name].bool_value = value
        elif isinstance(value, str):
            inner.fields[name].string_value = value
        else:
            inner.fields[name].number_value = value
    return struct


def _where(error: BaseException) -> str:
    """The innermost place of an error, without its message: messages may carry content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else "?"


# --- the server ------------------------------------------------------------------------------------------------------


class ExtProcServer:
    """The gRPC listener: a TCP address or ``unix:PATH``; health by service name; drains on stop.

    Without ``credentials`` it speaks plain text: for loopback, a unix socket, or a network that is trusted.
    """

    def __init__(
        self, processor: ExternalProcessor, *, address: str, message_bytes_max: int, credentials: Any = None
    ) -> None:
        self._server = grpc.aio.server(options=server_options(message_bytes_max))
        self._server.add_generic_rpc_handlers((_handlers(processor),))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._address = address
        self._credentials = credentials

    async def start(self) -> str:
        """Bind and serve, not yet healthy; the address with the port that was chosen. Raises OSError naming it."""
        try:
            port = self._bind()
        except RuntimeError:
            raise OSError(f"cannot listen for gRPC on {self._address}: is it in use?") from None
        await self.set_serving(False)
        await self._server.start()
        return self._address if self._address.startswith("unix:") else f"{self._address.rpartition(':')[0]}:{port}"

    def _bind(self) -> int:
        if self._credentials is None:
            return int(self._server.add_insecure_port(self._address))
        return int(self._server.add_secure_port(self._address, self._credentials))

    async def set_serving(self, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, status)

    async def stop(self, grace_s: float) -> None:
        """Refuse new streams, let running ones end for ``grace_s`` seconds, then cancel them."""
        await self.set_serving(False)
        await self._server.stop(grace_s)


def server_options(message_bytes_max: int) -> list[tuple[str, int]]:
    """Measured against a real Envoy: without the ping options its keepalive is answered by GOAWAY; the default
    message limit of 4 MiB would make every longer chat pass without memory."""
    return [
        ("grpc.max_receive_message_length", message_bytes_max),
        ("grpc.max_send_message_length", message_bytes_max),
        ("grpc.http2.min_ping_interval_without_data_ms", 5000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),  # a second semmem on the same port is a mistake, and should say so
    ]


def _handlers(processor: ExternalProcessor) -> Any:
    method = grpc.stream_stream_rpc_method_handler(
        processor.serve,
        request_deserializer=None,
        response_serializer=None,  # see _Messages
    )
    return grpc.method_handlers_generic_handler(SERVICE, {"Process": method})
