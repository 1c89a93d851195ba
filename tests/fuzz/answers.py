"""Answers: read without an error however damaged, alike however split, and never kept beyond limits."""

from __future__ import annotations

from semmem.dialects import DIALECTS, Dialect
from semmem.memory import Answer
from tests.fuzz.choices import Choices, cut

CONTENT_TYPES = ("application/json", "text/event-stream")
LIMITS = (1 << 16, 1 << 20, 40, 200, 7, 1, 1000, 3)

FRAGMENTS = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"data:",
    b"data",
    b"event: error",
    b"event:",
    b"id: 1",
    b": comment",
    b"\xef\xbb\xbf",
    b"[DONE]",
    b"\xf0\x9f\x90",
    b"\x95",
    b"\xff",
    b"\x00",
    rb"\ud83d",
    b'{"choices":[{"delta":{"content":"Rex "}}]}',
    b'{"choices":[{"index":1,"delta":{"content":"other"}}]}',
    b'{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}',
    b'{"choices":[{"message":{"content":[{"type":"text","text":"Rex"}]},"finish_reason":"content_filter"}]}',
    b'{"choices":[],"error":{"code":1}}',
    b'{"object":"error"}',
    b'{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3}}}',
    b'{"type":"content_block_start","content_block":{"type":"text","text":"Rex"}}',
    b'{"type":"content_block_start","content_block":{"type":"tool_use"}}',
    b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"Rex"}}',
    b'{"type":"content_block_delta","delta":{"type":"text_delta","text":5}}',
    b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}',
    b'{"type":"message_stop"}',
    b'{"type":"message","content":[{"type":"text","text":"a"},{"type":"thinking"},{"type":"text","text":"b"}]',
    b',"stop_reason":"refusal","id":"m"}',
    b'{"type":"response.created","response":{"id":"r"}}',
    b'{"type":"response.output_text.delta","delta":"Rex","output_index":0}',
    b'{"type":"response.output_text.delta","delta":"Rex","output_index":1,"content_index":2}',
    b'{"type":"response.output_text.done","text":"Rex","output_index":3}',
    b'{"type":"response.completed","response":{"id":"r","status":"completed",',
    b'"output":[{"type":"message","content":[{"type":"output_text","text":"Rex"}]}]}}',
    b'{"type":"response.failed","response":{"error":{"code":"content_filter"}}}',
    b'{"type":"error","code":null}',
    b'"usage":',
    b'"error":',
    b'"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}',
    b'{"',
    b'":',
    b"[{",
    b"}]",
    b"}",
    b"]",
    b",",
    b'"',
    b"null",
    b"1e999",
    b"-1",
    b"[[[[[[[[",
    b'{"a":{"a":{"a":',
)


def answer(data: bytes) -> None:
    """The target."""
    choices = Choices(data)
    dialect, content_type = choices.one_of(list(DIALECTS.values())), choices.one_of(CONTENT_TYPES)
    answer_bytes_max, body_bytes_max = choices.one_of(LIMITS), choices.one_of(LIMITS)
    places = choices.cuts()
    body = body_of(choices)
    whole = read(dialect, content_type, [body], answer_bytes_max, body_bytes_max)
    assert len(whole.text.encode()) <= answer_bytes_max
    assert read(dialect, content_type, cut(body, places), answer_bytes_max, body_bytes_max) == whole


def body_of(choices: Choices) -> bytes:
    """An answer as it stands in the data, or one that the data puts together."""
    return choices.rest() if choices.below(2) == 0 else choices.joined(FRAGMENTS)


def read(
    dialect: Dialect, content_type: str, chunks: list[bytes], answer_bytes_max: int, body_bytes_max: int
) -> Answer:
    reader = dialect.reader(content_type=content_type, answer_bytes_max=answer_bytes_max, body_bytes_max=body_bytes_max)
    assert reader is not None
    for chunk in chunks:
        reader.feed(chunk)
    return reader.end()
