"""Envoy's door: ext_proc over gRPC. Protobuf in, plain calls to the exchange, protobuf out. Nothing else.

One servicer, two roles, told apart by ``observability_mode`` in a stream's first message:

- *mutate* answers the request's headers and its buffered body, then returns. A stream that the server closes cleanly
  lets Envoy go on by itself, so the stream lives for a millisecond and not for the whole answer. The last answer and
  the end of the stream are one operation of gRPC, which is why the method is registered as one that returns a message:
  on the wire that is the same, and it saves a tenth of what a stream costs.
- *observe* only listens to the response; Envoy ignores whatever would be said.

Whatever goes wrong in here, the client's request goes on as it came: a stream is then closed cleanly, which Envoy
reads as "continue", whatever its failure mode.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from msgspec.structs import replace

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.envoy import wire
from semmem.exchange import Exchange, RequestResult
from semmem.ports import events
from semmem.ports.spans import NO_TRACER, NOT_RECORDED, NOWHERE, RECORD_COUNT, Place, Span, Tracer
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.turns.observation import Observation, Ticket

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Streams at once per role; more are closed at once: the request passes without memory."""

    mutate_streams_max: int = 256
    observe_streams_max: int = 1024


@dataclass(frozen=True, slots=True)
class MessageTimeouts:
    """How long Envoy waits for one answer (``message_timeout``), and how long it may be asked to (0: it may not).
    ``phase_s``: what a request takes at most without any extra; with what it takes on top still below
    ``message_timeout_s`` nothing is asked."""

    phase_s: float = 0.35
    message_timeout_s: float = 0.5
    max_message_timeout_s: float = 0.0


NoteEnded = Callable[[str, float, int, int, str | None], None]
"""Outcome word, seconds, memories and tokens in the prompt, and the request's id."""


