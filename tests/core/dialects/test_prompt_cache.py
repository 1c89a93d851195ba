"""How much of a prompt was cached, as the answers of each API say it, whole or streamed, and what is not believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from semmem.dialects import BY_NAME
from semmem.memory import Answer, PromptCache

JSON, SSE = "application/json", "text/event-stream"


def read(dialect: str, content_type: str, body: bytes) -> Answer:
    reader = BY_NAME[dialect].reader(content_type=content_type, answer_bytes_max=1000, body_bytes_max=50_000)
    assert reader is not None
    reader.feed(body)
    return reader.end()


def events(*data: Any) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(each) + b"\n\n" for each in data)


def chat_json(usage: Any) -> Answer:
    choice = {"message": {"content": "Hi"}, "finish_reason": "stop"}
    return read("chat", JSON, msgspec.json.encode({"choices": [choice], "usage": usage}))


def chat_stream(usage: Any) -> Answer:
    """With ``stream_options.include_usage`` the counts come last, and every chunk before says null."""
    words = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}], "usage": None}
    return read("chat", SSE, events(words, {"choices": [], "usage": usage}) + b"data: [DONE]\n\n")


def messages_json(usage: Any) -> Answer:
    content = [{"type": "text", "text": "Hi"}]
    message = {"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}
    return read("messages", JSON, msgspec.json.encode(message))


WORDS = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}


def messages_start(usage: Any) -> Answer:
    """As the API streams: the prompt's counts at the beginning, and later only what was answered."""
    start = {"type": "message_start", "message": {"content": [], "usage": usage}}
    return read("messages", SSE, events(start, WORDS, STOPPED | {"usage": {"output_tokens": 5}}))


def messages_delta(usage: Any) -> Answer:
    """As gateways stream that know the counts only in the end."""
    start = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 0}}}
    return read("messages", SSE, events(start, WORDS, STOPPED | {"usage": usage}))


def response(usage: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "Hi"}]
    output = [{"type": "message", "role": "assistant", "content": content}]
    return {"id": "r", "status": "completed", "output": output, "usage": usage}


def responses_json(usage: Any) -> Answer:
    return read("responses", JSON, msgspec.json.encode(response(usage)))


def responses_stream(usage: Any) -> Answer:
    return read("responses", SSE, events({"type": "response.completed", "response": response(usage)}))


def chat(prompt: Any, cached: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}}


def messages(prompt: Any, cached: Any) -> dict[str, Any]:
    """``prompt`` is the whole prompt, of which 7 tokens are written to the cache where there are so many."""
    usage = {"input_tokens": prompt, "output_tokens": 5, "cache_read_input_tokens": cached}
    if type(cached) is int and prompt - cached >= 7:
        usage |= {"input_tokens": prompt - cached - 7, "cache_creation_input_tokens": 7}
    return usage


def responses(prompt: Any, cached: Any) -> dict[str, Any]:
    return {"input_tokens": prompt, "output_tokens": 5, "input_tokens_details": {"cached_tokens": cached}}


APIS: dict[str, tuple[Callable[[Any, Any], dict[str, Any]], Callable[[Any], Answer]]] = {
    "chat, JSON": (chat, chat_json),
    "chat, stream": (chat, chat_stream),
    "messages, JSON": (messages, messages_json),
    "messages, stream": (messages, messages_start),
    "messages, counts at the end of a stream": (messages, messages_delta),
    "responses, JSON": (responses, responses_json),
    "responses, stream": (responses, responses_stream),
}
EACH = pytest.mark.parametrize("api", APIS)


@EACH
@pytest.mark.parametrize("cached", [0, 80, 93])
def test_the_cached_tokens_are_read_and_the_whole_prompt(api: str, cached: int) -> None:
    usage, told = APIS[api]
    answer = told(usage(100, cached))
    assert answer.prompt_cache == PromptCache(100, cached)
    assert (answer.text, answer.complete, answer.output_tokens) == ("Hi", True, 5)


@EACH
@pytest.mark.parametrize(
    "cached",
    [None, -1, "80", True, 80.5, 10**10, 10**30, [80], {"tokens": 80}, "x" * 5_000],
    ids=["null", "negative", "text", "bool", "broken", "huge", "enormous", "list", "object", "long"],
)
def test_what_is_no_count_is_not_reported_and_costs_no_answer(api: str, cached: Any) -> None:
    usage, told = APIS[api]
    answer = told(msgspec.Raw(msgspec.json.encode(usage(100, None)).replace(b"null", _json(cached))))
    assert answer.prompt_cache is None
    assert (answer.text, answer.complete, answer.input_tokens, answer.output_tokens) == ("Hi", True, 100, 5)


