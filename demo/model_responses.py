"""The stand-in model's third tongue: ``POST /v1/responses``, JSON and streaming, with the chains that this API keeps.

What was said is remembered under the response's id and the conversation's, instructions never are. It calls a tool
once when the user's words name it, and otherwise answers like the stand-in does everywhere.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from demo.answering import Json
from demo.stand_in import BYTES_PER_TOKEN, MODEL, Speaker, called_tool, tokens


class ResponsesEndpoint:
    """The last ``chains_max`` responses and conversations are remembered."""

    def __init__(self, speaker: Speaker, *, chains_max: int = 1000) -> None:
        self._speaker = speaker
        self._chains: LRUCache[str, list[Json]] = LRUCache(chains_max)
        self._numbers = itertools.count(1)

    async def answer(self, request: Request) -> Response:
        received = await self._speaker.keep(request)
        try:
            body = json.loads(received.body)
            said = self._before(body) + plain(body.get("input"))
        except LookupError:
            return _refused("previous_response_not_found")
        except (ValueError, TypeError, AttributeError):
            return _refused("invalid_request")
        number = next(self._numbers)
        item = self._item(body, said, number)
        reply = _reply(body, item, f"resp_stand_in_{number}", len(received.body))
        if body.get("store") is not False:
            self._remember(body, reply, [*said, *plain([item])])
        if body.get("stream") is True:
            return self._speaker.streamed(received, map(_sse, itertools.count(), _events(reply)))
        return self._speaker.whole(received, reply)

    def _before(self, body: Json) -> list[Json]:
        """What was said earlier in this chain. Raises LookupError when the chain is not known."""
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self._chains:
            raise LookupError(previous)
        return self._chains.get(previous or _conversation(body) or "", [])

    def _remember(self, body: Json, reply: Json, said: list[Json]) -> None:
        for name in (reply["id"], _conversation(body)):
            if name:
                self._chains[name] = said

    def _item(self, body: Json, said: list[Json], number: int) -> Json:
        if called := called_tool(body.get("tools") or (), said):
            call = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": called, "arguments": "{}"}
            return {"type": "function_call", "status": "completed", **call}
        messages = [{"role": "system", "content": body.get("instructions") or ""}, *said]
        content = [{"type": "output_text", "text": self._speaker.says(messages), "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "status": "completed",
            "role": "assistant",
            "content": content,
        }


def plain(given: Any) -> list[Json]:
    """Items as messages of plain text; a tool's output is a message of its own, other items say nothing."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages = []
    for item in given or ():
        if "role" in item:
            messages.append({"role": item["role"], "content": _text(item["content"])})
        elif str(item.get("type")).endswith("_output"):
            messages.append({"role": "tool", "content": _text(item.get("output"))})
    return messages


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part.get("type") in ("input_text", "output_text"))
    return content if isinstance(content, str) else ""


def _conversation(body: Json) -> str | None:
    given = body.get("conversation")
    return given.get("id") if isinstance(given, dict) else given


def _refused(code: str) -> JSONResponse:
    error = {"message": "not a request this model can answer", "type": "invalid_request_error", "code": code}
    return JSONResponse({"error": error}, 400)


def _reply(body: Json, item: Json, name: str, prompt_bytes: int) -> Json:
    prompt, answer = prompt_bytes // BYTES_PER_TOKEN, len(json.dumps(item).encode()) // BYTES_PER_TOKEN
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": prompt, "output_tokens": answer, "total_tokens": prompt + answer, **details}
    given = {member: body.get(member) for member in ("instructions", "previous_response_id", "metadata")}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    ended = {"status": "completed", "error": None, "incomplete_details": None, "output": [item], "usage": usage}
    return {"id": name, "object": "response", "created_at": 0, "model": MODEL, **given, **settings, **ended}


def _sse(number: int, event: Json) -> str:
    data = json.dumps({**event, "sequence_number": number}, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}"


def _events(reply: Json) -> Iterator[Json]:
    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(reply["output"]):
        told = _call_events(item) if item["type"] == "function_call" else _message_events(item)
        empty: Json = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        added = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        for event in told:
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": reply}


def _call_events(item: Json) -> Iterator[Json]:
    yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], "name": item["name"]}


def _message_events(item: Json) -> Iterator[Json]:
    for index, part in enumerate(item["content"]):
        yield {"type": "response.content_part.added", "content_index": index, "part": {**part, "text": ""}}
        for token in tokens(part["text"]):
            yield {"type": "response.output_text.delta", "content_index": index, "delta": token, "logprobs": []}
        whole = {"content_index": index, "text": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **whole}
        yield {"type": "response.content_part.done", "content_index": index, "part": part}
