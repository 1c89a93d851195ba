"""What is wanted of a request travels with its ticket, from the replica that read it to whoever sees its answer."""

from __future__ import annotations

import msgspec
import pytest

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.envoy.wire import NAMESPACE, body_reply, read_ticket
from semmem.exchange import RequestResult
from semmem.memory import Conversation, Message, Role, Scope, TurnEnding
from semmem.ports.usage import Asked, UsageRow
from semmem.request.outcome import Outcome
from semmem.turns.observation import Ticket
from semmem.usage.meter import NOTE, KnownNames, Meter
from tests.support.cpu_time import within_cpu_s
from tests.support.usage import KEY, PRICES

ASKED = Asked(1_800_000_000.25, "u" * 32, "s" * 16, 'a "project"', "gpt-4o", 123, streamed=True, speaks=False)


def observed(reply: bytes) -> pb.ProcessingRequest:
    """The message by which Envoy brings the metadata of a reply to the other filter."""
    message = pb.ProcessingRequest()
    told = pb.ProcessingResponse.FromString(reply).dynamic_metadata.fields[NAMESPACE].struct_value
    message.metadata_context.filter_metadata[NAMESPACE].CopyFrom(told)
    return message


def metered() -> Ticket:
    return Ticket("t_" + "1" * 32, "chat", notes=((NOTE, msgspec.json.encode(ASKED).decode()),))


def test_a_ticket_comes_back_as_it_was() -> None:
    ticket = metered()
    assert read_ticket(observed(body_reply(RequestResult(Outcome.NO_HITS, ticket=ticket)))) == ticket


@pytest.mark.parametrize("told", ["", "[]", "{}", '["x"]', "7", '[1,"u"]'])
def test_what_another_build_says_is_not_believed_and_costs_no_answer(told: str) -> None:
    message = observed(body_reply(RequestResult(Outcome.NO_HITS, ticket=metered())))
    message.metadata_context.filter_metadata[NAMESPACE].fields["asked"].string_value = told
    ticket, rows = read_ticket(message), list[UsageRow]()
    assert ticket is not None
    feature = Meter(KEY, PRICES, KnownNames(10), rows.append)
    feature.on_answer(ticket, TurnEnding.ANSWERED, None, 1000.0, failed=False)
    assert rows == []
    feature.on_answer(metered(), TurnEnding.ANSWERED, None, 1000.0, failed=False)
    assert [row.tokens_in for row in rows] == [ASKED.tokens]


def test_without_statistics_nothing_of_them_travels() -> None:
    reply = body_reply(RequestResult(Outcome.NO_HITS, ticket=Ticket("t_" + "1" * 32, "chat")))
    assert b"asked" not in reply


@pytest.mark.parametrize("ticket", [None, Ticket("t_" + "1" * 32, "chat")])
def test_what_a_feature_says_of_a_request_travels_where_nothing_else_is_changed(ticket: Ticket | None) -> None:
    reply = body_reply(RequestResult(Outcome.ALREADY_INJECTED, ticket=ticket, notes=(("memories", "mem_1"),)))
    assert observed(reply).metadata_context.filter_metadata[NAMESPACE].fields["memories"].string_value == "mem_1"


def test_metering_a_request_takes_microseconds() -> None:
    meter = Meter(KEY, PRICES, KnownNames(10), lambda _row: None)
    said = Conversation(tuple(Message(Role.USER, "What is tea?") for _ in range(40)), model="gpt-4o")

    def thousand(_attempt: int) -> None:
        for _ in range(1000):
            meter.asked(Scope("ada", "atlas", None, "s"), said, 1000.0, speaks=True, injected_tokens=0)

    assert within_cpu_s(0.1, thousand)
