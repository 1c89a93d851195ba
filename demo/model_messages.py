"""The stand-in model's other tongue: ``POST /v1/messages``, as Anthropic's API speaks it, JSON and streaming.

It calls a tool once when the user's words name it, and otherwise answers like the stand-in does everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from demo.answering import Json
from demo.stand_in import BYTES_PER_TOKEN, MODEL, Speaker, called_tool, tokens


class MessagesEndpoint:
    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def answer(self, request: Request) -> Response:
        received = await self._speaker.keep(request)
        try:
            body = json.loads(received.body)
            messages = plain(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            error = {"type": "invalid_request_error", "message": "not a messages request"}
            return JSONResponse({"type": "error", "error": error}, 400)
        reply = _reply(self._blocks(body, messages), len(received.body))
        if body.get("stream") is True:
            return self._speaker.streamed(received, map(_sse, _events(reply)))
        return self._speaker.whole(received, reply)

    def _blocks(self, body: Json, messages: list[Json]) -> list[Json]:
        if called := called_tool(body.get("tools", ()), messages):
            return [{"type": "tool_use", "id": "toolu_stand_in", "name": called, "input": {}}]
        return [{"type": "text", "text": self._speaker.says(messages)}]


def plain(body: Json) -> list[Json]:
    """A request as messages of plain text; a tool's result is a message of its own. Raises ValueError without any."""
    if not body["messages"]:
        raise ValueError("no messages")
    messages = [{"role": "system", "content": _text(body.get("system"))}]
    for message in body["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        messages += [{"role": "tool", "content": _text(result.get("content"))} for result in results]
        if words := _text(content):
            messages.append({"role": message["role"], "content": words})
    return messages


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block["text"] for block in content if block.get("type") == "text")
    return content if isinstance(content, str) else ""


def _reply(blocks: list[Json], prompt_bytes: int) -> Json:
    said = sum(len(block.get("text", "").encode()) for block in blocks)
    stop_reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": prompt_bytes // BYTES_PER_TOKEN, "output_tokens": said // BYTES_PER_TOKEN}
    head = {"id": "msg_stand_in", "type": "message", "role": "assistant", "model": MODEL}
    return {**head, "content": blocks, "stop_reason": stop_reason, "stop_sequence": None, "usage": usage}


def _sse(event: Json) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}"


def _events(reply: Json) -> Iterator[Json]:
    usage = reply["usage"]
    start = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(reply["content"]):
        empty = {**block, "text": ""} if block["type"] == "text" else block
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "ping"}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _deltas(block: Json) -> list[Json]:
    if block["type"] == "tool_use":
        return [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    return [{"type": "text_delta", "text": token} for token in tokens(block["text"])]
