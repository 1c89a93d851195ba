"""The stand-in model's third tongue: ``POST /v1/responses``, JSON and streaming, with the chains that this API keeps.

What was said is remembered under the response's id and the conversation's, instructions never are. It calls a tool
once when the user's words name it, and otherwise answers like the stand-in does everywhere.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections import OrderedDict, deque
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


class ResponsesEndpoint:
    """``keep`` records a request; ``answer_to`` answers messages of plain text, each {role, content}.

    The last ``chains_max`` responses and conversations are remembered.
    """

    def __init__(
        self,
        speaker: Speaker,
        *,
        keep: Callable[[Request], Awaitable[Received]],
        answer_to: Callable[[list[Json]], str],
        chains_max: int = 1000,
    ) -> None:
        self._speaker = speaker
        self._keep = keep
        self._answer_to = answer_to
        self._chains: OrderedDict[str, list[Json]] = OrderedDict()
        self._chains_max = chains_max
        self._numbers = itertools.count(1)

    async def answer(self, request: Request) -> Response:
        received = await self._keep(request)
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
            events = self._stream(received, reply)
            return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        received.answer = json.dumps(reply, indent=1).encode()
        return Response(received.answer, media_type="application/json")

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
                self._chains.move_to_end(name)
        while len(self._chains) > self._chains_max:
            self._chains.popitem(last=False)

    def _item(self, body: Json, said: list[Json], number: int) -> Json:
        if called := _called_tool(body, said):
            call = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": called, "arguments": "{}"}
            return {"type": "function_call", "status": "completed", **call}
        messages = [{"role": "system", "content": body.get("instructions") or ""}, *said]
        text = self._speaker.scripted.popleft() if self._speaker.scripted else self._answer_to(messages)
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "status": "completed",
            "role": "assistant",
            "content": content,
        }

    async def _stream(self, received: Received, reply: Json) -> AsyncIterator[bytes]:
        for number, event in enumerate(_events(reply)):
            await asyncio.sleep(self._speaker.token_delay_s)
            data = json.dumps({**event, "sequence_number": number}, ensure_ascii=False)
            written = f"event: {event['type']}\ndata: {data}\n\n".encode()
            received.answer += written
            yield written


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


def _called_tool(body: Json, said: list[Json]) -> str | None:
    """The offered function that the last message, when it is the user's, calls by its name."""
    words = set(re.findall(r"\w+", said[-1]["content"])) if said and said[-1]["role"] == "user" else set()
    return next((tool["name"] for tool in body.get("tools") or () if tool.get("name") in words), None)


def _refused(code: str) -> JSONResponse:
    error = {"message": "not a request this model can answer", "type": "invalid_request_error", "code": code}
    return JSONResponse({"error": error}, 400)


def _reply(body: Json, item: Json, name: str, prompt_bytes: int) -> Json:
    """A whole response; a token is counted as four bytes, the usual rule of thumb for English."""
    prompt, answer = prompt_bytes // 4, len(json.dumps(item).encode()) // 4
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": prompt, "output_tokens": answer, "total_tokens": prompt + answer, **details}
    given = {member: body.get(member) for member in ("instructions", "previous_response_id", "metadata")}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    ended = {"status": "completed", "error": None, "incomplete_details": None, "output": [item], "usage": usage}
    return {"id": name, "object": "response", "created_at": 0, "model": "stand-in", **given, **settings, **ended}


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
        for token in re.findall(r"\s*\S+|\s+$", part["text"]):
            yield {"type": "response.output_text.delta", "content_index": index, "delta": token, "logprobs": []}
        whole = {"content_index": index, "text": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **whole}
        yield {"type": "response.content_part.done", "content_index": index, "part": part}
