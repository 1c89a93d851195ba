"""Requests that are not searched for, or not touched at all, and the word for each."""

from __future__ import annotations

import json

import pytest

from semmem.exchange import RequestResult
from semmem.ports.accounts import Switch, SwitchRow
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.request.permission import PermissionRules
from semmem.request.switches import Switches, user_key
from tests.core.exchange.world import BUDGET, NOW, QUESTION, World, as_body


async def test_a_greeting_is_not_searched_for_but_journalled() -> None:
    world = World()
    await world.knows("User says hello to everybody")
    result = await world.ask("Hello!")
    assert result.outcome is Outcome.GREETING
    assert result.body is None
    assert len(world.turns) == 1


@pytest.mark.parametrize("outcome", [Outcome.GREETING, Outcome.GENERAL_FACT])
async def test_what_is_decided_of_the_request_is_an_outcome_and_the_turn_is_still_learnt_from(outcome: Outcome) -> None:
    world = World()
    await world.knows(BUDGET)
    world.decision.word = outcome.value
    result = await world.ask()
    assert (result.outcome, result.body, result.injected) == (outcome, None, 0)
    assert len(world.turns) == 1


async def test_nobody_known_means_no_memory_and_no_journal() -> None:
    world = World()
    await world.knows(BUDGET)
    head = RequestHead("POST", "/v1/chat/completions", {})
    result = await world.exchange.request(head, as_body(QUESTION))
    assert (result.outcome, result.body, result.ticket, world.turns) == (Outcome.ANONYMOUS, None, None, [])


@pytest.mark.parametrize("headers", [{"x_semmem_memory": "off"}, {"x_disable_router_memory": "true"}])
async def test_opting_out_stops_reading_and_storing(headers: dict[str, str]) -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask(**headers)
    assert (result.outcome, result.body, result.ticket, world.turns) == (Outcome.OPTED_OUT, None, None, [])


async def test_reading_only_stores_nothing_and_writing_only_injects_nothing() -> None:
    world = World()
    await world.knows(BUDGET)
    read = await world.ask(x_semmem_memory="read")
    assert (read.outcome, read.ticket, world.turns) == (Outcome.INJECTED, None, [])
    write = await world.ask(x_semmem_memory="write")
    assert (write.outcome, write.body, len(world.turns)) == (Outcome.WRITE_ONLY, None, 1)


@pytest.mark.parametrize(
    ("switch", "outcome", "switched", "injected", "stored"),
    [
        (Switch(), Outcome.INJECTED, "", 1, 1),
        (Switch(reading=False), Outcome.READING_OFF, "reading", 0, 1),
        (Switch(storing=False), Outcome.INJECTED, "storing", 1, 0),
        (Switch(reading=False, storing=False), Outcome.SWITCHED_OFF, "both", 0, 0),
    ],
)
async def test_a_switch_stops_reading_storing_or_both(
    switch: Switch, outcome: Outcome, switched: str, injected: int, stored: int
) -> None:
    world = World(switches=Switches([SwitchRow(user_key("alice"), "", switch, 1, NOW)]))
    await world.knows(BUDGET)
    result = await world.ask()
    assert (result.outcome, result.switched, result.injected) == (outcome, switched, injected)
    assert (len(world.turns), result.ticket is not None) == (stored, bool(stored))
    assert len(world.journal.declined) == 1 - stored  # nor is it learnt from a later request's history


async def test_who_wants_to_write_alone_is_not_told_of_a_switch() -> None:
    switches = Switches([SwitchRow(user_key("alice"), "", Switch(reading=False), 1, NOW)])
    result = await World(switches=switches).ask(x_semmem_memory="write")
    assert (result.outcome, result.switched) == (Outcome.WRITE_ONLY, "")


@pytest.mark.parametrize("permissions", [PermissionRules(), PermissionRules(enabled=False)])
async def test_semmems_own_members_never_reach_the_model(permissions: PermissionRules) -> None:
    world = World(permissions)
    body = {
        "memory_config": {"enabled": False},
        "messages": [{"role": "user", "content": QUESTION}],
        "memory_context": {"user_id": "x"},
    }
    result = await world.ask(body)
    assert result.outcome is Outcome.OPTED_OUT
    assert json.loads(result.body or b"") == {"model": "m", "messages": body["messages"]}


def test_headers_alone_can_refuse_a_request() -> None:
    exchange = World(request_body_bytes_max=1000).exchange

    def outcome(method: str = "POST", path: str = "/v1/chat/completions", **headers: str) -> Outcome | None:
        sent = {name.replace("_", "-"): (value,) for name, value in headers.items()}
        refusal = exchange.refuses(RequestHead(method, path, sent))
        return refusal.outcome if refusal else None

    assert outcome() is None
    assert outcome(path="/v1/chat/completions?x=1") is None
    assert outcome(content_length="1000") is None
    assert outcome(content_length="1001") is Outcome.OVERSIZE
    assert outcome(content_length="9" * 5000) is Outcome.OVERSIZE
    assert outcome(content_length="²") is None
    assert outcome(content_length="-5") is None
    assert outcome(content_encoding="gzip") is Outcome.COMPRESSED
    assert outcome(path="/v1/embeddings") is Outcome.OTHER_PATH
    assert outcome(method="GET") is Outcome.OTHER_PATH


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"messages": 1}', b'{"messages": []}', b'{"model": "\xff"}', b"x" * 100]
)
async def test_what_is_not_a_request_passes_as_it_came(body: bytes) -> None:
    result = await World().ask(body)
    assert result == RequestResult(Outcome.MALFORMED)


async def test_a_body_over_the_limit_passes_as_it_came() -> None:
    assert await World(request_body_bytes_max=20).ask() == RequestResult(Outcome.OVERSIZE)
