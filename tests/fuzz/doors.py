"""The whole door: any headers, any body, any protobuf. The request goes on, and nothing reaches the last resort."""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.dialects import Paths
from semmem.envoy.service import DoorLimits, ExternalProcessor
from semmem.ports.events import Event, StreamFailed
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.turns.observation import Ticket
from tests.core.exchange.world import BUDGET, World
from tests.fuzz import answers, encodings, requests
from tests.fuzz.choices import Choices, cut

CAPTURES = ("observe", "single_filter", "history", "off")
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/responses?a=b", "/v1/embeddings", "")
DIALECTS = ("chat", "messages", "responses", "none")
STATUSES = ("200", "201", "204", "400", "500", "0", "", "-1")
TYPES = (*answers.CONTENT_TYPES, "text/event-stream; charset=utf-8", "text/html")
ENCODINGS = ("", *encodings.NAMES, "gzip, br")
HEADERS = (
    "x-user-id",
    "content-length",
    "content-encoding",
    "authorization",
    "x-session-id",
    "x-project-id",
    "x-agent-id",
    "x-semmem-memory",
    "x-semmem-debug",
    "x-disable-router-memory",
    "x-enable-memory",
    "x-request-id",
    ":status",
    "X-User-Id",
    "",
)
VALUES = ("alice", "on", "read", "write", "off", "true", "Bearer k", "5", "99999999999", "identity", "gzip", "a" * 300)


# --- calls of the exchange -------------------------------------------------------------------------------------------


def exchange(data: bytes) -> None:
    """The target: the request phase and the response phase, without protobuf."""
    choices = Choices(data)
    world = _world(choices.one_of(CAPTURES))
    head = _head(choices)
    dialect = Paths().dialect(head.path)
    answer, other = choices.take(choices.below(64)), choices.one_of(DIALECTS)
    body = requests.body_of(choices, dialect.name if dialect else "chat")
    ticket = _ask(world, head, body) or Ticket("t_0", other)
    _answered(world, ticket, Choices(answer))
    world.journal.clear()


def _head(choices: Choices) -> RequestHead:
    headers: dict[str, tuple[str, ...]] = {"x-user-id": ("alice",)}
    path, method = choices.one_of(PATHS), choices.one_of(("POST", "GET"))
    for _ in range(choices.below(4)):
        name, value = _header(choices)
        headers[name.lower()] = (*headers.get(name.lower(), ()), value)
    return RequestHead(method, path, headers)


def _header(choices: Choices) -> tuple[str, str]:
    name = choices.one_of(HEADERS)
    return name, choices.one_of(VALUES) if choices.below(2) == 0 else choices.text()


def _ask(world: World, head: RequestHead, body: bytes) -> Ticket | None:
    refusal = world.exchange.refuses(head)
    assert refusal is None or refusal.body is None
    assert all(name.startswith("x-semmem-") for name in head.own_headers)
    result = _run(world.exchange.request(head, body))
    assert result.outcome in Outcome
    assert result.outcome is not Outcome.INJECTED or (result.injected and result.body is not None)
    if result.body is not None:
        assert not requests.json_value(result.body).keys() & set(requests.OWN)
    ticket: Ticket | None = result.ticket
    return ticket


def _answered(world: World, ticket: Ticket, choices: Choices) -> None:
    status, kind, encoding = choices.one_of(STATUSES), choices.one_of(TYPES), choices.one_of(ENCODINGS)
    observation = world.exchange.response(ticket, status=int(status or 0), content_type=kind, content_encoding=encoding)
    places = choices.cuts()
    for chunk in cut(encodings.encode(encoding, answers.body_of(choices)), places):
        observation.feed(chunk)
    assert observation.end() in ("refused", "unknown_encoding", "answer_lost", "answered", "continues")


# --- Envoy's messages ------------------------------------------------------------------------------------------------


class _Stream:
    """What Envoy says, in order, then the end; and what it is told."""

    def __init__(self, messages: Iterator[pb.ProcessingRequest]) -> None:
        self._messages = messages
        self.replies: list[pb.ProcessingResponse] = []

    async def read(self) -> Any:
        return next(self._messages, grpc.aio.EOF)

    async def write(self, reply: bytes) -> None:
        self.replies.append(pb.ProcessingResponse.FromString(reply))

    async def end(self, reply: bytes) -> None:
        await self.write(reply)


