"""Reading a Responses answer, as JSON and as a stream."""

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

STREAMS = Path(__file__).parent / "golden" / "responses" / "streams"
MIB = 1 << 20


def reader(content_type: str, answer_bytes_max: int = MIB, body_bytes_max: int = MIB) -> AnswerReader:
    made = BY_NAME["responses"].reader(
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


def message(*texts: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": t} for t in texts]}


def response(*output: dict[str, Any], status: str = "completed", **members: Any) -> dict[str, Any]:
    return {"id": "resp_1", "status": status, "output": list(output), **members}


def delta(text: Any, output_index: int = 0, content_index: int = 0) -> dict[str, Any]:
    place = {"output_index": output_index, "content_index": content_index}
    return {"type": "response.output_text.delta", **place, "delta": text}


def ended(*output: dict[str, Any], how: str = "completed", **members: Any) -> dict[str, Any]:
    return {"type": f"response.{how}", "response": response(*output, status=how, **members)}


CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


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
    assert BY_NAME["responses"].reader(content_type=content_type, answer_bytes_max=1, body_bytes_max=1) is None


# --- JSON


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([message("Hello.")], "Hello."),
        ([message("")], ""),
        ([message("a", "", "b")], "a\nb"),
        ([message("a"), CALL, message("b")], "a\nb"),
        ([CALL], ""),
        ([], ""),
        ([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}], ""),
        ([{"type": "message", "role": "assistant", "content": None}], ""),
        ([{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
          message("Yes.")], "Yes."),
        ([{"type": "from_the_future", "content": {"text": 7}, "id": 7}, message("Yes.")], "Yes."),
        ([message("a\ud83d")], "a\ufffd"),
    ],
)  # fmt: skip
def test_a_json_answer_is_the_text_of_its_messages(output: list[dict[str, Any]], text: str) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    expected = Answer(
        text,
        complete=True,
        finish_reason="completed",
        input_tokens=3,
        output_tokens=5,
        answer_id="resp_1",
        calls_tool=CALL in output,
    )
    assert read_json(response(*output, usage=usage, error=None)) == expected


@pytest.mark.parametrize(
    ("status", "members", "complete", "filtered", "finish_reason"),
    [
        ("completed", {}, True, False, "completed"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, True, False, "max_output_tokens"),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, True, True, "content_filter"),
        ("incomplete", {"incomplete_details": {"reason": "power_cut"}}, False, False, "power_cut"),
        ("incomplete", {"incomplete_details": {}}, False, False, "incomplete"),
        ("incomplete", {"incomplete_details": None}, False, False, "incomplete"),
        ("failed", {"error": {"code": "server_error"}}, False, False, "server_error"),
        ("failed", {"error": {"code": "invalid_prompt"}}, False, True, "invalid_prompt"),
        ("failed", {"error": "overloaded"}, False, False, "failed"),
        ("completed", {"error": {"code": "content_filter"}}, False, True, "content_filter"),
        ("in_progress", {}, False, False, "in_progress"),
        ("queued", {}, False, False, "queued"),
        ("cancelled", {}, False, False, "cancelled"),
    ],
)
def test_how_it_ended_says_whether_it_is_complete(
    status: str, members: dict[str, Any], complete: bool, filtered: bool, finish_reason: str
) -> None:
    expected = Answer("Half", complete, finish_reason, filtered, answer_id="resp_1")
    assert read_json(response(message("Half"), status=status, **members)) == expected
    streamed = {"type": f"response.{status}", "response": response(message("Half"), status=status, **members)}
    last = read_stream(CREATED, delta("Half"), streamed)
    assert (last.text, last.complete, last.filtered) == ("Half", complete, filtered)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"status":"completed"}',
        b'{"status":"completed","output":null}',
        b'{"output":[]}',
        b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]',
        b'{"status":"completed","output":[{"type":"message","content":7}]}',
        b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"\xff"}]}]}',
        b'{"status":"completed","output":[],"usage":"many"}',
        b'{"status":"completed","output":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"status":"completed","output":[],"error":{}}',
        b'{"error":{"message":"overloaded"}}',
    ],
)
def test_what_is_no_whole_json_answer_is_not_complete(body: bytes) -> None:
    assert not read_json(body).complete