class ExternalProcessor:
    """The ext_proc service. ``single_filter``: one filter does both, for gateways that cannot have two. Each chunk of
    an answer then waits for semmem, and a stream lives as long as its answer. ``open_streams``: counted together with
    another one's. ``note_ended`` is told of every request; it must neither wait nor raise."""

    def __init__(
        self,
        exchange: Exchange,
        limits: DoorLimits,
        *,
        announce: events.Announce = events.nobody_listens,
        single_filter: bool = False,
        message_timeouts: MessageTimeouts | None = None,
        work: BodyWork | None = None,
        open_streams: Counter[str] | None = None,
        tracer: Tracer = NO_TRACER,
        note_ended: NoteEnded = lambda *_: None,
    ) -> None:
        self._exchange = exchange
        self._note_ended = note_ended
        self._tracer = tracer
        self._work = work or BodyWork()
        self._message_timeouts = message_timeouts or MessageTimeouts()
        self._single_filter = single_filter
        self._announce = announce
        self._limits = {"mutate": limits.mutate_streams_max, "observe": limits.observe_streams_max}
        self._streams = Counter[str]() if open_streams is None else open_streams

    async def serve(self, requests: Any, stream: Any) -> bytes:
        """One gRPC stream of messages as bytes; the last one is returned, and ends it."""
        messages = _Messages(stream, self._work)
        await self.process(requests, messages)
        return messages.last

    async def process(self, _requests: Any, stream: Any) -> None:
        """One gRPC stream. Never raises but for cancellation: a clean close means continue."""
        first = await stream.read()
        if first is grpc.aio.EOF:
            return
        role = "observe" if first.observability_mode else "mutate"
        if self._streams[role] >= self._limits[role]:
            self._announce(events.StreamShed(role))
            return
        self._streams[role] += 1
        self._announce(_OPENED[role])
        try:
            await (self._observe(first, stream) if role == "observe" else self._mutate(first, stream))
        except grpc.aio.InternalError:  # reset while we wrote: the client left, or Envoy waited no longer
            log.debug("%s stream was reset", role)
        except Exception as error:  # the one last resort: the client's request must go on
            self._announce(events.StreamFailed(role))
            log.error("%s stream failed: %s in %s", role, type(error).__name__, _where(error))
        finally:
            self._streams[role] -= 1
            self._announce(_CLOSED[role])

    async def _mutate(self, first: pb.ProcessingRequest, stream: Any) -> None:
        if not first.HasField("request_headers"):
            await _end(first, stream)
            return
        started = time.perf_counter()
        head = wire.request_head(first)
        refusal = self._exchange.refuses(head, body_follows=not first.request_headers.end_of_stream)
        if refusal is not None:
            self._count(refusal, started)
            await stream.end(wire.headers_reply(head.own_headers, refusal))
            return
        with self._tracer.begin("semmem.request", partial(_caller, head, stream)) as span:
            await stream.write(wire.headers_reply(head.own_headers, None))
            with span.step("semmem.receive"):
                message = await stream.read()
            if message is grpc.aio.EOF:
                return
            if not message.HasField("request_body") or not message.request_body.end_of_stream:
                await _end(message, stream)
                return
            started = time.perf_counter()
            head = wire.with_metadata(head, first, message)
            extend_deadline = partial(_ask_for_time, stream, self._message_timeouts)
            result = await self._exchange.request(head, message.request_body.body, extend_deadline=extend_deadline)
            del message  # its copy of the body
            self._count(result, started, span)  # before the last word: Envoy may end the stream with it
            result = _placed(result, span)
            reply = await self._work.do(len(result.body or b""), partial(wire.body_reply, result))
            if not self._single_filter or result.ticket is None:
                await stream.end(reply)
                return
            await stream.write(reply)
        await self._follow(result.ticket, stream)

    def _count(self, result: RequestResult, started: float, span: Span = NOT_RECORDED) -> None:
        seconds = time.perf_counter() - started
        if log.isEnabledFor(logging.DEBUG):
            log.debug("request: %s", result.outcome, extra={"outcome": str(result.outcome), "seconds": seconds})
        span.note("semmem.outcome", result.outcome)
        span.note(RECORD_COUNT, result.injected)
        self._announce(events.RequestEnded(result.outcome, seconds, result.injected, result.tokens, result.switched))
        self._note_ended(result.outcome, seconds, result.injected, result.tokens, result.request_id)

    async def _observe(self, first: pb.ProcessingRequest, stream: Any) -> None:
        """Listen to an answer; nothing that is said here reaches Envoy."""
        ticket = wire.read_ticket(first)
        if ticket is None or first.WhichOneof("request") != "response_headers":
            return
        with self._tracer.resume("semmem.observe", ticket.place) as span:
            observation = self._begin(ticket, first)
            if observation.wants_body and not first.response_headers.end_of_stream:
                with span.step("semmem.answer"):
                    while not _is_last(message := await stream.read()):
                        observation.feed(message.response_body.body)
                    _feed_last(observation, message)
            self._ended(observation, span)

    async def _follow(self, ticket: Ticket, stream: Any) -> None:
        """The response phase of the only filter: every message is answered at once, and read after that."""
        first = await stream.read()
        if first is grpc.aio.EOF:
            return
        if first.WhichOneof("request") != "response_headers":
            await _end(first, stream)
            return
        with self._tracer.resume("semmem.observe", ticket.place) as span:
            observation = self._begin(ticket, first)
            seen = True
            if observation.wants_body and not first.response_headers.end_of_stream:
                with span.step("semmem.answer"):
                    seen = await self._follow_body(observation, stream)
            else:
                await stream.end(wire.CONTINUE["response_headers"])
            self._ended(observation, span, seen=seen)

    async def _follow_body(self, observation: Observation, stream: Any) -> bool:
        """Whether the body's end was seen: Envoy also hangs up when an answer of ours is late, and the body goes on."""
        await stream.write(wire.RESPONSE_WANTED)
        while not _is_last(message := await stream.read()):
            if reply := wire.going_on(message):  # of the message's own kind; none to a kind that is not known here
                await stream.write(reply)
            observation.feed(message.response_body.body)
        if message is not grpc.aio.EOF:
            await _end(message, stream)
        _feed_last(observation, message)
        return message is not grpc.aio.EOF

    def _ended(self, observation: Observation, span: Span, *, seen: bool = True) -> None:
        ending = observation.end(seen=seen)
        span.note("semmem.ending", ending)
        self._announce(events.TurnEnded(ending))
        if (cache := observation.prompt_cache) is not None:
            self._announce(events.PromptReported(cache.prompt_tokens, cache.cached_tokens))

    def _begin(self, ticket: Ticket, message: pb.ProcessingRequest) -> Observation:
        headers = wire.header_values(message.response_headers.headers)
        return self._exchange.response(
            ticket,
            status=_status(headers.get(":status", ("",))[0]),
            content_type=headers.get("content-type", ("",))[0],
            content_encoding=headers.get("content-encoding", ("",))[0],
        )