class _LastWords(logging.Handler):
    """The newest message of the door's log, which says where the last resort caught what."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.kept = deque[str](maxlen=1)

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())


def extproc(data: bytes) -> None:
    """The target: a stream of protobuf messages through Envoy's door."""
    choices = Choices(data)
    single = choices.below(2) == 1
    messages = _decoded(choices) if choices.below(2) == 0 else _built(choices)
    processor, failures, words = _door(single)
    before = len(failures)
    stream = _Stream(messages)
    _run(processor.process(None, stream))
    assert len(failures) == before, words.kept
    for reply in stream.replies:
        _check_length(reply)


def _check_length(reply: pb.ProcessingResponse) -> None:
    """A new body comes with its length."""
    changes = reply.request_body.response
    if changes.HasField("body_mutation"):
        [length] = changes.header_mutation.set_headers
        assert (length.header.key, int(length.header.raw_value)) == ("content-length", len(changes.body_mutation.body))


def _decoded(choices: Choices) -> Iterator[pb.ProcessingRequest]:
    """Messages as bytes, each behind its length (two bytes); what gRPC would not decode ends the stream."""
    while choices.left:
        try:
            yield pb.ProcessingRequest.FromString(choices.take(int.from_bytes(choices.take(2), "big")))
        except DecodeError:
            return


def _built(choices: Choices) -> Iterator[pb.ProcessingRequest]:
    """The messages of an exchange in about the usual order, as far as the data says."""
    observed = choices.below(2) == 1
    while choices.left:
        message = _message(choices)
        message.observability_mode = observed
        if choices.below(2) == 1:
            fields: dict[str, Any] = {
                "turn": "t_0",
                "store": choices.below(4) != 3,
                "dialect": choices.one_of(DIALECTS),
            }
            message.metadata_context.filter_metadata["semmem"].update(fields)
        yield message


def _message(choices: Choices) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest()
    kind, end = choices.below(8), choices.below(2) == 1
    match kind:
        case 0 | 1:
            _add_headers(choices, message.request_headers, (":method", "POST"), (":path", choices.one_of(PATHS)))
            message.request_headers.end_of_stream = end
        case 2 | 3:
            body = choices.take(2 * choices.below(256))
            message.request_body.body = requests.body_of(Choices(body), choices.one_of(DIALECTS[:3]))
            message.request_body.end_of_stream = not end
        case 4:
            known = ((":status", choices.one_of(STATUSES)), ("content-type", choices.one_of(TYPES)))
            _add_headers(choices, message.response_headers, *known, ("content-encoding", choices.one_of(ENCODINGS)))
            message.response_headers.end_of_stream = end
        case 5 | 6:
            message.response_body.body = answers.body_of(Choices(choices.take(choices.below(256))))
            message.response_body.end_of_stream = end
        case _:
            message.response_trailers.SetInParent()
    return message


def _add_headers(choices: Choices, headers: pb.HttpHeaders, *known: tuple[str, str]) -> None:
    unknown = [_header(choices) for _ in range(choices.below(4))]
    for name, value in (*known, ("x-user-id", "alice"), *unknown):
        raw = value.encode("latin-1" if choices.below(4) == 3 else "utf-8", "replace")
        headers.headers.headers.add(key=name, raw_value=raw)


# --- made once -------------------------------------------------------------------------------------------------------


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


def _run(steps: Coroutine[Any, Any, Any]) -> Any:
    return _loop().run_until_complete(steps)


@functools.cache
def _world(capture: str) -> World:
    world = World(capture=capture)
    _run(world.knows(BUDGET))
    _run(world.knows("User's dog is called Rex. hello"))
    return world


@functools.cache
def _door(single: bool) -> tuple[ExternalProcessor, list[StreamFailed], _LastWords]:
    words = _LastWords()
    logging.getLogger("semmem.envoy.service").addHandler(words)
    failures: list[StreamFailed] = []

    def hear(event: Event) -> None:
        if isinstance(event, StreamFailed):
            failures.append(event)

    world = _world("single_filter" if single else "observe")
    processor = ExternalProcessor(world.exchange, DoorLimits(), announce=hear, single_filter=single)
    return processor, failures, words
