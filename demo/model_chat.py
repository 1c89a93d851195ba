"""The stand-in model's first tongue: ``POST /v1/chat/completions``, JSON and streaming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from demo.answering import Json
from demo.stand_in import BYTES_PER_TOKEN, MODEL, Speaker, tokens

REFUSE = "!refuse"
"""A message of this text makes the model answer 400."""


class ChatEndpoint:
    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def answer(self, request: Request) -> Response:
        received = await self._speaker.keep(request)
        try:
            body = json.loads(received.body)
            messages = [plain(message) for message in body["messages"] if isinstance(message, dict)]
        except (ValueError, KeyError, TypeError):
            return _refused("not a chat completions request")
        if any(message["content"] == REFUSE for message in messages):
            return _refused("refused, as asked")
        text = self._speaker.says(messages)
        if body.get("stream") is True:
            return self._speaker.streamed(received, _events(text))
        return self._speaker.whole(received, _completion(text, len(received.body)))


def plain(message: Json) -> Json:
    """A message of plain text: the text parts of its content, joined by line ends; empty when there is none."""
    return {"role": message.get("role"), "content": _text(message.get("content"))}


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _refused(message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "code": 400}}, 400)


def _completion(text: str, prompt_bytes: int) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    prompt, answer = prompt_bytes // BYTES_PER_TOKEN, len(text.encode()) // BYTES_PER_TOKEN
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    head = {"id": "chatcmpl-stand-in", "object": "chat.completion", "created": 0, "model": MODEL}
    return {**head, "choices": [choice], "usage": usage}


def _events(text: str) -> Iterator[str]:
    yield _chunk({"role": "assistant", "content": ""}, None)
    for token in tokens(text):
        yield _chunk({"content": token}, None)
    yield _chunk({}, "stop")
    yield "data: [DONE]"


def _chunk(delta: dict[str, str], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-stand-in", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    return f"data: {json.dumps({**head, 'choices': [choice]}, ensure_ascii=False)}"
