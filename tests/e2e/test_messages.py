"""The Anthropic Messages API through a real Envoy, asked by its official client and by bare bytes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from anthropic import Anthropic, BadRequestError, DefaultHttpxClient
from anthropic.types import Message, MessageParam, ToolParam

from tests.support.harness import House, Json, Reply, eventually

PATH = "/v1/messages"
FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
WEATHER: ToolParam = {"name": "weather", "description": "The weather", "input_schema": {"type": "object"}}
ODD_BODY = (
    b'{ "max_tokens":64,"temperature" : 0.50, "x-seed":12345678901234567890123, "system": "Be \\u0062rief.",\n'
    b'"messages":[ {"content":"What\\u0027s my budget for the trip?" ,"role":"user", "n":-0.0}] ,"model":"stand-in"}\n'
)


class Caller:
    """One user's official client before a house, and what the model received of his last request."""

    def __init__(self, house: House, client: Anthropic) -> None:
        self._house = house
        self._client = client
        self._request_id = ""

    def ask(self, messages: list[Any] | str, *, stream: bool = False, session: str = "", **members: Any) -> Message:
        """One request. ``members`` are further body members; those the client does not know travel in extra_body."""
        said: list[MessageParam] = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        self._request_id = secrets.token_hex(8)
        headers = {"x-request-id": self._request_id} | ({"x-session-id": session} if session else {})
        asked: Json = {"model": "stand-in", "max_tokens": 64, "messages": said, "extra_headers": headers, **members}
        if not stream:
            created: Message = self._client.messages.create(**asked)
            return created
        with self._client.messages.stream(**asked) as events:
            return events.get_final_message()

    @property
    def prompt(self) -> Json:
        """The body the model received."""
        received = self._house.model.request(self._request_id)
        assert received is not None, "the model was never asked"
        found: Json = json.loads(received.body)
        return found


@contextmanager
def caller(house: House, user: str) -> Iterator[Caller]:
    http = DefaultHttpxClient(trust_env=False)
    with Anthropic(
        base_url=house.envoy.url, auth_token=f"demo-{user}", api_key=None, max_retries=0, http_client=http
    ) as client:
        yield Caller(house, client)


