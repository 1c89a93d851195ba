"""The stand-in model's other tongue: ``POST /v1/messages``, as Anthropic's API speaks it, JSON and streaming.

It calls a tool once when the user's words name it, and otherwise answers like the stand-in does everywhere.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

if TYPE_CHECKING:
    from demo.model import Received

Json = dict[str, Any]


class Speaker(Protocol):
    """What is needed of the stand-in: how fast it speaks, and what it was told to say."""

    token_delay_s: float
    scripted: deque[str]


class MessagesEndpoint:
    """``keep`` records a request; ``answer_to`` answers messages of plain text, each {role, content}."""

    def __init__(
        self,
        speaker: Speaker,
        *,
        keep: Callable[[Request], Awaitable[Received]],
        answer_to: Callable[[list[Json]], str],
    ) -> None:
        self._speaker = speaker
        self._keep = keep
        self._answer_to = answer_to

    async def answer(self, request: Request) -> Response:
        received = await self._keep(request)
        try:
            body = json.loads(received.body)
            messages = plain(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            error = {"type": "invalid_request_error", "message": "not a messages request"}
            return JSONResponse({"type": "error", "error": error}, 400)
        reply = _reply(self._blocks(body, messages), len(received.body))
        if body.get("stream") is True:
            events = self._stream(received, reply)
            return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        received.answer = json.dumps(reply, indent=1).encode()
        return Response(received.answer, media_type="application/json")

    def _blocks(self, body: Json, messages: list[Json]) -> list[Json]:
        if called := _called_tool(body, messages):
            return [{"type": "tool_use", "id": "toolu_stand_in", "name": called, "input": {}}]
        said = self._speaker.scripted.popleft() if self._speaker.scripted else self._answer_to(messages)
        return [{"type": "text", "text": said}]

    async def _stream(self, received: Received, reply: Json) -> AsyncIterator[bytes]:
        for event in _events(reply):
            await asyncio.sleep(self._speaker.token_delay_s)
            written = f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
            received.answer += written
            yield written


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


def _called_tool(body: Json, messages: list[Json]) -> str | None:
    """The offered tool that the last message, when it is the user's, calls by its name."""
    last = messages[-1]
    words = set(re.findall(r"\w+", last["content"])) if last["role"] == "user" else set()
    return next((tool["name"] for tool in body.get("tools", ()) if tool["name"] in words), None)


def _reply(blocks: list[Json], prompt_bytes: int) -> Json:
    """A whole answer; a token is counted as four bytes, the usual rule of thumb for English."""
    said = sum(len(block.get("text", "").encode()) for block in blocks)
    stop_reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": prompt_bytes // 4, "output_tokens": said // 4}
    head = {"id": "msg_stand_in", "type": "message", "role": "assistant", "model": "stand-in"}
    return {**head, "content": blocks, "stop_reason": stop_reason, "stop_sequence": None, "usage": usage}


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
    return [{"type": "text_delta", "text": token} for token in re.findall(r"\s*\S+|\s+$", block["text"])]
