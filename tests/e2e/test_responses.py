"""The Responses API through a real Envoy, asked by OpenAI's official client (chat as well) and by bare bytes."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest
from openai import BadRequestError, DefaultHttpxClient, OpenAI
from openai.types.responses import Response

from tests.support.harness import House, Json, eventually

PATH = "/v1/responses"
FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
THANKED = "Got it, thank you for telling me."
WEATHER: Json = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
ODD_BODY = (
    b'{ "temperature" : 0.50, "x-seed":12345678901234567890123, "instructions": "Be \\u0062rief.\\/",\n'
    b'"input":[ {"content":"What\\u0027s my budget for the trip?" ,"role":"user", "n":-0.0}] ,"model":"stand-in"}\n'
)


class Caller:
    """One user's official client before a house, and what the model received of his last request."""

    def __init__(self, house: House, client: OpenAI) -> None:
        self.client = client
        self._house = house
        self._request_id = ""

    def headers(self, session: str = "") -> dict[str, str]:
        """Headers by which the next request is found at the model."""
        self._request_id = secrets.token_hex(8)
        return {"x-request-id": self._request_id} | ({"x-session-id": session} if session else {})

    def ask(self, given: Any, *, stream: bool = False, session: str = "", **members: Any) -> Response:
        """One request. ``members`` are further body members; those the client does not know travel in extra_body."""
        asked: Json = {"model": "stand-in", "input": given, "extra_headers": self.headers(session), **members}
        if not stream:
            return self.client.responses.create(**asked)
        with self.client.responses.stream(**asked) as events:
            return events.get_final_response()

    def chat(self, messages: list[Any], *, stream: bool = False, session: str = "", **members: Any) -> str:
        """One request to the older API; the answer's text."""
        headers = self.headers(session)
        asked: Json = {"model": "stand-in", "messages": messages, "extra_headers": headers, **members}
        if not stream:
            return str(self.client.chat.completions.create(**asked).choices[0].message.content)
        with self.client.chat.completions.stream(**asked) as events:
            return str(events.get_final_completion().choices[0].message.content)

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
    base_url = f"{house.envoy.url}/v1"
    with OpenAI(base_url=base_url, api_key=f"demo-{user}", max_retries=0, http_client=http) as client:
        yield Caller(house, client)


def answers(house: House, user: str, count: int = 1, session: str = "%") -> list[str]:
    found = eventually(
        lambda: a if len(a := [answer for _, answer in house.semmem.turns(user, session) if answer]) >= count else None,
        within_s=60,
        what=f"{count} answers are journalled",
    )
    return cast(list[str], found)


def sessions(house: House, user: str) -> int:
    """How many sessions the user's turns are in."""

    with closing(sqlite3.connect(f"file:{house.semmem.data_dir / 'journal.db'}?mode=ro", uri=True)) as journal:
        (count,) = journal.execute("select count(distinct session) from turns where user_id = ?", (user,)).fetchone()
    return int(count)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_fact_told_in_one_conversation_comes_back_in_the_next(home: House, alice: str, stream: bool) -> None:
    with caller(home, alice) as client:
        told = client.ask(FACT, stream=stream, session="first")
        assert client.prompt == {"model": "stand-in", "input": FACT} | ({"stream": True} if stream else {})
        home.learnt(alice)
        asked = client.ask(QUESTION, stream=stream, session="second", instructions="Be brief.")

        assert told.output_text == THANKED
        assert "10,000" in asked.output_text
        assert client.prompt["instructions"] == "Be brief."
        assert "10,000" in client.prompt["input"]
        assert client.prompt["input"].startswith("<semmem-memory ")
        assert client.prompt["input"].endswith("\n\n" + QUESTION)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_what_was_told_by_chat_is_recalled_by_responses(home: House, alice: str, stream: bool) -> None:
    with caller(home, alice) as client:
        assert client.chat([{"role": "user", "content": FACT}], stream=stream, session="chat") == THANKED
        home.learnt(alice)

        asked = client.ask([{"role": "user", "content": QUESTION}], stream=stream)

        assert "10,000" in client.prompt["input"][0]["content"]
        assert "10,000" in asked.output_text


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_what_was_told_by_responses_is_recalled_by_chat(home: House, alice: str, stream: bool) -> None:
    with caller(home, alice) as client:
        client.ask([{"role": "user", "content": [{"type": "input_text", "text": FACT}]}], stream=stream)
        home.learnt(alice)

        assert "10,000" in client.chat([{"role": "user", "content": QUESTION}], stream=stream)
        assert "10,000" in client.prompt["messages"][0]["content"]