def said(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def send(house: House, user: str, **members: Any) -> Reply:
    body = {"model": "stand-in", "max_tokens": 64, **members}
    return house.send(json.dumps(body).encode(), user=user, path=PATH)


def answers(house: House, user: str) -> list[str]:
    found = eventually(
        lambda: [answer for _, answer in house.semmem.turns(user) if answer],
        within_s=60,
        what="the answer is journalled",
    )
    return cast(list[str], found)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_fact_told_in_one_conversation_comes_back_in_the_next(home: House, alice: str, stream: bool) -> None:
    with caller(home, alice) as client:
        told = client.ask(FACT, stream=stream, session="first")
        assert list(client.prompt) == ["max_tokens", "messages", "model", *(["stream"] if stream else [])]
        home.learnt(alice)
        asked = client.ask(QUESTION, stream=stream, session="second", system="Be brief.")

        assert said(told) == "Got it, thank you for telling me."
        assert "10,000" in said(asked)
        assert asked.stop_reason == "end_turn"
        assert client.prompt["system"] == "Be brief."
        (message,) = client.prompt["messages"]
        injected, _, own = message["content"].rpartition("\n\n")
        assert own == QUESTION
        assert "10,000" in injected


def test_what_was_told_by_chat_is_recalled_by_messages(home: House, alice: str) -> None:
    assert home.chat(alice, FACT, session="chat").status == 200
    home.learnt(alice)

    with caller(home, alice) as client:
        asked = client.ask(QUESTION)

        assert "10,000" in client.prompt["messages"][0]["content"]
    assert "10,000" in said(asked)


def test_what_was_told_by_messages_is_recalled_by_chat(home: House, alice: str) -> None:
    with caller(home, alice) as client:
        client.ask(FACT, stream=True)
    home.learnt(alice)

    reply = home.chat(alice, QUESTION)

    assert reply.outcome == "injected"
    assert b"10,000" in reply.body


def test_another_user_gets_nothing(home: House, alice: str, bob: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=bob, path=PATH)

    assert (reply.status, reply.outcome) == (200, "no_hits")
    assert reply.prompt == ODD_BODY


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_the_answer_is_captured_and_reaches_the_client_byte_for_byte(home: House, alice: str, stream: bool) -> None:
    reply = send(home, alice, messages=[{"role": "user", "content": "Thank you for the garden."}], stream=stream)

    assert answers(home, alice) == ["Got it, thank you for telling me."]
    assert reply.received is not None
    assert reply.body == reply.received.answer


def test_the_body_changes_only_by_the_injection(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=alice, path=PATH)

    assert reply.outcome == "injected"
    before, own, after = ODD_BODY.partition(b"What")
    assert reply.prompt.startswith(before + b"<semmem-memory ")
    assert reply.prompt.endswith(b"</semmem-memory>\\n\\n" + own + after)
    assert reply.received is not None
    assert reply.received.header("content-length") == str(len(reply.prompt))


def test_a_system_prompt_marked_for_caching_keeps_its_marks(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    marked = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]

    with caller(home, alice) as client:
        client.ask([{"role": "user", "content": [marked[0] | {"text": QUESTION}]}], system=marked)

        assert client.prompt["system"] == marked
        (message,) = client.prompt["messages"]
        assert "10,000" in message["content"][0]["text"]
        assert message["content"][1:] == [marked[0] | {"text": QUESTION}]


def test_semmems_own_members_never_reach_the_model(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    own = {"memory_config": {"enabled": False}, "memory_context": {"project_id": "p"}}

    with caller(home, alice) as client:
        client.ask("I live in Lisbon. " + QUESTION, extra_body=own)

        assert sorted(client.prompt) == ["max_tokens", "messages", "model"]
    assert home.semmem.turns(alice) == []


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_tools_round_trip_is_one_turn_and_teaches_only_what_the_user_said(
    home: House, alice: str, stream: bool
) -> None:
    home.semmem.remember(alice, FACT)
    asked = "I live in Ghent. Ask weather what is within my budget for the trip?"
    history: list[Any] = [{"role": "user", "content": asked}]
    with caller(home, alice) as client:
        called = client.ask(history, stream=stream, session="tools", tools=[WEATHER])
        first = client.prompt
        (call,) = called.content
        assert call.type == "tool_use"
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "I live in Rome. The trip has rain."}
        history += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
        answered = client.ask(history, stream=stream, session="tools", tools=[WEATHER])
        second = client.prompt

    assert (called.stop_reason, answered.stop_reason) == ("tool_use", "end_turn")
    assert "10,000" in first["messages"][0]["content"]
    assert second["messages"][: len(first["messages"])] == first["messages"], "a loop keeps its block"
    assert second["messages"][-1]["content"] == [result]
    assert answers(home, alice) == [said(answered)]
    assert [text for text, _ in home.semmem.turns(alice)] == [asked]
    contents = {memory["content"] for memory in home.learnt(alice, 2)}
    assert any("Ghent" in content for content in contents)
    assert not any("Rome" in content for content in contents)


def test_a_body_that_is_no_request_passes_as_it_came(home: House, alice: str) -> None:
    body = b'{"messages":[{"role":"user","content":7}]}'

    reply = home.send(body, user=alice, path=PATH)

    assert (reply.outcome, reply.prompt) == ("malformed", body)


def test_an_error_reaches_the_official_client_as_its_own(home: House, alice: str) -> None:
    with caller(home, alice) as client, pytest.raises(BadRequestError):
        client.ask([])


def test_counting_tokens_opens_no_stream(home: House, alice: str) -> None:
    reply = home.send(ODD_BODY, user=alice, path=f"{PATH}/count_tokens")

    assert (reply.status, reply.outcome) == (200, None)
    assert reply.prompt == ODD_BODY
