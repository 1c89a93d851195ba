"""What a model answers in each API, piece by piece; the words of every answer carry its nonce."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tests.faults.forms import PATHS

Json = dict[str, Any]
MEMBER_MB = 16
"""A bomb is one gzip member of so many megabytes, over and over: RFC 1952 has them read as one text."""


def pieces(path: str, nonce: str, words: list[str], *, sse: bool) -> list[bytes]:
    """A whole answer in the API of this path (chat completions' where it is no API's), in as many pieces as there are
    words or a few more."""
    if sse:
        return list(_EVENTS.get(path, _chat_events)(nonce, words))
    body = json.dumps(_WHOLE.get(path, _chat)(nonce, "".join(words))).encode()
    step = max(1, len(body) // len(words))
    return [body[start : start + step] for start in range(0, len(body), step)]


def refusal(nonce: str, status: int) -> bytes:
    return json.dumps({"type": "error", "error": {"message": f"refused, {nonce}", "code": status}}).encode()


@lru_cache
def bomb(megabytes: int, *, sse: bool) -> bytes:
    """A thousandth of what it unpacks to."""
    member = gzip.compress((b"data: " if sse else b" ") + b" " * (MEMBER_MB << 20), 9)
    return member * (megabytes // MEMBER_MB)


def zipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


# --- JSON ------------------------------------------------------------------------------------------------------------


def _chat(nonce: str, text: str) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": nonce, "object": "chat.completion", "choices": [choice]}


def _response(nonce: str, text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg", "status": "completed", "role": "assistant", "content": [part]}
    return {"id": nonce, "object": "response", "status": "completed", "error": None, "output": [item]}


def _message(nonce: str, text: str) -> Json:
    content = [{"type": "text", "text": text}]
    return {"id": nonce, "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}


_WHOLE = {PATHS["responses"]: _response, PATHS["messages"]: _message}

# --- SSE -------------------------------------------------------------------------------------------------------------


def _chat_events(nonce: str, words: list[str]) -> Iterator[bytes]:
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in words)]
    for delta, finish in [*((delta, None) for delta in deltas), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": nonce, "object": "chat.completion.chunk", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _response_events(nonce: str, words: list[str]) -> Iterator[bytes]:
    begun: Json = {"id": nonce, "object": "response", "status": "in_progress", "error": None, "output": []}
    yield _event({"type": "response.created", "response": begun})
    for word in words:
        yield _event({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": word})
    yield _event({"type": "response.completed", "response": _response(nonce, "".join(words))})


def _message_events(nonce: str, words: list[str]) -> Iterator[bytes]:
    begun: Json = {"id": nonce, "type": "message", "role": "assistant", "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": begun})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for word in words:
        yield _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    yield _event({"type": "content_block_stop", "index": 0})
    yield _event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    yield _event({"type": "message_stop"})


_EVENTS = {PATHS["responses"]: _response_events, PATHS["messages"]: _message_events}


def _event(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