def test_another_user_gets_nothing(home: House, alice: str, bob: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=bob, path=PATH)

    assert (reply.status, reply.outcome) == (200, "no_hits")
    assert reply.prompt == ODD_BODY


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("store", [True, False], ids=["stored", "unstored"])
def test_the_answer_is_captured_and_reaches_the_client_byte_for_byte(
    home: House, alice: str, stream: bool, store: bool
) -> None:
    body = {"model": "stand-in", "input": "Thank you for the garden.", "stream": stream, "store": store}
    reply = home.send(json.dumps(body).encode(), user=alice, path=PATH)

    assert answers(home, alice) == [THANKED]
    assert reply.received is not None
    assert reply.body == reply.received.answer
    assert reply.headers["content-type"].startswith("text/event-stream" if stream else "application/json")


def test_the_body_changes_only_by_the_injection(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=alice, path=PATH)

    assert reply.outcome == "injected"
    before, own, after = ODD_BODY.partition(b"What")
    assert reply.prompt.startswith(before + b"<semmem-memory ")
    assert reply.prompt.endswith(b"\\n\\n" + own + after)
    assert b"10,000" in reply.prompt[len(before) : -len(own + after)]
    assert reply.received is not None
    assert reply.received.header("content-length") == str(len(reply.prompt))


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_chain_is_one_session_and_is_told_once_what_it_holds(home: House, alice: str, stream: bool) -> None:
    home.semmem.remember(alice, FACT)
    with caller(home, alice) as client:
        first = client.ask("We grow tomatoes on the balcony.", stream=stream)
        inputs = [client.prompt["input"]]
        answers(home, alice, 1)
        second = client.ask(QUESTION, stream=stream, previous_response_id=first.id)
        inputs.append(client.prompt["input"])
        answers(home, alice, 2)
        third = client.ask("What grows on the balcony?", stream=stream, previous_response_id=second.id)

        assert "instructions" not in client.prompt
        inputs.append(client.prompt["input"])
    assert [text.rpartition("\n\n")[2] for text in inputs] == [
        "We grow tomatoes on the balcony.", QUESTION, "What grows on the balcony?"
    ]  # fmt: skip
    assert sum("10,000" in text for text in inputs) == 1, "what the API hands on is not said twice"
    assert "10,000" in second.output_text
    assert "tomatoes" in third.output_text, "the model's own history of the chain is not disturbed"
    assert answers(home, alice, 3) == [THANKED, second.output_text, third.output_text]
    assert sessions(home, alice) == 1


def test_a_conversation_by_name_is_one_session(home: House, alice: str) -> None:
    with caller(home, alice) as client:
        client.ask("We grow tomatoes on the balcony.", conversation="conv_" + alice)
        asked = client.ask("What grows on the balcony?", conversation="conv_" + alice, stream=True)

    assert "tomatoes" in asked.output_text
    assert len(answers(home, alice, 2, session=f"conv_{alice}")) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("chained", [False, True], ids=["resent", "chained"])
