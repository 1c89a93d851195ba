"""Model servers whose chat templates refuse: what they accept without semmem they accept with it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from tests.core.dialects.template_rules import FAMILIES, chat_messages
from tests.support.harness import House, StandInModel, house, stand_in_model

Json = dict[str, Any]
FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
MODELS = {"A": "one-system", "B": "alternating", "C": "no-system"}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


class StrictModel(StandInModel):
    """The stand-in behind the template that the request's model has: 400 for what that refuses."""

    def app(self) -> Starlette:
        lenient = super().app()

        async def strict(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] not in PATHS.values():
                await lenient(scope, receive, send)
                return
            body = await _whole(receive)
            asked = json.loads(body)
            family = next((family for family, model in MODELS.items() if model == asked["model"]), None)
            if family is not None and not FAMILIES[family](chat_messages(scope["path"], asked)):
                await JSONResponse({"error": {"message": "refused by the chat template"}}, 400)(scope, receive, send)
                return

            whole = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def again() -> Message:
                return next(whole, None) or await receive()

            await lenient(scope, again, send)

        return Starlette(routes=[Mount("/", app=strict)])


async def _whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


@pytest.fixture(scope="module")
def strict_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    config = {"memory": {"injection": {"user_role_models": [MODELS["C"]]}}}
    with (
        stand_in_model(StrictModel) as model,
        house(tmp_path_factory.mktemp("strict"), model, config) as running,
    ):
        yield running


SYSTEM: Json = {"role": "system", "content": "Be brief."}
TALK: list[Json] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there"}]
ASKED = {"role": "user", "content": QUESTION}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def bodies(api: str, family: str) -> list[Json]:
    """A conversation with an application's own instructions where there may be some, and without; then its loop."""
    loop: list[Json]
    plain: Json = {}
    given: list[Json]
    match api:
        case "chat":
            loop = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
            loop += [{"role": "tool", "tool_call_id": "c", "content": "42"}]
            parts = [{"type": "text", "text": "Be brief."}]
            ways: list[list[Json]] = [[], [SYSTEM], [{"role": "developer", "content": parts}]]
            given = [{"messages": [*own, *TALK, ASKED]} for own in ways]
            looped = [{"messages": [*body["messages"], *loop]} for body in given]
        case "responses":
            loop = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]
            loop += [{"type": "function_call_output", "call_id": "c", "output": "42"}]
            given = [{"input": [*TALK, ASKED]}, {"instructions": "Be brief.", "input": [*TALK, ASKED]}]
            given += [{"input": [SYSTEM, *TALK, ASKED]}]
            looped = [{**body, "input": [*body["input"], *loop]} for body in given]
        case _:
            loop = [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}]
            loop += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "42"}]}]
            plain = {"max_tokens": 64}
            given = [{"messages": [*TALK, ASKED]}, {"system": "Be brief.", "messages": [*TALK, ASKED]}]
            given += [{"system": [{"type": "text", "text": "Be brief."}], "messages": [*TALK, ASKED]}]
            looped = [{**body, "messages": [*body["messages"], *loop]} for body in given]
    count = 1 if family == "C" else len(given)  # the first has no instructions
    pairs = zip(given[:count], looped[:count], strict=True)
    return [{"model": MODELS[family], **plain, **body} for pair in pairs for body in pair]


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("api", PATHS)
def test_what_a_strict_server_accepts_without_memory_it_accepts_with_it(
    strict_house: House, api: str, family: str, stream: bool
) -> None:
    user = f"strict-{secrets.token_hex(6)}"
    strict_house.semmem.remember(user, FACT)
    outcomes = []
    for body in bodies(api, family):
        sent = json.dumps({**body, "stream": stream}).encode()
        off = strict_house.send(sent, user=user, path=PATHS[api], headers={"x-semmem-memory": "off"})
        assert (off.status, off.outcome) == (200, "opted_out")
        reply = strict_house.send(sent, user=user, path=PATHS[api])
        assert reply.status == 200
        assert reply.prompt.count(b"<semmem-memory ") == 1
        outcomes.append(reply.outcome)
    assert set(outcomes) == {"injected", "repeated"}


def test_the_server_of_this_test_is_as_strict_as_it_says(strict_house: House) -> None:
    refused = {
        "A": [SYSTEM, SYSTEM, ASKED],
        "B": [ASKED, ASKED],
        "C": [SYSTEM, ASKED],
    }
    for family, messages in refused.items():
        answer = httpx.post(
            strict_house.model.url + PATHS["chat"],
            json={"model": MODELS[family], "messages": messages},
            trust_env=False,
        )
        assert answer.status_code == 400