def test_a_json_body_beyond_the_limit_is_not_complete() -> None:
    body = json.dumps(response(message("Hello"))).encode()
    assert read("application/json", body, 9, body_bytes_max=len(body)).text == "Hello"
    assert read("application/json", body, 9, body_bytes_max=len(body) - 1) == Answer("", complete=False)
    assert not read("application/json", b"x" * 50 + body, 50, body_bytes_max=len(body)).complete


@pytest.mark.parametrize(
    ("limit", "kept"), [(0, ""), (1, "z"), (2, "z"), (3, "éz"), (5, "éz"), (6, "東éz"), (7, "b東éz"), (99, "ab東éz")]
)
def test_of_a_long_answer_the_tail_is_kept(limit: int, kept: str) -> None:
    expected = Answer(kept, complete=True, finish_reason="completed", answer_id="resp_1")
    assert read_json(response(message("ab東éz")), answer_bytes_max=limit) == expected
    deltas = [delta(letter) for letter in "ab東éz"]
    assert read_stream(*deltas, ended(message("ab東éz")), answer_bytes_max=limit) == expected
    assert read_stream(*deltas, ended(), answer_bytes_max=limit) == expected


# --- streams

SAMPLES = {
    "openai": Answer("Your budget is 2 000 € – “fine” 🏨.", True, "completed", False, 31, 9, "resp_01"),
    "tool_calls": Answer("", True, "completed", False, 40, 12, "resp_02", calls_tool=True),
    "reasoning": Answer("Yes.", True, "completed", False, 5, 7, "resp_03"),
    "two_messages": Answer("Let me look.\nIt is Rex.", True, "completed", answer_id="resp_04"),
    "vllm": Answer("Rex is a boxer.", True, "completed", False, 12, 5, "resp_05"),
    "whole_parts": Answer("All at once.\nAnd more.", True, "completed", answer_id="resp_06"),
    "max_tokens": Answer("Half an ans", True, "max_output_tokens", False, 3, 16, "resp_07"),
    "filtered": Answer("I see", True, "content_filter", True, answer_id="resp_08"),
    "failed": Answer("Half", False, "server_error", answer_id="resp_09"),
    "refused": Answer("", False, "invalid_prompt", True, answer_id="resp_10"),
    "error": Answer("Half  an", False, "rate_limit_exceeded", answer_id="resp_11"),
    "refusal": Answer("", True, "completed", answer_id="resp_12"),
    "healed": Answer("lost and found", True, "completed", answer_id="resp_13"),
    "lone_surrogates": Answer("a\ufffd\ufffdb", True, "completed", answer_id="resp_14"),
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


def test_every_pair_of_cuts_gives_the_same_answer() -> None:
    stream = (
        b'\xef\xbb\xbfdata:{"type":"response.output_text.delta","delta":"\xe2\x82\xac"}\r\n\r\n'
        b'event: response.completed\r\ndata:{"response":{"id":"r"}}\r\r'
    )
    expected = Answer("€", complete=True, finish_reason="completed", answer_id="r")
    for first in range(len(stream)):
        for second in range(first, len(stream)):
            assert read("text/event-stream", stream, first, second) == expected


@given(st.sampled_from(sorted(SAMPLES)), st.lists(st.integers(0, 8_000), max_size=12))
def test_any_split_gives_the_same_answer(name: str, places: list[int]) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    cuts = sorted(place % len(stream) for place in places)
    assert read("text/event-stream", stream, *cuts) == SAMPLES[name]


@pytest.mark.parametrize("name", ["openai", "tool_calls", "reasoning", "vllm", "whole_parts", "refusal", "max_tokens"])
def test_a_stream_cut_off_before_its_last_event_is_not_complete(name: str) -> None:
    stream = (STREAMS / f"{name}.sse").read_bytes()
    last = max(stream.rindex(b'{"type":"response.completed"') if b"response.completed" in stream else 0,
               stream.rindex(b'{"type":"response.incomplete"') if b"response.incomplete" in stream else 0)  # fmt: skip
    for end in range(last):
        answer = read("text/event-stream", stream[:end])
        assert not answer.complete
        assert SAMPLES[name].text.startswith(answer.text)


def test_the_id_is_known_from_the_first_event_on() -> None:
    assert read_stream(CREATED, delta("a")) == Answer("a", complete=False, answer_id="resp_1")


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([delta("a"), ended(message("a"))], "a"),
        ([delta("a"), ended()], "a"),
        ([delta("a"), ended(CALL)], "a"),
        ([delta("a"), ended(output=None)], "a"),
        ([delta("a"), {"type": "response.completed"}], "a"),
        (["event: response.output_text.delta\ndata: {\"delta\":\"a\"}", ended()], "a"),
        ([delta("a"), "data:", ": ping", "event: ping", "data: {}", "data: [DONE]", delta("b"), ended()], "ab"),
        ([delta("a"), ended(), "data: what else", {"type": "error"}, delta("b"), ended(message("b"))], "a"),
        ([delta("a"), "data: {", delta("c"), ended(message("abc"))], "abc"),
        ([delta("a"), delta(7), ended(message("ab"))], "ab"),
        ([ended(message("a", "b"), message("c"))], "a\nb\nc"),
        ([delta("a"), delta("b", 0, 1), delta("", 0, 2), delta("c", 1), ended()], "a\nb\nc"),
        ([delta(""), delta("a", 1), ended()], "a"),
        ([delta("a"), {**delta(None), "type": "response.output_text.done", "text": "a"}, ended()], "a"),
    ],
)  # fmt: skip
def test_a_stream_is_complete_when_it_was_finished(events: list[Any], text: str) -> None:
    answer = read_stream(*events)
    assert (answer.text, answer.complete) == (text, True)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [CREATED],
        [CREATED, delta("a")],
        [delta("a"), "data: [DONE]"],
        [delta("a"), "data: {", ended()],
        [delta("a"), "data: {", ended(output=None)],
        [delta("a"), delta(7), ended()],
        [delta("a"), "data: " + "[" * 100_000, ended()],
        [delta("a"), "data: {", ended({"type": "message", "content": 7})],
        [delta("a"), ended(message("a"), usage="many")],
        [delta("a"), {"type": "error", "message": "overloaded"}, ended(message("a"))],
        [delta("a"), {"error": {"message": "overloaded"}}, ended(message("a"))],
        [delta("a"), "event: error\ndata: overloaded", ended(message("a"))],
        [delta("a"), ended(message("a"), how="failed")],
        [delta("a"), ended(message("a"), how="cancelled")],
        [delta("a"), ended(message("a"), error={"code": "server_error"})],
        [delta("a"), {"type": "response.completed", "response": response(message("a"), status="in_progress")}],
    ],
)
def test_a_stream_that_failed_or_has_a_hole_is_not_complete(events: list[Any]) -> None:
    assert not read_stream(*events).complete


