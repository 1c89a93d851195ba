"""ext_proc's messages as plain values, and back. All that knows protobuf's fields."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf import struct_pb2

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.exchange import RequestResult
from semmem.ports.spans import NOWHERE, Place
from semmem.request.head import RequestHead, read_headers
from semmem.request.outcome import Outcome
from semmem.turns.observation import Ticket

NAMESPACE = "semmem"
"""The dynamic metadata namespace that joins the two filters of one request."""

NOTHING = b""
"""A message that says nothing, where one has to be sent and nobody reads it."""

CONTINUE: dict[str | None, bytes] = {
    "request_headers": pb.ProcessingResponse(request_headers=pb.HeadersResponse()).SerializeToString(),
    "response_headers": pb.ProcessingResponse(response_headers=pb.HeadersResponse()).SerializeToString(),
    "request_body": pb.ProcessingResponse(request_body=pb.BodyResponse()).SerializeToString(),
    "response_body": pb.ProcessingResponse(response_body=pb.BodyResponse()).SerializeToString(),
    "request_trailers": pb.ProcessingResponse(request_trailers=pb.TrailersResponse()).SerializeToString(),
    "response_trailers": pb.ProcessingResponse(response_trailers=pb.TrailersResponse()).SerializeToString(),
}

RESPONSE_WANTED: bytes = pb.ProcessingResponse(
    response_headers=pb.HeadersResponse(),
    # Both body modes, always: an override has no "unchanged" for them. Never BUFFERED: an answer beyond Envoy's buffer
    # would become an error, and a stream would arrive in one piece.
    mode_override=pb.ProcessingMode(
        request_body_mode=pb.ProcessingMode.BUFFERED, response_body_mode=pb.ProcessingMode.STREAMED
    ),
).SerializeToString()

_OWN = frozenset(
    {"outcome", "store", "turn", "dialect", "earlier", "request", "traceparent", "tracestate"}
    | {"switched_off", "memories"}
)
"""Texts in the metadata that are no notes of a ticket."""

_SOME_TURN, _SOME_REQUEST = "t_" + "0" * 32, "q" * 32
"""As long as the name of any turn, and of any request."""
_TURN, _REQUEST = _SOME_TURN.encode(), _SOME_REQUEST.encode()
_REQUEST_NAME = re.compile("[0-9a-f]{32}")
"""Another filter may have written there: no more than a name goes on to the log."""


def going_on(message: pb.ProcessingRequest) -> bytes:
    """The answer of a message's own kind that changes nothing; NOTHING to a kind that is not known here."""
    return CONTINUE.get(message.WhichOneof("request"), NOTHING)


def more_time(wanted_s: float) -> bytes:
    """Have Envoy wait so many seconds for the answer to the message at hand."""
    reply = pb.ProcessingResponse()
    reply.override_message_timeout.FromMilliseconds(round(1000 * wanted_s))
    return reply.SerializeToString()


def header_values(headers: pb.HeaderMap) -> dict[str, tuple[str, ...]]:
    """Header values by lower-case name, as every door reads them."""
    return read_headers([(header.key, header.raw_value or header.value.encode()) for header in headers.headers])


def request_head(message: pb.ProcessingRequest) -> RequestHead:
    """The plain form of a request_headers message."""
    headers = header_values(message.request_headers.headers)
    return RequestHead(
        method=headers.get(":method", ("",))[0],
        path=headers.get(":path", ("",))[0],
        headers=headers,
        metadata=_metadata_of(message),
    )


def with_metadata(head: RequestHead, first: pb.ProcessingRequest, message: pb.ProcessingRequest) -> RequestHead:
    """The head of a first message with the metadata of a later one: a filter that judges bodies speaks after the
    headers passed."""
    if message.metadata_context == first.metadata_context:
        return head
    later = _metadata_of(message)
    return RequestHead(head.method, head.path, head.headers, {**head.metadata, **later}) if later else head


def _metadata_of(message: pb.ProcessingRequest) -> dict[str, dict[str, Any]]:
    return {name: plain(struct) for name, struct in message.metadata_context.filter_metadata.items()}


def plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    """A protobuf Struct as plain values; of lists the texts alone: names of groups."""
    values: dict[str, Any] = {}
    for name, value in struct.fields.items():
        kind = value.WhichOneof("kind")
        if kind == "string_value":
            values[name] = value.string_value
        elif kind == "struct_value":
            values[name] = plain(value.struct_value)
        elif kind == "list_value":
            values[name] = [each.string_value for each in value.list_value.values if each.HasField("string_value")]
        elif kind in ("number_value", "bool_value"):
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
    place = Place(str(fields.get("traceparent", "")), str(fields.get("tracestate", "")))
    notes = tuple((name, told) for name, told in fields.items() if isinstance(told, str) and name not in _OWN)
    named = _REQUEST_NAME.fullmatch(str(fields.get("request", "")))
    request = named[0] if named else ""
    return Ticket(str(fields["turn"]), str(fields.get("dialect", "")), earlier, place, notes, request)


def headers_reply(own_headers: Sequence[str], refusal: RequestResult | None) -> bytes:
    """Remove semmem's own headers; when the body is not wanted, say so and why."""
    if refusal is None and not own_headers:
        return CONTINUE["request_headers"]
    reply = pb.ProcessingResponse(request_headers=pb.HeadersResponse())
    if own_headers:
        reply.request_headers.response.header_mutation.remove_headers.extend(own_headers)
    if refusal is not None:
        # both body modes, always: an override has no "unchanged" for them
        reply.mode_override.request_body_mode = pb.ProcessingMode.NONE
        reply.mode_override.response_body_mode = pb.ProcessingMode.NONE
        reply.dynamic_metadata.CopyFrom(metadata(refusal))
    return reply.SerializeToString()


def body_reply(result: RequestResult) -> bytes:
    """The new body with its length (Envoy answers 500 to a stale one), and the metadata for the rest of the chain."""
    return CONTINUE["request_body"] + _told(result) if result.body is None else _new_body(result.body) + _told(result)


def _new_body(body: bytes) -> bytes:
    reply = pb.ProcessingResponse()
    common = reply.request_body.response
    common.body_mutation.body = body
    length = common.header_mutation.set_headers.add()
    length.header.key = "content-length"
    length.header.raw_value = str(len(body)).encode()
    return reply.SerializeToString()


def _told(result: RequestResult) -> bytes:
    """The metadata as a message of their own: put behind another one of the same type, they are a part of it."""
    ticket = result.ticket
    if result.switched or result.notes:
        return _message_of(result)
    if ticket is None:
        return _of_outcome(result.outcome, result.injected)
    is_plain = not ticket.earlier and ticket.place is NOWHERE and not ticket.notes
    if not is_plain or len(ticket.turn_id) != len(_SOME_TURN) or not ticket.turn_id.isascii():
        return _message_of(result)
    told = _of_turn(result.outcome, ticket.dialect, result.injected, named=bool(ticket.request))
    return told.replace(_TURN, ticket.turn_id.encode(), 1).replace(_REQUEST, ticket.request.encode(), 1)


@cache
def _of_outcome(outcome: Outcome, injected: int) -> bytes:
    return _message_of(RequestResult(outcome, injected=injected))


@cache
def _of_turn(outcome: Outcome, dialect: str, injected: int, *, named: bool) -> bytes:
    """What is told of some turn and, if ``named``, of some request. Names are of one length, so nothing else in the
    message depends on them. There are a few dialects, and at most some dozens of memories."""
    ticket = Ticket(_SOME_TURN, dialect, request=_SOME_REQUEST if named else "")
    return _message_of(RequestResult(outcome, ticket=ticket, injected=injected))


def _message_of(result: RequestResult) -> bytes:
    return pb.ProcessingResponse(dynamic_metadata=metadata(result)).SerializeToString()


def metadata(result: RequestResult) -> struct_pb2.Struct:
    """Few and small, because Envoy repeats them with every observed message."""
    fields: dict[str, str | bool | float] = {"outcome": str(result.outcome), "store": result.ticket is not None}
    if result.ticket is not None:
        fields |= {"turn": result.ticket.turn_id, "dialect": result.ticket.dialect}
        fields |= result.ticket.notes
        if result.ticket.request:
            fields["request"] = result.ticket.request
        if result.ticket.earlier:
            fields["earlier"] = " ".join(result.ticket.earlier)
        place = result.ticket.place
        fields |= {name: value for name in ("traceparent", "tracestate") if (value := getattr(place, name))}
    if result.injected:
        fields["injected"] = result.injected
    fields |= result.notes
    if result.switched:
        fields["switched_off"] = str(result.switched)
    struct = struct_pb2.Struct()
    struct.fields[NAMESPACE].struct_value.update(fields)
    return struct