def _json(value: Any) -> bytes:
    return str(value).encode() if type(value) is int else msgspec.json.encode(value)


@EACH
@pytest.mark.parametrize("members", [{}, {"prompt_tokens_details": None, "input_tokens_details": None}])
def test_a_provider_that_says_nothing_of_its_cache_has_reported_nothing(api: str, members: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 100, "input_tokens": 100, **members}
    assert APIS[api][1](usage).prompt_cache is None


@EACH
def test_cached_tokens_without_the_prompts_are_not_reported(api: str) -> None:
    usage, told = APIS[api]
    given = {name: value for name, value in usage(100, 80).items() if name not in ("prompt_tokens", "input_tokens")}
    if told is not messages_delta:  # its beginning has counted
        assert told(given).prompt_cache is None


@pytest.mark.parametrize("api", [name for name in APIS if not name.startswith("messages")])
@pytest.mark.parametrize("cached", [101, 10**9])
def test_more_cached_tokens_than_the_prompt_has_are_not_reported(api: str, cached: int) -> None:
    usage, told = APIS[api]
    answer = told(usage(100, cached))
    assert (answer.prompt_cache, answer.complete) == (None, True)


@EACH
@pytest.mark.parametrize("prompt", [-100, 10**10])
def test_a_prompt_of_no_possible_length_is_not_reported(api: str, prompt: int) -> None:
    usage, told = APIS[api]
    assert told(usage(100, 0) | {"prompt_tokens": prompt, "input_tokens": prompt}).prompt_cache is None


@pytest.mark.parametrize("details", ["many", 80, [80], {"audio_tokens": 0}, {"cached_tokens": {"a": ["b"] * 9}}])
def test_details_of_another_shape_are_not_reported(details: Any) -> None:
    for told in (chat_json, chat_stream, responses_json, responses_stream):
        usage = {"prompt_tokens": 100, "input_tokens": 100, "output_tokens": 5, "completion_tokens": 5}
        answer = told(usage | {"prompt_tokens_details": details, "input_tokens_details": details})
        assert (answer.prompt_cache, answer.text, answer.input_tokens) == (None, "Hi", 100)


@pytest.mark.parametrize("written", [-1, "7", True, 10**10])
def test_a_prompt_part_of_which_is_not_counted_is_not_reported(written: Any) -> None:
    usage = {"input_tokens": 13, "cache_read_input_tokens": 80, "cache_creation_input_tokens": written}
    assert messages_json(usage).prompt_cache is messages_start(usage).prompt_cache is None
    assert messages_json(usage | {"input_tokens": -1, "cache_creation_input_tokens": 7}).prompt_cache is None


def test_the_whole_prompt_counts_what_was_written_to_the_cache_and_that_is_not_cached() -> None:
    usage = {"input_tokens": 13, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 7}
    answer = messages_json(usage)
    assert (answer.prompt_cache, answer.input_tokens) == (PromptCache(100, 80), 13)


def test_of_the_counts_of_a_stream_the_last_of_each_holds() -> None:
    start = {"input_tokens": 13, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 87}
    later = STOPPED | {"usage": {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 5}}
    body = events({"type": "message_start", "message": {"content": [], "usage": start}}, WORDS, later)
    assert read("messages", SSE, body).prompt_cache == PromptCache(187, 80)
    chunks = [{"choices": [], "usage": chat(100, cached)} for cached in (0, 80)]
    nothing = {"choices": [], "usage": {"prompt_tokens": 100, "prompt_tokens_details": None}}
    assert read("chat", SSE, events(*chunks, nothing)).prompt_cache == PromptCache(100, 80)
    for nonsense in (chat(100, "80"), {"prompt_tokens": 100, "prompt_tokens_details": "many"}):
        wrong: dict[str, Any] = {"choices": [], "usage": nonsense}
        assert read("chat", SSE, events(*chunks, wrong)).prompt_cache is None
        assert read("chat", SSE, events(wrong, *chunks)).prompt_cache == PromptCache(100, 80)