class _Messages:
    """A stream of gRPC as one of messages. A copy of sixteen megabytes takes longer than anybody else should wait."""

    def __init__(self, stream: Any, work: BodyWork) -> None:
        self._stream = stream
        self._work = work
        self._asked: pb.ProcessingRequest | None = None
        self._last: bytes | None = None

    async def read(self) -> Any:
        """The next message, or EOF; EOF also for bytes that are no message."""
        data = await self._stream.read()
        self._asked = None
        if data is grpc.aio.EOF:
            return data
        try:
            if len(data) <= self._work.inline_bytes_max:
                message = pb.ProcessingRequest.FromString(data)
            else:
                message = await self._work.do(len(data), partial(pb.ProcessingRequest.FromString, data))
        except DecodeError:
            log.warning("a message that is none of ext_proc")
            return grpc.aio.EOF
        self._asked = message
        return message

    async def write(self, reply: bytes) -> None:
        self._asked = None
        await self._stream.write(reply)

    def invocation_metadata(self) -> Any:
        """Pairs of name and value that the stream was opened with."""
        return self._stream.invocation_metadata()

    async def write_ahead(self, word: bytes) -> None:
        """What is no answer yet to the message that was read last."""
        await self._stream.write(word)

    async def end(self, reply: bytes) -> None:
        """The last reply: it is written when the stream's handler returns."""
        self._last = reply

    @property
    def last(self) -> bytes:
        """The last word of the stream: what it was ended with, else "go on" to what was not answered. To an observed
        stream it is nothing, which Envoy does not read."""
        if self._last is None:
            asked = self._asked
            self._last = wire.NOTHING if asked is None or asked.observability_mode else wire.going_on(asked)
        return self._last


_OPENED = {role: events.StreamOpened(role) for role in ("mutate", "observe")}
_CLOSED = {role: events.StreamClosed(role) for role in ("mutate", "observe")}


def _caller(head: RequestHead, stream: Any) -> Place:
    """Envoy's own span, where Envoy traces as well; else where the client says that it stands."""
    given = {name: value for name, value in stream.invocation_metadata() or () if name in ("traceparent", "tracestate")}
    if "traceparent" in given:
        return Place(**given)
    return Place(head.header("traceparent") or "", ",".join(head.headers.get("tracestate", ())))


def _placed(result: RequestResult, span: Span) -> RequestResult:
    """With the place of the request in the ticket: whoever observes the answer goes on from there."""
    if result.ticket is None or (place := span.place) is NOWHERE:
        return result
    return replace(result, ticket=replace(result.ticket, place=place))


def _status(text: str) -> int:
    """An HTTP status; 0 for what is none."""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() else 0


def _is_last(message: Any) -> bool:
    """The end of a body: the last chunk, the trailers, or the stream's end."""
    return message is grpc.aio.EOF or not message.HasField("response_body") or message.response_body.end_of_stream


def _feed_last(observation: Observation, message: Any) -> None:
    if message is not grpc.aio.EOF and message.HasField("response_body"):
        observation.feed(message.response_body.body)


async def _ask_for_time(stream: Any, message_timeouts: MessageTimeouts, extra_s: float) -> None:
    """Have Envoy wait longer for the answer to this message. It allows that once per message, up to its own
    max_message_timeout, and ignores it where that is not set."""
    usual_s = message_timeouts.message_timeout_s
    if usual_s <= message_timeouts.phase_s + extra_s and usual_s + extra_s <= message_timeouts.max_message_timeout_s:
        await stream.write_ahead(wire.more_time(usual_s + extra_s))


async def _end(message: pb.ProcessingRequest, stream: Any) -> None:
    """The answer of the message's own kind, as the stream's last word."""
    await stream.end(wire.going_on(message))


def _where(error: BaseException) -> str:
    """The innermost place of an error, without its message: messages may carry content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else "?"
