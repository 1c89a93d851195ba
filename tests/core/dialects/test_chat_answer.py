"""Reading a chat-completions answer, as JSON and as a stream."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import BY_NAME, AnswerReader
from semmem.memory import Answer

STREAMS = Path(__file__).parent / "golden" / "chat" / "streams"
MIB = 1 << 20


def reader(content_type: str, answer_bytes_max: int = MIB, body_bytes_max: int = MIB) -> AnswerReader:
    made = BY_NAME["chat"].reader(
        content_type=content_type, answer_bytes_max=answer_bytes_max, body_bytes_max=body_bytes_max
    )
    assert made is not None
    return made


def read_json(body: Any, **limits: int) -> Answer:
    return read("application/json", body if isinstance(body, bytes) else json.dumps(body).encode(), **limits)


def read(content_type: str, body: bytes, *cuts: int, **limits: int) -> Answer:
    answer = reader(content_type, **limits)
    edges = [0, *cuts, len(body)]
    for start, end in pairwise(edges):
        answer.feed(body[start:end])
    return answer.end()


def read_stream(*events: Any, **limits: int) -> Answer:
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}" for event in events]
    return read("text/event-stream", "".join(f"{line}\n\n" for line in lines).encode(), **limits)


def chunk(content: Any, finish_reason: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish_reason}]}


# --- which reader


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; charset=UTF-8", " application/json ;a=b", "text/event-stream",
     "TEXT/EVENT-STREAM;charset=utf-8"],
)  # fmt: skip
def test_json_and_event_streams_have_a_reader(content_type: str) -> None:
    assert reader(content_type).end() == Answer("", complete=False)


@pytest.mark.parametrize("content_type", ["", "text/html", "application/jsonl", "text/plain; application/json", ";"])
def test_other_content_types_have_none(content_type: str) -> None:
    made = BY_NAME["chat"].reader(content_type=content_type, answer_bytes_max=1, body_bytes_max=1)
    assert made is None


# --- JSON


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "Hello."}, "Hello."),
        ({"content": ""}, ""),
        ({"content": None, "refusal": "I cannot."}, ""),
        ({"content": None, "reasoning_content": "Hm.", "reasoning": "Hm."}, ""),
        ({"content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}, ""),
        ({"role": "assistant"}, ""),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image", "x": 1}, {"type": "text", "text": "b"}]},
            "a\nb",
        ),
        ({"content": "a\ud83d"}, "a\ufffd"),
    ],
)
def test_a_json_answer_is_the_text_of_its_first_choice(message: dict[str, Any], text: str) -> None:
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}, {"index": 1, "message": {"content": "other"}}]
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    expected = Answer(text, complete=True, finish_reason="stop", input_tokens=3, output_tokens=5)
    assert read_json({"choices": choices, "usage": usage}) == expected


def test_a_json_answer_may_leave_out_what_is_not_text() -> None:
    assert read_json({"choices": [{}]}) == Answer("", complete=True)


def test_a_filtered_answer_is_marked() -> None:
    answer = read_json({"choices": [{"message": {"content": "Half"}, "finish_reason": "content_filter"}]})
    assert (answer.filtered, answer.complete) == (True, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"choices":[]}',
        b'{"choices":null}',
        b'{"choices":[{"message":{"content":"Hello"}}]',
        b'{"choices":[{"message":{"content":7}}]}',
        b'{"choices":[{"message":{"content":"\xff"}}]}',
        b'{"choices":[{"message":{"content":"a"}}],"usage":"many"}',
        b'{"choices":[{"message":{"content":"a"}}],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"error":{"message":"overloaded"}}',
        b'{"object":"error","message":"overloaded","choices":[{"message":{"content":"Hello"}}]}',
        b'{"choices":[{"message":{"content":"Hello"}}],"error":{"code":500}}',
    ],
)
def test_what_is_no_whole_json_answer_is_not_complete(body: bytes) -> None:
    assert not read_json(body).complete


def test_an_error_of_null_is_none() -> None:
    assert read_json({"choices": [{"message": {"content": "Hello"}}], "error": None}).complete


def test_a_json_body_beyond_the_limit_is_not_complete() -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hello"}}]}).encode()
    assert read("application/json", body, 9, body_bytes_max=len(body)).text == "Hello"
    assert read("application/json", body, 9, body_bytes_max=len(body) - 1) == Answer("", complete=False)
    assert not read("application/json", b"x" * 50 + body, 50, body_bytes_max=len(body)).complete


@pytest.mark.parametrize(
    ("limit", "kept"), [(0, ""), (1, "z"), (2, "z"), (3, "éz"), (5, "éz"), (6, "東éz"), (7, "b東éz"), (99, "ab東éz")]
)
def test_of_a_long_answer_the_tail_is_kept(limit: int, kept: str) -> None:
    body = {"choices": [{"message": {"content": "ab東éz"}}]}
    assert read_json(body, answer_bytes_max=limit) == Answer(kept, complete=True)
    streamed = read_stream(*[chunk(letter) for letter in "ab東éz"], chunk("", "stop"), answer_bytes_max=limit)
    assert streamed == Answer(kept, complete=True, finish_reason="stop")


# --- streams

SAMPLES = {
    "openai": Answer("Your budget is 2 000 € – “fine” 🏨.", True, "stop", False, 31, 9),
    "vllm": Answer("Rex is a boxer.", True, "length", False, 12, 5),
    "azure": Answer("I see", True, "content_filter", True),
    "several_choices": Answer("ABC", True, "stop"),
    "reasoning": Answer("Yes.", True, "stop"),
    "tool_calls": Answer("", True, "tool_calls", calls_tool=True),
    "without_done": Answer("Bye", True, "stop"),
    "error": Answer("Half an", False),
    "lone_surrogates": Answer("a\ufffd\ufffdb", True, "stop"),
}


def test_every_stream_has_its_answer() -> None:
    assert {path.stem for path in STREAMS.iterdir()} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_stream_reads_as_written_down_whatever_its_cuts(name: str) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    assert read("text/event-stream", stream) == SAMPLES[name]
    assert read("text/event-stream", stream, *range(1, len(stream))) == SAMPLES[name]
    for at in range(len(stream)):
        assert read("text/event-stream", stream, at) == SAMPLES[name]


def test_every_pair_of_cuts_gives_the_same_answer() -> None:
    stream = b'\xef\xbb\xbfdata:{"choices":[{"delta":{"content":"\xe2\x82\xac"}}]}\r\n\r\ndata: [DONE]\r\r'
    expected = Answer("€", complete=True)
    for first in range(len(stream)):
        for second in range(first, len(stream)):
            assert read("text/event-stream", stream, first, second) == expected


@given(st.sampled_from(sorted(SAMPLES)), st.lists(st.integers(0, 4_000), max_size=12))
def test_any_split_gives_the_same_answer(name: str, places: list[int]) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    cuts = sorted(place % len(stream) for place in places)
    assert read("text/event-stream", stream, *cuts) == SAMPLES[name]


@pytest.mark.parametrize("name", ["openai", "vllm", "several_choices", "reasoning", "tool_calls"])
def test_a_stream_cut_off_before_its_finish_is_not_complete(name: str) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    finish = stream.rindex(b'"finish_reason":"')
    for end in range(finish):
        answer = read("text/event-stream", stream[:end])
        assert not answer.complete
        assert SAMPLES[name].text.startswith(answer.text)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([chunk("a"), "data: [DONE]"], "a"),
        ([chunk("a", "stop")], "a"),
        ([chunk("a"), {"choices": [{"delta": None, "finish_reason": "stop"}]}], "a"),
        ([chunk("a"), {"choices": [{"index": None, "delta": {"content": "b"}, "finish_reason": "stop"}]}], "ab"),
        ([chunk([{"type": "text", "text": "a"}, {"type": "thinking"}]), chunk([{"type": "text", "text": "b"}], "stop")],
         "ab"),
        ([chunk("a"), {"choices": None}, {}, "data:", ": ping", "event: ping", chunk("b", "stop")], "ab"),
        ([chunk("a", "stop"), "data: [DONE]", "data: what else", {"error": {}}, chunk("b")], "a"),
        ([chunk("a", "stop"), "data: {\"usa"], "a"),
    ],
)  # fmt: skip
def test_a_stream_is_complete_when_it_was_finished(events: list[Any], text: str) -> None:
    answer = read_stream(*events)
    assert (answer.text, answer.complete) == (text, True)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [chunk("a")],
        [chunk("a"), chunk("b", "stop", index=1)],
        [chunk("a"), "data: {", chunk("b", "stop")],
        [chunk("a"), chunk(7), chunk("b", "stop")],
        [chunk("a"), "data: " + "[" * 100_000, "data: [DONE]"],
        [chunk("a"), {"error": {"message": "overloaded"}}, "data: [DONE]"],
        [chunk("a", "stop"), {"error": "overloaded"}],
        [chunk("a"), 'event: error\ndata: {"message":"overloaded"}', "data: [DONE]"],
        [chunk("a", "stop"), "event: error\ndata: overloaded", "data: [DONE]"],
        [chunk("a"), {"object": "error", "message": "overloaded", "code": 400}, "data: [DONE]"],
    ],
)
def test_a_stream_that_failed_or_has_a_hole_is_not_complete(events: list[Any]) -> None:
    assert not read_stream(*events).complete


def test_what_a_chunk_said_is_not_unsaid_by_a_later_one() -> None:
    usage = {"usage": {"prompt_tokens": 3, "completion_tokens": 5}}
    answer = read_stream(chunk("a") | usage, chunk("b", "stop") | usage, chunk("c"), {"choices": [], "usage": None})
    assert answer == Answer("abc", complete=True, finish_reason="stop", input_tokens=3, output_tokens=5)


def test_an_event_beyond_the_limit_makes_the_answer_incomplete() -> None:
    events = [chunk("a"), chunk("b" * 500), chunk("c", "stop"), "data: [DONE]"]
    assert read_stream(*events, body_bytes_max=1_000).complete
    answer = read_stream(*events, body_bytes_max=300)
    assert (answer.text, answer.complete) == ("ac", False)


# --- hostile bytes

FRAGMENTS = st.sampled_from(
    [b"data: ", b"data:", b"\n", b"\r", b"\n\n", b"event: error\n", b"[DONE]", b"\xef\xbb\xbf", b"\xff", b"\xe2\x82",
     b'{"choices":[', b'{"index":0,"delta":{"content":"x"}}', b'"finish_reason":"stop"', b"]}", b'"\\ud800"', b"null",
     b'{"choices":[{"message":{"content":"a"}}]}', b"[" * 2_000, b'{"error":', b"1e999",
     b'"usage":{"prompt_tokens":-1}']
)  # fmt: skip


@given(
    st.sampled_from(["application/json", "text/event-stream"]),
    st.lists(FRAGMENTS | st.binary(max_size=6), max_size=20),
    st.sampled_from([0, 1, 20, 5_000]),
    st.sampled_from([0, 3, 5_000]),
)
def test_a_reader_never_raises_and_reads_every_split_alike(
    content_type: str, chunks: list[bytes], body_bytes_max: int, answer_bytes_max: int
) -> None:
    body = b"".join(chunks)
    limits = {"body_bytes_max": body_bytes_max, "answer_bytes_max": answer_bytes_max}
    split = reader(content_type, **limits)
    for each in chunks:
        split.feed(each)
    answer = split.end()
    assert answer == read(content_type, body, **limits)
    assert len(answer.text.encode()) <= answer_bytes_max
