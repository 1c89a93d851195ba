"""One injection per tool loop: the same bytes at the same place in each of its requests, in every dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from semmem.exchange import RequestResult
from semmem.memory import Memory, Scope
from semmem.ports.errors import StoreUnavailable
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.request.permission import PermissionRules
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.retrieval.context import OPENING
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.recall import RecallRules
from tests.core.exchange.world import BUDGET, NOW, PATIENT, QUESTION, World

Json = dict[str, Any]
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
POSITIONS = ("turn", "system", "first", "after_system", "before_last_user")


def call(number: int) -> Json:
    return {"id": f"c{number}", "type": "function", "function": {"name": "flights", "arguments": "{}"}}


@dataclass(frozen=True)
class Api:
    """How an API spells a request, and one round of two calls and their results."""

    path: str
    history: str
    instructions: Callable[[list[Json]], Json]
    rounds: Callable[[int], list[Json]]
    user: Callable[[str], Json] = lambda text: {"role": "user", "content": text}

    def body(self, said: list[Json], **members: Any) -> bytes:
        """The history last, so that what goes before it is a prefix."""
        return json.dumps({"model": "m", **members, **self.instructions(said)}).encode()

    def loop(self, rounds: int) -> list[Json]:
        """A conversation with an answered question, then one whose tools were called this often."""
        before = [self.user("Hello, I am planning"), {"role": "assistant", "content": "Go on."}, self.user(QUESTION)]
        return [*before, *(item for number in range(rounds) for item in self.rounds(number))]


def chat_rounds(number: int) -> list[Json]:
    calls = [call(2 * number), call(2 * number + 1)]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "delayed"} for c in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def messages_rounds(number: int) -> list[Json]:
    names = [f"c{2 * number}", f"c{2 * number + 1}"]
    uses = [{"type": "tool_use", "id": name, "name": "flights", "input": {}} for name in names]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "delayed"} for name in names]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


def responses_rounds(number: int) -> list[Json]:
    names = [f"c{2 * number}", f"c{2 * number + 1}"]
    return [
        {"type": "reasoning", "id": f"r{number}", "summary": []},
        *({"type": "function_call", "call_id": name, "name": "flights", "arguments": "{}"} for name in names),
        *({"type": "function_call_output", "call_id": name, "output": "delayed"} for name in names),
    ]


INSTRUCTED = {
    "chat": Api(
        "/v1/chat/completions",
        "messages",
        lambda said: {"messages": [{"role": "system", "content": "Be brief."}, *said]},
        chat_rounds,
    ),
    "messages": Api(
        "/v1/messages", "messages", lambda said: {"system": "Be brief.", "messages": said}, messages_rounds
    ),
    "responses": Api(
        "/v1/responses", "input", lambda said: {"instructions": "Be brief.", "input": said}, responses_rounds
    ),
}
BARE = {
    "chat, no system": Api("/v1/chat/completions", "messages", lambda said: {"messages": said}, chat_rounds),
    "messages, no system": Api("/v1/messages", "messages", lambda said: {"messages": said}, messages_rounds),
    "responses, no instructions": Api("/v1/responses", "input", lambda said: {"input": said}, responses_rounds),
}
APIS = INSTRUCTED | BARE
CHAT = INSTRUCTED["chat"]


class Client:
    """An agent: asks, and goes on with what its tools said."""

    def __init__(self, api: Api = CHAT, user: str = "alice", rules: RecallRules = PATIENT, **world: Any) -> None:
        self.api = api
        self.user = user
        self.world = World(rules=rules, phase_s=20.0, **world)
        self.store = self.world.memories

    async def send(self, rounds: int, headers: Mapping[str, str] = NO_HEADERS, **members: Any) -> RequestResult:
        return await self.post(self.api.body(self.api.loop(rounds), **members), headers)

    async def post(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> RequestResult:
        sent = {"x-user-id": self.user, **headers}
        head = RequestHead("POST", self.api.path, {name: (value,) for name, value in sent.items()})
        return await self.world.exchange.request(head, body)

    async def asked(self, headers: Mapping[str, str] = NO_HEADERS, **members: Any) -> None:
        """The first request of a loop, with a memory in it."""
        await self.world.knows(BUDGET)
        assert (await self.send(0, headers, **members)).outcome is Outcome.INJECTED


def upstream(result: RequestResult) -> bytes:
    assert result.body is not None
    return result.body


# --- the same bytes at the same place --------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["system", "user"])
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
async def test_every_request_of_a_loop_begins_with_the_whole_one_before(api: Api, position: str, role: str) -> None:
    client = Client(api, rules=replace(PATIENT, position=position, role=role))
    await client.world.knows(BUDGET)
    first = await client.send(0)
    assert first.outcome is Outcome.INJECTED
    client.world.embedder.failing = True  # nothing is searched for any more
    await client.world.knows("User's budget for the Hawaii trip was raised")

    before = upstream(first)
    for rounds in (1, 2, 3):
        result = await client.send(rounds)
        assert (result.outcome, result.injected, result.tokens) == (Outcome.REPEATED, first.injected, first.tokens)
        now = upstream(result)
        old, new = json.loads(before), json.loads(now)
        was, said = old.pop(api.history), new.pop(api.history)
        assert new == old
        assert said[: len(was)] == was
        assert said[len(was) :] == api.rounds(rounds - 1), "calls and results stay together, as the client sent them"
        assert now.count(OPENING.encode()) == 1
        question = before.index(QUESTION.encode()) + len(QUESTION)
        assert now[:question] == before[:question]
        before = now


async def test_a_loop_is_one_turn_and_each_of_its_answers_is_wanted() -> None:
    client = Client()
    await client.asked()
    tickets = [(await client.send(rounds)).ticket for rounds in (1, 2)]
    assert len({turn.id for turn in client.world.turns}) == 1
    assert [ticket and ticket.turn_id for ticket in tickets] == [client.world.turns[0].id] * 2


async def test_the_journal_is_told_which_words_a_loop_only_repeats() -> None:
    client = Client()
    await client.asked()
    for rounds in (1, 2):
        await client.send(rounds)
    assert [turn.resumed for turn in client.world.turns] == [False, True, True]


async def test_a_retry_of_the_question_searches_again_and_the_loop_goes_on_with_what_it_found() -> None:
    client = Client()
    await client.asked()
    await client.world.knows("User's budget for the Hawaii trip includes $900 for the flights")
    again = await client.send(0)
    assert (again.outcome, again.injected) == (Outcome.INJECTED, 2)
    assert (await client.send(1)).injected == 2


async def test_a_retry_that_finds_nothing_takes_the_block_from_the_loop() -> None:
    client = Client()
    await client.asked()
    client.world.store.error = StoreUnavailable("down")
    assert (await client.send(0)).outcome is Outcome.STORE_DOWN
    assert (await client.send(1)).outcome is Outcome.TOOL_TURN


async def test_the_next_words_of_the_user_are_searched_for() -> None:
    client = Client()
    await client.asked()
    said = [*client.api.loop(1), {"role": "assistant", "content": "Late."}, client.api.user("And my budget in Hawaii?")]
    result = await client.post(client.api.body(said))
    assert (result.outcome, len(client.world.turns)) == (Outcome.INJECTED, 2)


async def test_a_tool_that_is_only_named_is_no_loop() -> None:
    client = Client()
    await client.asked()
    choice = {"type": "function", "function": {"name": "flights"}}
    assert (await client.send(0, tool_choice=choice)).outcome is Outcome.TOOL_TURN


async def test_an_earlier_filter_that_sees_no_tool_turn_does_not_part_a_loop() -> None:
    client = Client(upstream=VerdictRules(tool=VerdictSource("x-tool")))
    await client.asked()
    assert (await client.send(1, {"x-tool": "false"})).outcome is Outcome.REPEATED


# --- who does not get it ---------------------------------------------------------------------------------------------


async def test_a_loop_that_begins_elsewhere_stays_without() -> None:
    client = Client()
    await client.world.knows(BUDGET)
    result = await client.send(1)
    assert (result.outcome, result.body) == (Outcome.TOOL_TURN, None)


async def test_nobody_else_gets_a_users_block_by_saying_the_same_in_the_same_session() -> None:
    client = Client()
    session = {"x-session-id": "s"}
    await client.asked(session)
    client.user = "mallory"
    assert (await client.send(1, session)).outcome is Outcome.TOOL_TURN
    client.user = "alice"
    assert (await client.send(1, session)).outcome is Outcome.REPEATED


@pytest.mark.parametrize(
    ("headers", "members"),
    [
        ({"x-project-id": "work"}, {}),
        ({}, {"model": "o1"}),
        ({}, {"memory_config": {"memory_types": ["procedural"]}}),
        ({}, {"memory_config": {"retrieval_limit": 0}}),
    ],
    ids=["project", "model", "types", "limit"],
)
async def test_a_request_that_would_have_found_something_else_is_not_given_it(headers: Any, members: Any) -> None:
    client = Client(rules=replace(PATIENT, user_role_models=("o1",)))
    session = {"x-session-id": "s"}
    await client.asked(session)
    assert (await client.send(1, session | headers, **members)).outcome is Outcome.TOOL_TURN
    assert (await client.send(1, session)).outcome is Outcome.REPEATED


async def test_opting_out_wins_in_mid_loop() -> None:
    client = Client(upstream=VerdictRules(blocked=VerdictSource("x-blocked"), pii=VerdictSource("x-pii")))
    await client.asked()
    for headers, word in (
        ({"x-semmem-memory": "off"}, Outcome.OPTED_OUT),
        ({"x-semmem-memory": "write"}, Outcome.WRITE_ONLY),
        ({"x-blocked": "true"}, Outcome.BLOCKED),
        ({"x-pii": "true"}, Outcome.PII),
    ):
        result = await client.send(1, headers)
        assert (result.outcome, result.body, result.injected) == (word, None, 0)
    off = await client.send(1, memory_config={"enabled": False})
    assert off.outcome is Outcome.OPTED_OUT
    assert OPENING.encode() not in upstream(off)


async def test_a_loop_that_only_reads_is_repeated_and_not_journalled() -> None:
    client = Client(permissions=PermissionRules(auto_store=False))
    await client.asked()
    result = await client.send(1)
    assert (result.outcome, result.ticket, list(client.world.journal)) == (Outcome.REPEATED, None, [])


async def test_what_a_gateway_before_this_one_has_put_in_is_left_alone() -> None:
    client = Client()
    await client.asked()
    once = upstream(await client.send(1))
    result = await client.post(once)
    assert (result.outcome, result.body) == (Outcome.ALREADY_INJECTED, None)


# --- what has gone is not shown --------------------------------------------------------------------------------------


CHANGES: dict[str, Callable[[HotMemories, Memory], Awaitable[object]]] = {
    "forgotten": lambda store, memory: store.forget(Scope("alice"), memory.id),
    "all forgotten": lambda store, memory: store.forget_scope(Scope("alice")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_memory_that_is_gone_is_not_repeated(
    change: Callable[[HotMemories, Memory], Awaitable[object]],
) -> None:
    client = Client()
    await client.asked()
    [memory] = await client.store.list(Scope("alice"))
    await change(client.store, memory)
    assert (await client.send(1)).outcome is Outcome.TOOL_TURN


async def test_a_memory_may_get_a_new_version_meanwhile_and_others_may_go() -> None:
    client = Client()
    await client.asked()
    await client.store.forget(Scope("alice"), "mem_other")
    await client.store.forget_scope(Scope("bob"))
    [memory] = await client.store.list(Scope("alice"))
    await client.store.put(Scope("alice"), replace(memory, version=2, content="User has no budget any more"))
    assert (await client.send(1)).outcome is Outcome.REPEATED


async def test_a_memory_that_is_forgotten_while_it_is_searched_for_is_not_kept() -> None:
    client = Client()
    await client.world.knows(BUDGET)
    [memory] = await client.store.list(Scope("alice"))
    answered, forgotten = asyncio.Event(), asyncio.Event()
    read = client.world.store.list

    async def slow(*args: Any, **kwargs: Any) -> Any:
        found = await read(*args, **kwargs)
        answered.set()
        await forgotten.wait()
        return found

    client.world.store.list = slow  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        first = group.create_task(client.send(0))
        await answered.wait()
        await client.store.forget(Scope("alice"), memory.id)
        forgotten.set()
    assert first.result().outcome is Outcome.NO_HITS
    assert (await client.send(1)).outcome is Outcome.TOOL_TURN


async def test_an_expired_memory_is_not_repeated() -> None:
    client = Client()
    await client.world.knows(BUDGET, expires_at=NOW + 30)
    assert (await client.send(0)).outcome is Outcome.INJECTED
    client.world.now = NOW + 29
    assert (await client.send(1)).outcome is Outcome.REPEATED
    client.world.now = NOW + 30
    assert (await client.send(2)).outcome is Outcome.TOOL_TURN


# --- where the API keeps the history ---------------------------------------------------------------------------------


async def chained(position: str, role: str, **first: Any) -> tuple[RequestResult, RequestResult]:
    """The first request, and the one that goes on from its answer with nothing but the tool's output."""
    client = Client(INSTRUCTED["responses"], rules=replace(PATIENT, position=position, role=role))
    await client.world.knows(BUDGET)
    asked = await client.post(client.api.body([client.api.user(QUESTION)], **first))
    assert asked.outcome is Outcome.INJECTED
    assert asked.ticket is not None
    observed = client.world.exchange.response(
        asked.ticket, status=200, content_type="application/json", content_encoding=""
    )
    _, function_call, _, output, _ = responses_rounds(0)
    observed.feed(json.dumps({"id": "resp_1", "status": "completed", "output": [function_call]}).encode())
    assert observed.end() == "continues"
    chain = {} if first else {"previous_response_id": "resp_1"}
    return asked, await client.post(client.api.body([output], **first, **chain))


@pytest.mark.parametrize("first", [{}, {"conversation": "conv_1"}], ids=["chain", "conversation"])
@pytest.mark.parametrize("position", ["first", "after_system"])
async def test_instructions_are_repeated_since_the_api_does_not_keep_them(position: str, first: Json) -> None:
    asked, result = await chained(position, "system", **first)
    assert result.outcome is Outcome.REPEATED
    assert json.loads(upstream(result))["instructions"] == json.loads(upstream(asked))["instructions"]
    assert [item["type"] for item in json.loads(upstream(result))["input"]] == ["function_call_output"]


@pytest.mark.parametrize(
    ("position", "role"), [("before_last_user", "system"), ("first", "user"), ("after_system", "user")]
)
async def test_an_item_of_the_input_is_in_the_chain_already(position: str, role: str) -> None:
    _, result = await chained(position, role)
    assert (result.outcome, result.body, result.injected) == (Outcome.ALREADY_INJECTED, None, 0)
    assert result.ticket is not None