def test_a_tools_round_trip_is_one_turn_and_teaches_only_what_the_user_said(
    home: House, alice: str, stream: bool, chained: bool
) -> None:
    home.semmem.remember(alice, FACT)
    asked = "I live in Ghent. Ask weather what is within my budget for the trip?"
    history: list[Any] = [{"role": "user", "content": asked}]
    with caller(home, alice) as client:
        seen = home.semmem.metric("llm_memory_turns_total", status="continues")
        called = client.ask(history, stream=stream, tools=[WEATHER])
        first = client.prompt
        (call,) = called.output
        assert call.type == "function_call"
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "I live in Rome. It rains."}
        if chained:
            eventually(
                lambda: home.semmem.metric("llm_memory_turns_total", status="continues") > seen,
                within_s=60,
                what="the call of the tool was observed",
            )
            answered = client.ask([output], stream=stream, tools=[WEATHER], previous_response_id=called.id)
        else:
            sent_back = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": "{}"}
            answered = client.ask([*history, sent_back, output], stream=stream, tools=[WEATHER])
        second = client.prompt

    assert "10,000" in first["input"][0]["content"]
    assert chained or second["input"][: len(first["input"])] == first["input"], "a loop keeps its block"
    assert "instructions" not in second
    assert second["input"][-1] == output
    assert answers(home, alice) == [answered.output_text]
    assert [text for text, _ in home.semmem.turns(alice)] == [asked]
    contents = {memory["content"] for memory in home.learnt(alice, 2)}
    assert any("Ghent" in content for content in contents)
    assert not any("Rome" in content for content in contents)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_tools_result_in_chat_is_no_new_question(home: House, alice: str, stream: bool) -> None:
    home.semmem.remember(alice, FACT)
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "The budget for the trip of Bob is $7."},
    ]
    function = {key: value for key, value in WEATHER.items() if key != "type"}
    with caller(home, alice) as client:
        said = client.chat(messages, stream=stream, tools=[{"type": "function", "function": function}])

        assert client.prompt["messages"] == messages
    assert "$7" in said
    assert answers(home, alice) == [said]


def test_a_tool_loop_in_chat_has_one_block_in_one_place_until_its_memory_is_forgotten(home: House, alice: str) -> None:
    memory = home.semmem.remember(alice, FACT)
    function = {"type": "function", "function": {key: value for key, value in WEATHER.items() if key != "type"}}
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    prompts: list[list[Json]] = []
    with caller(home, alice) as client:

        def ask() -> None:
            client.chat(messages, tools=[function])
            prompts.append(client.prompt["messages"])

        ask()
        for number in range(2):
            call = {"id": f"call_{number}", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "It rains."})
            ask()
        home.semmem.api("DELETE", f"/v1/memory/{memory['id']}", params={"user_id": alice})
        ask()

    first, second, third, after = prompts
    assert "10,000" in first[1]["content"]
    assert (second, third) == ([*first, *messages[2:4]], [*first, *messages[2:6]])
    assert after == messages


def test_semmems_own_members_never_reach_the_model(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    own = {"memory_config": {"enabled": False}, "memory_context": {"project_id": "p"}}

    with caller(home, alice) as client:
        client.ask("I live in Lisbon. " + QUESTION, extra_body=own)

        assert sorted(client.prompt) == ["input", "model"]
    assert home.semmem.turns(alice) == []


def test_a_body_that_is_no_request_passes_as_it_came(home: House, alice: str) -> None:
    body = b'{"input":[{"role":"user","content":7}]}'

    reply = home.send(body, user=alice, path=PATH)

    assert (reply.outcome, reply.prompt) == ("malformed", body)


def test_an_error_reaches_the_official_client_as_its_own(home: House, alice: str) -> None:
    with caller(home, alice) as client, pytest.raises(BadRequestError) as refused:
        client.ask("Hello there, my friend.", previous_response_id="resp_unknown")
    assert refused.value.code == "previous_response_not_found"


@pytest.mark.parametrize("path", [f"{PATH}/compact", f"{PATH}/input_tokens", f"{PATH}/resp_1/cancel"])
def test_the_apis_other_paths_open_no_stream(home: House, alice: str, path: str) -> None:
    reply = home.send(ODD_BODY, user=alice, path=path)

    assert (reply.status, reply.outcome) == (200, None)
    assert reply.prompt == ODD_BODY
