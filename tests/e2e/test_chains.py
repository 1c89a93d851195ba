"""Through a real Envoy: a chain of responses before a model that refuses to hear of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError
from starlette.requests import Request
from starlette.responses import Response

from demo.model_responses import ResponsesEndpoint
from tests.e2e.test_responses import PATH, WEATHER, caller
from tests.support.harness import House, Json, StandInModel, eventually, house, stand_in_model

FACT = "We grow tomatoes on the balcony."


class KeepsNothing(StandInModel):
    """A model whose Responses API has no state."""

    def app(self) -> Any:
        app = super().app()
        endpoint = ResponsesEndpoint(self)
        endpoint._remember = lambda *_: None  # type: ignore[method-assign]

        async def answer(request: Request) -> Response:
            return await endpoint.answer(request)

        app.router.routes = [route for route in app.router.routes if getattr(route, "path", "") != PATH]
        app.add_route(PATH, answer, methods=["POST"])
        app.router.routes.insert(0, app.router.routes.pop())
        return app


@pytest.fixture(scope="module")
def chaining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    rules = {"memory": {"backend": "in_process"}, "conversations": {"enabled": True, "chains": True, "chain_ms": 5000}}
    with (
        stand_in_model(KeepsNothing) as model,
        house(tmp_path_factory.mktemp("chains"), model, rules) as running,
    ):
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
    assert told["input"] == history
    repeated: Json = {"type": "function_call", "call_id": call.call_id, "name": "weather", "arguments": "{}"}
    assert last["input"] == [*history, repeated, output]
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
        within_s=5,
        what="the stranger's request is counted",
    )
