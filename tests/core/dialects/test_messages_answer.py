"""Reading an answer of the Anthropic Messages API, as JSON and as a stream."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import BY_NAME, AnswerReader
from semmem.memory import Answer, PromptCache

STREAMS = Path(__file__).parent / "golden" / "messages" / "streams"
MIB = 1 << 20
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
CALL = {"type": "tool_use", "id": "toolu_01", "name": "weather", "input": {"town": "Ghent"}}


def reader(content_type: str, answer_bytes_max: int = MIB, body_bytes_max: int = MIB) -> AnswerReader:
    made = BY_NAME["messages"].reader(
        content_type=content_type, answer_bytes_max=answer_bytes_max, body_bytes_max=body_bytes_max
    )
    assert made is not None
    return made


def read(content_type: str, body: bytes, *cuts: int, **limits: int) -> Answer:
    answer = reader(content_type, **limits)
    edges = [0, *cuts, len(body)]
    for start, end in pairwise(edges):
        answer.feed(body[start:end])
    return answer.end()


def read_json(body: Any, **limits: int) -> Answer:
    return read("application/json", body if isinstance(body, bytes) else json.dumps(body).encode(), **limits)


def read_stream(*events: Any, **limits: int) -> Answer:
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}" for event in events]
    return read("text/event-stream", "".join(f"{line}\n\n" for line in lines).encode(), **limits)


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


def delta(words: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}


def block(content_block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": content_block}


def stopped(reason: str | None = "end_turn", **members: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, **members}


STOP = {"type": "message_stop"}


# --- JSON


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([text("Hello.")], "Hello."),
        ([text("")], ""),
        ([], ""),
        ([THINKING, {"type": "redacted_thinking", "data": "x"}], ""),
        ([CALL], ""),
        ([THINKING, text("It rains"), text(" in Ghent"), text(".")], "It rains in Ghent."),
        ([text("I look."), CALL, text("It rains.")], "I look.\nIt rains."),
        ([text("I look."), CALL, CALL, text(""), text("It rains.")], "I look.\nIt rains."),
        ([CALL, text("a"), THINKING], "a"),
        ([{"type": "table", "text": {"rows": [1]}}, text("a")], "a"),
        ([text("a\ud83d")], "a\ufffd"),
    ],
)
def test_a_json_answer_is_the_text_of_its_text_blocks(content: list[Any], words: str) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 100}
    body = {"id": "msg_1", "type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}
    expected = Answer(words, True, "end_turn", False, 3, 5, "msg_1", prompt_cache=PromptCache(103, 100))
    assert read_json(body) == expected


def test_json_and_a_stream_of_the_same_answer_read_the_same() -> None:
    content = [text("I look."), CALL, text("It "), text("rains."), THINKING, text("Bye.")]
    events = [event for each in content for event in (block(each | {"text": ""}), delta(each.get("text", "")))]
    whole = read_json({"content": content, "stop_reason": "end_turn"})
    assert whole == read_stream(*events, stopped(), STOP) == Answer("I look.\nIt rains.\nBye.", True, "end_turn")


@pytest.mark.parametrize("id_", [None, "", 7, ["a"]])
def test_an_answer_may_have_no_name(id_: Any) -> None:
    assert read_json({"id": id_, "content": []}) == Answer("", complete=True)
    start = {"type": "message_start", "message": {"id": id_}}
    assert read_stream(start, STOP) == Answer("", complete=True)


@pytest.mark.parametrize(
    ("reason", "filtered", "calls_tool"),
    [
        ("refusal", True, False),
        ("end_turn", False, False),
        ("max_tokens", False, False),
        ("tool_use", False, True),
        ("pause_turn", False, True),
    ],
)
def test_the_stop_reason_says_whether_it_was_refused_or_goes_on(reason: str, filtered: bool, calls_tool: bool) -> None:
    whole, streamed = (
        read_json({"content": [text("a")], "stop_reason": reason}),
        read_stream(delta("a"), stopped(reason)),
    )
    assert (
        whole == streamed == Answer("a", complete=True, finish_reason=reason, filtered=filtered, calls_tool=calls_tool)
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"content":null}',
        b'{"content":"Hello"}',
        b'{"content":[{"type":"text","text":"Hello"}]',
        b'{"content":[{"type":"text","text":7}]}',
        b'{"content":[{"type":"text"}]}',
        b'{"content":[{"type":"text","text":"\xff"}]}',
        b'{"content":[],"usage":"many"}',
        b'{"content":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        b'{"type":"error","content":[{"type":"text","text":"Hello"}]}',
        b'{"content":[{"type":"text","text":"Hello"}],"error":{"code":500}}',
    ],
)
def test_what_is_no_whole_json_answer_is_not_complete(body: bytes) -> None:
    assert not read_json(body).complete


def test_an_error_of_null_is_none() -> None:
    assert read_json({"content": [text("Hello")], "error": None}).complete
    assert read_stream(delta("Hello") | {"error": None}, STOP).complete


def test_a_json_body_beyond_the_limit_is_not_complete() -> None:
    body = json.dumps({"content": [text("Hello")]}).encode()
    assert read("application/json", body, 9, body_bytes_max=len(body)).text == "Hello"
    assert read("application/json", body, 9, body_bytes_max=len(body) - 1) == Answer("", complete=False)


@pytest.mark.parametrize(
    ("limit", "kept"), [(0, ""), (2, "z"), (3, "éz"), (6, "東éz"), (7, "\n東éz"), (99, "ab\n東éz")]
)
def test_of_a_long_answer_the_tail_is_kept(limit: int, kept: str) -> None:
    content = [text("ab"), CALL, text("東"), text("éz")]
    assert read_json({"content": content}, answer_bytes_max=limit) == Answer(kept, complete=True)
    events = [delta("a"), delta("b"), block(CALL), delta("東"), delta("éz")]
    assert read_stream(*events, STOP, answer_bytes_max=limit) == Answer(kept, complete=True)


# --- streams

BOXERS = "I look it up.\nBoxers have a short coat, so weekly."
SAMPLES = {
    "anthropic": Answer("Your budget is 2 000 € – “fine” 🏨.", True, "end_turn", False, 31, 15, "msg_01Rex"),
    "thinking": Answer("Yes.", True, "end_turn", False, 40, 88, "msg_01Rex"),
    "tool_use": Answer("", True, "tool_use", False, 31, 41, "msg_01Rex", calls_tool=True),
    "web_search": Answer(BOXERS, True, "end_turn", False, 2679, 510, "msg_01Rex"),
    "refusal": Answer("I ca", True, "refusal", True, 31, 4, "msg_01Rex"),
    "nameless": Answer("Rex is a boxer.", True, "max_tokens", False, 31, 7, "msg_gw"),
    "typeless": Answer("Rex is a boxer.", True, "stop_sequence", False, 31, 7, "msg_ty"),
    "without_stop": Answer("Bye", True, "end_turn", False, 31, 2, "msg_01Rex"),
    "error": Answer("Half an", False, None, False, 31, 1, "msg_01Rex"),
    "lone_surrogates": Answer("a\ufffd\ufffdb", True, "end_turn", False, 31, 2, "msg_01Rex"),
}
SAMPLES = {
    name: replace(answer, prompt_cache=PromptCache(answer.input_tokens, 0)) if answer.input_tokens else answer
    for name, answer in SAMPLES.items()
}
"""Where tokens are counted, none of the prompt was cached."""


def test_every_stream_has_its_answer() -> None:
    assert {path.stem for path in STREAMS.iterdir()} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_stream_reads_as_written_down_whatever_its_cuts(name: str) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    assert read("text/event-stream", stream) == SAMPLES[name]
    assert read("text/event-stream", stream, *range(1, len(stream))) == SAMPLES[name]
    for at in range(len(stream)):
        assert read("text/event-stream", stream, at) == SAMPLES[name]


@given(st.sampled_from(sorted(SAMPLES)), st.lists(st.integers(0, 4_000), max_size=12))
def test_any_split_gives_the_same_answer(name: str, places: list[int]) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    cuts = sorted(place % len(stream) for place in places)
    assert read("text/event-stream", stream, *cuts) == SAMPLES[name]


@pytest.mark.parametrize("name", ["anthropic", "thinking", "tool_use", "nameless", "typeless", "without_stop"])
def test_a_stream_cut_off_before_its_stop_is_not_complete(name: str) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    stop = stream.rindex(b'"stop_reason": "')
    for end in range(stop):
        answer = read("text/event-stream", stream[:end])
        assert not answer.complete
        assert SAMPLES[name].text.startswith(answer.text)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([delta("a"), STOP], "a"),
        ([delta("a"), stopped()], "a"),
        ([delta("a"), "event: message_stop\ndata: {}"], "a"),
        ([delta("a"), 'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}'], "a"),
        ([delta("a"), "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}", STOP],
         "ab"),
        ([delta("a"), {"type": "ping"}, {"type": "later_event"}, {}, "data:", ": ping", "event: ping",
          delta("b"), STOP], "ab"),
        ([block(text("a")), delta("b"), block(THINKING), block({"type": "text"}), delta("c"), STOP], "ab\nc"),
        ([delta("a"), {"type": "content_block_delta", "delta": {"type": "later_delta", "text": [1]}}, STOP], "a"),
        ([delta("a"), {"type": "content_block_delta", "delta": None}, {"type": "content_block_start"}, STOP], "a"),
        ([{"type": "message_start", "message": None}, delta("a"), {"type": "message_delta", "delta": None}, STOP], "a"),
        ([delta("a"), STOP, {"type": "error", "error": {}}, "data: what else", delta("b")], "a"),
        ([delta("a"), stopped(), "data: [DONE]"], "a"),
        ([delta("a"), stopped(), 'data: {"type":"mess'], "a"),
        ([f"event: later\ndata: {json.dumps(delta('a'))}", STOP], "a"),
    ],
)  # fmt: skip
def test_a_stream_is_complete_when_it_was_finished(events: list[Any], words: str) -> None:
    answer = read_stream(*events)
    assert (answer.text, answer.complete) == (words, True)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [delta("a")],
        [delta("a"), "data: [DONE]"],
        [delta("a"), stopped(None)],
        [delta("a"), {"type": "content_block_stop", "index": 0}],
        [delta("a"), "data: {", delta("b"), STOP],
        [delta("a"), delta(7), STOP],
        [delta("a"), {"type": "content_block_delta", "delta": {"type": "text_delta"}}, STOP],
        [delta("a"), {"type": "content_block_delta", "delta": "b"}, STOP],
        [delta("a"), "data: " + "[" * 100_000, STOP],
        [delta("a"), {"type": "error", "error": {"type": "overloaded_error"}}, stopped(), STOP],
        [delta("a"), stopped(), {"type": "error"}, STOP],
        [delta("a"), stopped(), {"error": "overloaded"}],
        [delta("a"), 'event: error\ndata: {"message":"overloaded"}', STOP],
        [delta("a"), 'event: error\ndata: {"type":"overloaded_error"}', STOP],
        [delta("a"), stopped(), "event: error\ndata: overloaded", STOP],
    ],
)
def test_a_stream_that_failed_or_has_a_hole_is_not_complete(events: list[Any]) -> None:
    assert not read_stream(*events).complete


def test_what_was_counted_is_not_uncounted_by_an_event_that_does_not_say() -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
    later = [stopped(usage={"output_tokens": 5}), stopped(None, usage={"input_tokens": None}), stopped(None), STOP]
    assert read_stream(start, delta("a"), *later) == Answer("a", True, "end_turn", False, 3, 5, "m")
    assert read_stream(start, stopped(usage={"input_tokens": 0, "output_tokens": 0})).input_tokens == 0


def test_an_event_beyond_the_limit_makes_the_answer_incomplete() -> None:
    events = [delta("a"), delta("b" * 500), delta("c"), stopped(), STOP]
    assert read_stream(*events, body_bytes_max=1_000).complete
    answer = read_stream(*events, body_bytes_max=300)
    assert (answer.text, answer.complete) == ("ac", False)


# --- hostile bytes

FRAGMENTS = st.sampled_from(
    [b"data: ", b"\n", b"\r", b"\n\n", b"event: error\n", b"event: message_delta\n", b"event: message_stop\n", b"{}",
     b"\xef\xbb\xbf", b"\xff", b"\xe2\x82", b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}',
     b'{"type":"content_block_start","content_block":{"type":"tool_use"}}', b'{"delta":{"stop_reason":"end_turn"}}',
     b'{"type":', b'"message_stop"', b"}", b'"\\ud800"', b"null", b'{"content":[{"type":"text","text":"a"}]}',
     b"[" * 2_000, b'{"error":', b"1e999", b'"usage":{"input_tokens":-1}']
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
