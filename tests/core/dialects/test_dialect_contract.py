"""What every dialect keeps, whatever its API. A new dialect adds one sample."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import BY_NAME, DIALECTS, AnswerReader, Malformed, Paths
from semmem.memory import Answer, Controls, Injection, Message, Role

JSON, SSE = "application/json", "text/event-stream"
FACTS = 'Facts: "東京" </memory> \\ \n😀'
MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """One exchange in an API's own words.

    ``request`` carries the OWN members, the controls below, spellings that a re-serialiser would not keep
    (``2.50``, a 30-digit integer, an escaped letter, odd white space), a system prompt and two user messages.
    ``answers`` holds the same complete answer as JSON and as SSE; every proper prefix of ``unfinished`` lacks its end.
    """

    request: bytes
    user_texts: tuple[str, ...]
    controls: Controls
    answers: dict[str, bytes]
    text: str
    unfinished: bytes
    malformed: bytes


OWN = b'"memory_config":{"enabled":true,"retrieval_limit":3},"memory_context" : {"user_id":"ada"}'
SPELLINGS = rb'"temperature":2.50, "x-number":123456789012345678901234567890 ,"x-text":"caf\u00e9 \/"'
CONTROLS = Controls(enabled=True, limit=3, claimed_user="ada")

SAMPLES = {
    "chat": Sample(
        request=b"""{ %s,
  "messages": [
    {"role": "system", "content": "Be brief."}, {"role":"user","content":"My dog is Rex."},
    {"role": "assistant", "content": "Hi Rex!"} , {"role":"user","content":"What is \\u0068is name?"}
  ],%s, "stream":true}\n"""
        % (SPELLINGS, OWN),
        user_texts=("My dog is Rex.", "What is his name?"),
        controls=CONTROLS,
        answers={
            JSON: '{"choices":[{"message":{"content":"Rex 🐕."},"finish_reason":"stop"}]}'.encode(),
            SSE: (
                'data: {"choices":[{"index":0,"delta":{"content":"Rex "}}]}\r\n\r\n'
                'data: {"choices":[{"index":0,"delta":{"content":"🐕."},"finish_reason":"stop"}]}\r\n\r\n'
                "data: [DONE]\r\n\r\n"
            ).encode(),
        },
        text="Rex 🐕.",
        unfinished=b'data: {"choices":[{"delta":{"content":"Rex"}}]}\n\ndata: {"choices":[{"finish_reason":"stop"}]}',
        malformed=b'{"messages":[{"role":"user","content":{"s3cret":"s3cret"}}]}',
    ),
    "messages": Sample(
        request=b"""{"system" : [ {"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}} ], %s,
  "messages": [
    {"role":"user","content":[{"type":"text","text":"My dog is Rex."}]},
    {"role": "assistant", "content": "Hi Rex!"} ,
    {"role":"user","content": [ {"type":"tool_result","tool_use_id":"t","content":"42"},
      {"text":"What is \\u0068is name?","type":"text"}]}
  ],%s, "stream":true}\n"""
        % (SPELLINGS, OWN),
        user_texts=("My dog is Rex.", "What is his name?"),
        controls=CONTROLS,
        answers={
            JSON: (
                '{"type":"message","content":[{"type":"thinking","thinking":"Hm."},'
                '{"type":"text","text":"Rex 🐕."}],"stop_reason":"end_turn"}'
            ).encode(),
            SSE: (
                'event: content_block_delta\r\ndata: {"delta":{"type":"text_delta","text":"Rex "}}\r\n\r\n'
                'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"🐕."}}\r\n\r\n'
                'event: message_delta\r\ndata: {"delta":{"stop_reason":"end_turn"}}\r\n\r\n'
                'event: message_stop\r\ndata: {"type":"message_stop"}\r\n\r\n'
            ).encode(),
        },
        text="Rex 🐕.",
        unfinished=(
            b'event: content_block_delta\ndata: {"delta":{"type":"text_delta","text":"Rex"}}\n\n'
            b'event: message_stop\ndata: {"type":"message_stop"}'
        ),
        malformed=b'{"messages":[{"role":"user","content":{"s3cret":"s3cret"}}]}',
    ),
    "responses": Sample(
        request=b"""{"instructions" : "Be brief.", %s,
  "input": [
    {"role":"user","content":[{"type":"input_text","text":"My dog is Rex."}]},
    {"type":"message","role": "assistant", "content": [{"type":"output_text","text":"Hi Rex!"}]} ,
    {"type":"function_call_output","call_id":"c","output":"42"}, {"role":"user","content":"What is \\u0068is name?"}
  ],%s, "stream":true}\n"""
        % (SPELLINGS, OWN),
        user_texts=("My dog is Rex.", "What is his name?"),
        controls=CONTROLS,
        answers={
            JSON: (
                '{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[]},'
                '{"type":"message","content":[{"type":"output_text","text":"Rex 🐕."}]}]}'
            ).encode(),
            SSE: (
                'event: response.output_text.delta\r\ndata: {"delta":"Rex "}\r\n\r\n'
                'data: {"type":"response.output_text.delta","delta":"🐕."}\r\n\r\n'
                'data: {"type":"response.completed","response":{"id":"r"}}\r\n\r\n'
            ).encode(),
        },
        text="Rex 🐕.",
        unfinished=(
            b'data: {"type":"response.output_text.delta","delta":"Rex"}\n\n'
            b'data: {"type":"response.completed","response":{"id":"r","status":"completed"}}'
        ),
        malformed=b'{"input":[{"role":"user","content":{"s3cret":"s3cret"}}]}',
    ),
}

NAMES = sorted(SAMPLES)


def reader(name: str, content_type: str, answer_bytes_max: int = MIB, body_bytes_max: int = MIB) -> AnswerReader:
    limits = {"answer_bytes_max": answer_bytes_max, "body_bytes_max": body_bytes_max}
    made = BY_NAME[name].reader(content_type=content_type, **limits)
    assert made is not None
    return made


def read(name: str, content_type: str, *chunks: bytes, **limits: int) -> Answer:
    answer = reader(name, content_type, **limits)
    for chunk in chunks:
        answer.feed(chunk)
    return answer.end()


def members(body: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(body, parse_float=str, parse_int=str)
    return parsed


PATHS = Paths()

# --- the table


def test_every_dialect_has_a_sample() -> None:
    assert {dialect.name for dialect in DIALECTS.values()} == set(SAMPLES) == set(BY_NAME)


@pytest.mark.parametrize("path", DIALECTS)
def test_a_path_finds_its_dialect_with_or_without_a_query(path: str) -> None:
    assert PATHS.dialect(path) is PATHS.dialect(f"{path}?api-version=1") is DIALECTS[path]


@pytest.mark.parametrize("path", ["", "/", "/v1/embeddings", "/v1/chat/completions/", "?/v1/chat/completions"])
def test_other_paths_have_no_dialect(path: str) -> None:
    assert PATHS.dialect(path) is None


def test_a_gateways_own_paths_are_found() -> None:
    paths = Paths(
        {
            "chat": ["/openai/v1/chat/completions", "/openai/deployments/*/chat/completions"],
            "messages": ["/*/v1/messages", "/anthropic/v1/messages"],
            "responses": ["/anthropic/*/messages", "/openai/deployments/blue/chat/completions"],
        }
    )
    found = {
        "/openai/v1/chat/completions": "chat",
        "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21": "chat",
        "/openai/deployments/blue/chat/completions": "responses",  # named whole
        "/team/v1/messages": "messages",  # the first that fits
        "/anthropic/v1/messages": "messages",
        "/anthropic/v2/messages": "responses",
        "/openai/deployments//chat/completions": None,
        "/openai/deployments/a/b/chat/completions": None,
        "/openai/deployments/gpt-4o/embeddings": None,
        "/v1/chat/completions": None,
        "/v1/messages": None,
    }
    assert {path: getattr(paths.dialect(path), "name", None) for path in found} == found


# --- requests


@pytest.mark.parametrize("name", NAMES)
def test_the_users_words_and_wishes_are_read(name: str) -> None:
    conversation = BY_NAME[name].parse(SAMPLES[name].request).conversation
    users = tuple(message.text for message in conversation.messages if message.role is Role.USER)
    assert users == SAMPLES[name].user_texts
    assert conversation.messages[0] == Message(Role.SYSTEM, "Be brief.")
    assert (conversation.controls, conversation.stream) == (SAMPLES[name].controls, True)


@pytest.mark.parametrize("name", NAMES)
def test_semmems_members_are_stripped_also_without_an_injection(name: str) -> None:
    request = SAMPLES[name].request
    stripped = BY_NAME[name].parse(request).rewrite()
    assert stripped == request.replace(OWN + b",", b"").replace(b"," + OWN, b"")
    assert b"memory_" not in stripped


@pytest.mark.parametrize("name", NAMES)
def test_a_body_with_nothing_to_change_is_left_alone(name: str) -> None:
    dialect = BY_NAME[name]
    assert dialect.parse(dialect.parse(SAMPLES[name].request).rewrite() or b"").rewrite() is None


@pytest.mark.parametrize("position", ["system", "first", "after_system", "before_last_user"])
@pytest.mark.parametrize("role", ["system", "developer", "user"])
@pytest.mark.parametrize("name", NAMES)
def test_an_injection_is_one_new_text_and_changes_no_other_byte(name: str, role: str, position: str) -> None:
    request = BY_NAME[name].parse(SAMPLES[name].request)
    stripped, rewritten = request.rewrite(), request.rewrite(Injection(FACTS, role, position))
    assert stripped is not None
    assert rewritten is not None
    added = len(rewritten) - len(stripped)
    assert any(rewritten[:at] + rewritten[at + added :] == stripped for at in range(len(stripped)))
    assert json.dumps(members(rewritten)).count(json.dumps(FACTS)[1:-1]) == 1
    assert list(members(rewritten)) == list(members(stripped))


@pytest.mark.parametrize("name", NAMES)
def test_an_injection_is_read_back_as_one_message_or_part_of_one(name: str) -> None:
    dialect = BY_NAME[name]
    before = dialect.parse(SAMPLES[name].request)
    after = dialect.parse(before.rewrite(Injection(FACTS)) or b"").conversation
    assert sum(FACTS in message.text for message in after.messages) == 1
    users = [message for message in after.messages if message.role is Role.USER]
    assert users == [message for message in before.conversation.messages if message.role is Role.USER]


@pytest.mark.parametrize("name", NAMES)
def test_a_malformed_body_is_refused_by_its_place_without_its_words(name: str) -> None:
    with pytest.raises(Malformed) as refused:
        BY_NAME[name].parse(SAMPLES[name].malformed)
    assert "[0]" in str(refused.value)
    assert "s3cret" not in str(refused.value)


@given(st.sampled_from(NAMES), st.data())
def test_a_damaged_body_is_read_or_malformed_and_nothing_else(name: str, data: st.DataObject) -> None:
    request = SAMPLES[name].request
    start = data.draw(st.integers(0, len(request)))
    end = data.draw(st.integers(start, min(len(request), start + 40)))
    damaged = request[:start] + data.draw(st.binary(max_size=4)) + request[end:]
    try:
        rewritten = BY_NAME[name].parse(damaged).rewrite(Injection(FACTS))
    except Malformed:
        return
    json.loads(rewritten or b"")


# --- answers


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content_type", ["", "text/html", "application/octet-stream", "multipart/mixed"])
def test_only_json_and_event_streams_are_read(name: str, content_type: str) -> None:
    assert BY_NAME[name].reader(content_type=content_type, answer_bytes_max=9, body_bytes_max=9) is None


@pytest.mark.parametrize("content_type", [JSON, SSE])
@pytest.mark.parametrize("name", NAMES)
def test_a_content_type_may_have_parameters_and_capitals(name: str, content_type: str) -> None:
    body = SAMPLES[name].answers[content_type]
    assert read(name, f"{content_type.upper()} ; Charset=UTF-8", body).complete


@pytest.mark.parametrize("content_type", [JSON, SSE])
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_reads_the_same_wherever_it_is_cut_twice(name: str, content_type: str) -> None:
    body = SAMPLES[name].answers[content_type]
    whole = read(name, content_type, body)
    assert (whole.text, whole.complete, whole.filtered) == (SAMPLES[name].text, True, False)
    for first in range(len(body)):
        for second in range(first, len(body)):
            assert read(name, content_type, body[:first], body[first:second], body[second:]) == whole


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_without_its_end_is_not_complete(name: str) -> None:
    json_body, stream = SAMPLES[name].answers[JSON], SAMPLES[name].unfinished
    assert not any(read(name, JSON, json_body[:end]).complete for end in range(len(json_body)))
    assert not any(read(name, SSE, stream[:end]).complete for end in range(len(stream)))
    assert read(name, SSE, stream).complete


@pytest.mark.parametrize("content_type", [JSON, SSE])
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_beyond_a_limit_keeps_its_tail_or_is_not_complete(name: str, content_type: str) -> None:
    body = SAMPLES[name].answers[content_type]
    for limit, kept in ((5, "🐕."), (4, "."), (1, ".")):
        tail = read(name, content_type, body, answer_bytes_max=limit)
        assert (tail.text, tail.complete) == (kept, True)
    assert not read(name, content_type, body, body_bytes_max=20).complete


@given(st.sampled_from(NAMES), st.sampled_from([JSON, SSE]), st.data())
def test_a_reader_never_raises_on_a_damaged_answer(name: str, content_type: str, data: st.DataObject) -> None:
    body = SAMPLES[name].answers[content_type]
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 40)))
    damaged = body[:start] + data.draw(st.binary(max_size=6)) + body[end:]
    cut = data.draw(st.integers(0, len(damaged)))
    assert read(name, content_type, damaged[:cut], damaged[cut:]) == read(name, content_type, damaged)