def test_an_event_beyond_the_limit_is_a_hole_unless_the_end_tells_all() -> None:
    events = [delta("a"), delta("b" * 500), delta("c")]
    assert read_stream(*events, ended(), body_bytes_max=1_000).complete
    answer = read_stream(*events, ended(), body_bytes_max=300)
    assert (answer.text, answer.complete) == ("ac", False)
    healed = read_stream(*events, ended(message("abc")), body_bytes_max=300)
    assert (healed.text, healed.complete) == ("abc", True)
    assert not read_stream(delta("a"), ended(message("a" * 500)), body_bytes_max=300).complete


# --- hostile bytes

FRAGMENTS = st.sampled_from(
    [b"data: ", b"data:", b"\n", b"\r", b"\n\n", b"event: error\n", b"event: response.completed\n", b"[DONE]",
     b"\xef\xbb\xbf", b"\xff", b"\xe2\x82", b'{"type":"response.output_text.delta","delta":"x"}',
     b'{"type":"response.completed","response":', b'{"id":"r","status":"completed","output":[', b"]}", b"}",
     b'{"type":"message","content":[{"type":"output_text","text":"a"}]}', b'"\\ud800"', b"null", b"[" * 2_000,
     b'{"error":', b"1e999", b'{"output_index":99999999999999999999}', b'{"content":7}']
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
