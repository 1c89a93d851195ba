"""The OpenAI-compatible model over real HTTP to a scripted server."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from semmem.backends.models import openai
from semmem.backends.models.openai import NAMES_MAX, OpenAIModel
from semmem.memory import Controls, Message, Role
from semmem.ports.errors import ModelRefused, ModelUnavailable
from semmem.request.head import RequestHead
from semmem.request.permission import NOTHING, PermissionRules, permission
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

SECRET_WORDS = "my dog is called Quillfeather"
ASK = (Message(Role.SYSTEM, "Answer briefly."), Message(Role.USER, SECRET_WORDS))
SCHEMA: dict[str, object] = {"type": "object", "properties": {"facts": {"type": "array"}}}

Model = Callable[..., OpenAIModel]


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    """Makes models that do not wait long, and closes them."""
    async with AsyncExitStack() as stack:

        def make(server: ScriptedLLM | str, **settings: Any) -> OpenAIModel:
            url = server if isinstance(server, str) else server.base_url
            made = OpenAIModel(url, "tiny", **{"backoff_s": 0.001, **settings})
            stack.push_async_callback(made.close)
            return made

        yield make


async def ask(model: OpenAIModel, *, timeout_s: float = 5.0, schema: dict[str, object] | None = None) -> str:
    return await model.complete(ASK, timeout_s=timeout_s, json_schema=schema)


async def test_it_sends_a_chat_completion_and_gives_back_the_text(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        assert await ask(model(llm, api_key="k-1", max_tokens=77, temperature=0.25)) == "hello"
    assert llm.paths == ["/v1/chat/completions"]
    assert llm.headers[0]["authorization"] == "Bearer k-1"
    assert llm.requests == [
        {
            "model": "tiny",
            "max_tokens": 77,
            "temperature": 0.25,
            "messages": [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": SECRET_WORDS}],
        }
    ]


async def test_every_call_says_that_it_is_no_turn_of_anybodys(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        made = model(llm)
        await ask(made)
        await ask(made.named("large"))
    for headers in llm.headers:
        head = RequestHead("POST", "/v1/chat/completions", {name: (value,) for name, value in headers.items()})
        assert permission(PermissionRules(), head, Controls()) == NOTHING


async def test_a_model_of_another_name_is_asked_in_the_same_way(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        small = model(llm, api_key="k-1", max_tokens=77)
        assert await ask(small.named("large")) == await ask(small) == "hello"
    assert [request.pop("model") for request in llm.requests] == ["large", "tiny"]
    assert llm.requests[0] == llm.requests[1]
    assert [headers["authorization"] for headers in llm.headers] == ["Bearer k-1"] * 2


async def test_how_one_name_fails_is_no_matter_of_the_others(model: Model) -> None:
    def large_is_broken(body: Body) -> Reply:
        refused = body["model"] == "large" and "response_format" in body
        return Reply(status=400) if refused else Reply(status=503 if body["model"] == "gone" else 200, text="[]")

    async with ScriptedLLM(large_is_broken) as llm:
        small = model(llm, retries=0, breaker_failures=1)
        assert await ask(small.named("large"), schema=SCHEMA) == "[]"
        with pytest.raises(ModelUnavailable, match="503"):
            await ask(small.named("gone"))
        with pytest.raises(ModelUnavailable, match="circuit open"):
            await ask(small.named("gone"))
        assert await ask(small, schema=SCHEMA) == "[]"
    assert llm.formats == ["json_schema", "json_object", "json_object", "none", "none", "json_schema"]


def reasoning(body: Body) -> Reply:
    """A model that takes the newer name only, and no temperature but its own."""
    if "max_tokens" in body:
        return Reply(
            status=400, raw=b"{\"error\": \"'max_tokens' is unsupported. Use 'max_completion_tokens' instead.\"}"
        )
    return Reply(status=400) if "temperature" in body or "max_completion_tokens" not in body else Reply("thought")


def strict_about_temperature(body: Body) -> Reply:
    if "temperature" in body:
        return Reply(status=400, raw=b'{"error": {"message": "temperature does not support 0.1 with this model"}}')
    return Reply("fixed" if "max_tokens" in body else "")


@pytest.mark.parametrize(("server", "answer"), [(reasoning, "thought"), (strict_about_temperature, "fixed")])
async def test_a_model_that_refuses_an_option_is_asked_without_it_from_then_on(
    model: Model, server: Callable[[Body], Reply], answer: str
) -> None:
    async with ScriptedLLM(server) as llm:
        made = model(llm, retries=0)
        for _ in range(2):
            assert await ask(made, schema=SCHEMA) == answer
        assert len(llm.requests) == 3
        assert llm.formats == ["json_schema"] * 3
        assert await ask(made.named("another"), schema=SCHEMA) == answer


def reasoning_without_schemas(body: Body) -> Reply:
    refused = Reply(status=400, raw=b"no such response_format")
    return refused if "response_format" in body and "max_tokens" not in body else reasoning(body)


async def test_a_model_that_refuses_an_option_and_then_a_json_mode_answers_the_same_call(model: Model) -> None:
    async with ScriptedLLM(reasoning_without_schemas) as llm:
        assert await ask(model(llm, retries=0), schema=SCHEMA) == "thought"


async def test_calls_that_were_under_way_when_an_option_was_first_refused_are_answered_as_well(model: Model) -> None:
    async with ScriptedLLM(reasoning) as llm:
        made = model(llm, retries=0)
        assert await asyncio.gather(*(ask(made) for _ in range(4))) == ["thought"] * 4


async def test_a_model_that_complains_whatever_it_is_sent_is_refused(model: Model) -> None:
    async with ScriptedLLM(Reply(status=400, raw=b'"temperature, max_completion_tokens"')) as llm:
        with pytest.raises(ModelRefused, match="400"):
            await ask(model(llm))
        assert len(llm.requests) == 2


async def test_names_beyond_the_limit_are_forgotten_and_not_refused(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        small = model(llm)
        first = small.named("model-0")
        assert first is small.named("model-0")
        for number in range(NAMES_MAX + 1):
            small.named(f"model-{number}")
        assert first is not small.named("model-0")
        assert await ask(first) == "hello"


async def test_no_key_and_no_temperature_are_not_sent(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        await ask(model(llm, temperature=None))
    assert "authorization" not in llm.headers[0]
    assert "temperature" not in llm.requests[0]
    assert llm.requests[0]["max_tokens"] == 500


async def test_a_base_url_without_a_path_means_v1(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        await ask(model(llm.base_url.removesuffix("/v1")))
        await ask(model(llm.base_url + "/"))
        await ask(model(llm.base_url.removesuffix("/v1") + "/openai/v3"))
    assert llm.paths == ["/v1/chat/completions", "/v1/chat/completions", "/openai/v3/chat/completions"]


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://h/v1", "http://", "http://h/v1?key=1", "http://[::1/v1"])
def test_a_base_url_that_is_not_one_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAIModel(url, "tiny")


async def test_text_that_is_not_unicode_is_sent_with_a_replacement(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        await model(llm).complete([Message(Role.USER, "half \ud83d pair")], timeout_s=5)
    assert llm.requests[0]["messages"][0]["content"] == "half ? pair"


# --- JSON modes ------------------------------------------------------------------------------------------------------


async def test_a_schema_is_sent_as_a_strict_json_schema(model: Model) -> None:
    async with ScriptedLLM("{}") as llm:
        await ask(model(llm), schema=SCHEMA)
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    assert llm.requests[0]["response_format"] == wanted


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_server_that_refuses_json_schema_gets_json_object_and_is_remembered(model: Model, status: int) -> None:
    refusal = Reply(status=status, raw=b"{\"error\": \"Input should be 'text' or 'json_object'\"}")
    async with ScriptedLLM("{}", refuses=frozenset({"json_schema"}), refusal=refusal) as llm:
        tiny = model(llm)
        assert await ask(tiny, schema=SCHEMA) == "{}"
        assert await ask(tiny, schema=SCHEMA) == "{}"
    assert llm.formats == ["json_schema", "json_object", "json_object"]
    assert llm.requests[1]["response_format"] == {"type": "json_object", "schema": SCHEMA}


async def test_a_server_that_takes_no_json_mode_is_asked_without(model: Model) -> None:
    async with ScriptedLLM("{}", refuses=frozenset({"json_schema", "json_object"})) as llm:
        tiny = model(llm)
        await ask(tiny, schema=SCHEMA)
        await ask(tiny, schema=SCHEMA)
    assert llm.formats == ["json_schema", "json_object", "json_object", "none", "none"]


async def test_json_object_is_tried_without_a_schema_too(model: Model) -> None:
    def picky(body: dict[str, Any]) -> Reply:
        return Reply(status=400) if "schema" in str(body["response_format"]) else Reply("{}")

    async with ScriptedLLM(picky) as llm:
        assert await ask(model(llm), schema=SCHEMA) == "{}"
    assert llm.requests[-1]["response_format"] == {"type": "json_object"}


async def test_a_mode_that_once_worked_is_not_given_up_for_an_unrelated_error(model: Model) -> None:
    async with ScriptedLLM("{}", Reply(status=400, raw=b"context length exceeded"), "{}") as llm:
        tiny = model(llm)
        await ask(tiny, schema=SCHEMA)
        with pytest.raises(ModelRefused, match="status 400"):
            await ask(tiny, schema=SCHEMA)
        await ask(tiny, schema=SCHEMA)
    assert llm.formats == ["json_schema"] * 3


async def test_overload_is_no_refusal_of_a_json_mode(model: Model) -> None:
    async with ScriptedLLM(Reply(status=503), Reply(status=429), "{}") as llm:
        assert await ask(model(llm), schema=SCHEMA) == "{}"
    assert llm.formats == ["json_schema"] * 3


async def test_when_every_mode_fails_the_last_failure_counts(model: Model) -> None:
    async with ScriptedLLM(Reply(status=400)) as llm:
        with pytest.raises(ModelRefused, match="status 400"):
            await ask(model(llm), schema=SCHEMA)
    assert llm.formats == ["json_schema", "json_object", "json_object", "none"]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_a_passing_failure_is_tried_again(model: Model, status: int) -> None:
    async with ScriptedLLM(Reply(status=status), Reply(status=status), "at last") as llm:
        assert await ask(model(llm)) == "at last"
    assert len(llm.requests) == 3


async def test_a_failure_that_stays_is_unavailable_after_all_retries(model: Model) -> None:
    async with ScriptedLLM(Reply(status=503, raw=SECRET_WORDS.encode())) as llm:
        with pytest.raises(ModelUnavailable, match=r"^status 503$"):
            await ask(model(llm, retries=1))
    assert len(llm.requests) == 2


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404, 413])
async def test_what_another_try_cannot_help_is_refused_at_once(model: Model, status: int) -> None:
    async with ScriptedLLM(Reply(status=status, headers={"location": "/elsewhere"}, raw=SECRET_WORDS.encode())) as llm:
        with pytest.raises(ModelRefused, match=rf"^status {status}$"):
            await ask(model(llm))
    assert llm.paths == ["/v1/chat/completions"]


async def test_a_connection_that_breaks_is_tried_again(model: Model) -> None:
    async with ScriptedLLM(Reply("lost", drop=True), "at last") as llm:
        assert await ask(model(llm)) == "at last"


async def test_a_server_that_is_not_there_is_unavailable(model: Model) -> None:
    async with ScriptedLLM() as llm:
        gone = llm.base_url
    with pytest.raises(ModelUnavailable, match="connection failed: ConnectError"):
        await ask(model(gone))


async def test_a_server_that_hangs_costs_no_more_than_the_timeout(model: Model) -> None:
    async with ScriptedLLM(Reply(hang=True)) as llm:
        with pytest.raises(ModelUnavailable, match="deadline"):  # the server would never answer
            await ask(model(llm), timeout_s=0.2)


async def test_retries_do_not_outlast_the_timeout(model: Model) -> None:
    async with ScriptedLLM(Reply(status=503, slow_s=0.1)) as llm:
        with pytest.raises(ModelUnavailable):
            await ask(model(llm, retries=1000, breaker_failures=1000), timeout_s=1.5)
    assert 1 <= len(llm.requests) <= 15  # of a thousand


async def test_retry_after_is_honoured(model: Model) -> None:
    async with ScriptedLLM(Reply(status=429, headers={"retry-after": "0.3"}), "later") as llm:
        started = time.monotonic()
        assert await ask(model(llm)) == "later"
        assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("says", ["seconds", "date"])
async def test_a_retry_after_beyond_the_deadline_is_given_up_at_once(model: Model, says: str) -> None:
    when = "60" if says == "seconds" else email.utils.formatdate(time.time() + 600, usegmt=True)
    async with ScriptedLLM(Reply(status=429, headers={"retry-after": when})) as llm:
        with pytest.raises(ModelUnavailable, match="status 429"):  # who waited would be told of the deadline
            await ask(model(llm), timeout_s=20)
    assert len(llm.requests) == 1


@pytest.mark.parametrize("nonsense", ["soon", "nan", "-5", "Thu, 99 Foo 2026"])
async def test_a_nonsense_retry_after_does_no_harm(model: Model, nonsense: str) -> None:
    async with ScriptedLLM(Reply(status=429, headers={"retry-after": nonsense}), "later") as llm:
        assert await ask(model(llm)) == "later"


async def test_an_oversize_answer_is_cut_off_while_it_comes_in(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "ANSWER_BYTES_MAX", 1000)
    async with ScriptedLLM(Reply("x" * 200_000)) as llm:
        with pytest.raises(ModelRefused, match="more than 1000 bytes"):
            await ask(model(llm))


async def test_a_compressed_answer_that_nobody_asked_for_is_not_unpacked(model: Model) -> None:
    bomb = gzip.compress(b" " * 1_000_000)
    async with ScriptedLLM(Reply(raw=bomb, headers={"content-encoding": "gzip"})) as llm:
        with pytest.raises(ModelRefused, match="compressed"):
            await ask(model(llm))
    assert llm.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>busy</html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": null}]}', b"[" * 100_000],
)
async def test_an_answer_that_is_not_a_chat_completion_is_refused(model: Model, raw: bytes) -> None:
    async with ScriptedLLM(Reply(raw=raw)) as llm:
        with pytest.raises(ModelRefused, match="not a chat completion"):
            await ask(model(llm))


@pytest.mark.parametrize("content", [b"null", b'""', b'"  "', b"7"])
async def test_an_answer_without_text_is_refused(model: Model, content: bytes) -> None:
    async with ScriptedLLM(Reply(raw=b'{"choices": [{"message": {"content": ' + content + b"}}]}")) as llm:
        with pytest.raises(ModelRefused, match="no text"):
            await ask(model(llm))


async def test_an_open_circuit_sends_nothing_and_closes_when_the_server_is_back(model: Model) -> None:
    now = [0.0]
    async with ScriptedLLM(Reply(status=503), Reply(status=503), "back") as llm:
        tiny = model(llm, retries=0, breaker_failures=2, breaker_open_s=30.0, clock=lambda: now[0])
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="status 503"):
                await ask(tiny)
        with pytest.raises(ModelUnavailable, match="circuit open"):
            await ask(tiny)
        assert len(llm.requests) == 2
        now[0] = 31.0
        assert await ask(tiny) == "back"


async def test_hanging_servers_open_the_circuit_too(model: Model) -> None:
    async with ScriptedLLM(Reply(hang=True)) as llm:
        tiny = model(llm, breaker_failures=1)
        with pytest.raises(ModelUnavailable, match="deadline"):
            await ask(tiny, timeout_s=0.1)
        with pytest.raises(ModelUnavailable, match="circuit open"):
            await ask(tiny, timeout_s=0.1)


async def test_no_more_connections_than_allowed_are_open_at_a_time(model: Model) -> None:
    busy, busiest = 0, 0

    async with ScriptedLLM(Reply("done", slow_s=0.02)) as llm:
        tiny = model(llm, connections_max=2)
        serve = llm._exchange

        async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            nonlocal busy, busiest
            busy, busiest = busy + 1, max(busiest, busy + 1)
            try:
                return await serve(reader, writer)
            finally:
                busy -= 1

        llm._exchange = counted  # type: ignore[method-assign]
        answers = await asyncio.gather(*(ask(tiny) for _ in range(8)))
    assert answers == ["done"] * 8
    assert busiest == 2


async def test_a_closed_model_is_unavailable_and_closes_twice(model: Model) -> None:
    async with ScriptedLLM("hello") as llm:
        tiny = model(llm)
        await tiny.close()
        await tiny.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            await ask(tiny)


async def test_a_call_that_its_caller_cancels_stays_cancelled(model: Model) -> None:
    async with ScriptedLLM(Reply(hang=True)) as llm:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(model(llm), timeout_s=30), 0.1)
