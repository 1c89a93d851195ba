"""Through a real Envoy: chains of responses, and conversations, before a model that refuses to hear of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from demo.model_responses import ResponsesEndpoint
from semmem.retrieval.context import strip_block
from tests.e2e.test_responses import PATH, WEATHER, caller
from tests.support.harness import House, Json, StandInModel, eventually, house, stand_in_model

FACT = "We grow tomatoes on the balcony."
CONVERSATIONS = {"enabled": True, "chains": True, "chain_ms": 5000}
RULES = {"memory": {"backend": "in_process"}, "conversations": CONVERSATIONS}


class KeepsNothing(StandInModel):
    """A model whose Responses API has no state."""

    def app(self) -> Any:
        app = super().app()
        endpoint = ResponsesEndpoint(self)
        endpoint._remember = lambda *_: None  # type: ignore[method-assign]

        async def answer(request: Request) -> Response:
            if "conversation" in json.loads(await request.body()):
                await self.keep(request)
                return JSONResponse({"error": {"code": "unknown_parameter", "message": "conversation"}}, 400)
            return await endpoint.answer(request)

        app.router.routes = [route for route in app.router.routes if getattr(route, "path", "") != PATH]
        app.add_route(PATH, answer, methods=["POST"])
        app.router.routes.insert(0, app.router.routes.pop())
        return app


@pytest.fixture(scope="module")
def chaining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        stand_in_model(KeepsNothing) as model,
        house(tmp_path_factory.mktemp("chains"), model, RULES) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Before a model that keeps chains and conversations itself."""
    with stand_in_model() as model, house(tmp_path_factory.mktemp("keeping"), model, RULES) as running:
        yield running


def test_a_chain_over_json_sse_and_a_tool_reaches_a_model_that_keeps_nothing(
    chaining: House, alice: str, bob: str
) -> None:
    asked = "What does the weather tool say of the balcony?"
    with caller(chaining, alice) as client:
        first = client.ask(FACT, stream=True)
        called = client.ask(asked, tools=[WEATHER], previous_response_id=first.id)
        (call,) = called.output
        assert call.type == "function_call"
        told = client.prompt
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
        answered = client.ask([output], stream=True, tools=[WEATHER], previous_response_id=called.id)
        last = client.prompt

    history = [
        {"type": "message", "role": "user", "content": FACT},
        {"type": "message", "role": "assistant", "content": first.output_text},
        {"type": "message", "role": "user", "content": asked},
    ]
    assert as_said(told["input"]) == history
    repeated: Json = {"type": "function_call", "call_id": call.call_id, "name": "weather", "arguments": "{}"}
    assert last["input"] == [*told["input"], repeated, output], "a loop keeps its block"
    assert "previous_response_id" not in last
    assert answered.output_text
    assert {"model", "stream", "tools", "input"} == last.keys() - {"instructions"}
    assert [text for text, _ in chaining.semmem.turns(alice)] == [FACT, asked]
    assert chaining.semmem.metric("semmem_chained_requests_total", result="added") == 2

    with caller(chaining, bob) as stranger, pytest.raises(BadRequestError):
        stranger.ask("And mine?", previous_response_id=answered.id)
    assert json.dumps(stranger.prompt).count("balcony") == 0
    eventually(
        lambda: chaining.semmem.metric("semmem_chained_requests_total", result="unknown") == 1,
        within_s=60,
        what="the stranger's request is counted",
    )


def as_said(items: list[Json]) -> list[Json]:
    """Without memories, which may have come beside the user's words."""
    return [item | {"content": strip_block(item["content"])} for item in items]


def begun(house: House, user: str) -> str:
    """A conversation that the API makes."""
    return str(house.semmem.api("POST", "/v1/conversations", json={"user_id": user})["id"])


def test_a_conversation_over_json_sse_and_a_tool_is_kept_for_a_model_that_keeps_nothing(
    chaining: House, alice: str, bob: str
) -> None:
    name = begun(chaining, alice)
    asked = "What does the weather tool say of the balcony?"
    with caller(chaining, alice) as client:
        first = client.ask(FACT, stream=True, conversation=name)
        assert "conversation" not in client.prompt
        called = client.ask(asked, tools=[WEATHER], conversation={"id": name})
        (call,) = called.output
        assert call.type == "function_call"
        told = client.prompt
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
        answered = client.ask([output], stream=True, tools=[WEATHER], conversation=name)
        last = client.prompt

    history = [
        {"type": "message", "role": "user", "content": FACT},
        {"type": "message", "role": "assistant", "content": first.output_text},
        {"type": "message", "role": "user", "content": asked},
    ]
    assert as_said(told["input"]) == history
    repeated: Json = {"type": "function_call", "call_id": call.call_id, "name": "weather", "arguments": "{}"}
    assert last["input"] == [*told["input"], repeated, output], "a loop keeps its block"
    assert {"model", "stream", "tools", "input"} == last.keys() - {"instructions"}
    assert answered.output_text
    assert [text for text, _ in chaining.semmem.turns(alice)] == [FACT, asked]

    def recorded() -> list[str]:
        path = f"/v1/conversations/{name}"
        found = chaining.semmem.api("GET", path, params={"user_id": alice})["messages"]
        return [each["content"] for each in found]

    eventually(
        lambda: len(recorded()) == 6, within_s=60, what="all of it is recorded in the conversation that it named"
    )
    assert recorded()[0] == FACT

    with caller(chaining, bob) as stranger, pytest.raises(BadRequestError):
        stranger.ask("And mine?", conversation=name)
    assert json.dumps(stranger.prompt).count("balcony") == 0


def test_a_client_that_hangs_up_in_the_middle_of_an_answer_goes_on_without_it(chaining: House, alice: str) -> None:
    """Envoy says so when ``deferred_close_timeout`` is over."""
    name = begun(chaining, alice)
    with caller(chaining, alice) as client:
        first = client.ask(FACT, conversation=name)
        chaining.model.scripted.append("Slowly, word by word. " * 500)
        events = client.client.responses.create(
            model="stand-in", input="Tell me all of it", conversation=name, stream=True, extra_headers=client.headers()
        )
        for _, _event in zip(range(20), events, strict=False):
            pass
        events.close()

        def goes_on() -> bool:
            try:
                client.ask("In short?", conversation=name)
            except BadRequestError:
                return False
            return True

        eventually(goes_on, within_s=60, what="the conversation goes on")
    assert client.prompt["input"] == [
        {"type": "message", "role": "user", "content": FACT},
        {"type": "message", "role": "assistant", "content": first.output_text},
        {"type": "message", "role": "user", "content": "In short?"},
    ]


def test_a_conversation_that_the_model_keeps_is_left_to_it(keeping: House, alice: str) -> None:
    with caller(keeping, alice) as client:
        for words in (FACT, "What do we grow?", "Where?"):
            client.ask(words, conversation="conv_of_the_model")
            assert client.prompt == {"model": "stand-in", "input": words, "conversation": "conv_of_the_model"} | {
                key: value for key, value in client.prompt.items() if key == "instructions"
            }
    assert keeping.semmem.metric("semmem_chained_requests_total", result="unknown") == 3
