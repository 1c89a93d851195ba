"""What the stand-in model's APIs share: the requests it received, how fast it speaks, and what it says."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from demo.answering import Json, answer_to

MODEL = "stand-in"
BYTES_PER_TOKEN = 4
"""The usual rule of thumb for English."""


@dataclass(slots=True)
class Received:
    """One request exactly as it came, and the bytes of the answer it got."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    answer: bytes = b""

    def header(self, name: str) -> str | None:
        """The value of the first header of this (lower-case) name."""
        return next((value for key, value in self.headers if key == name), None)

    def shown(self) -> Json:
        """For ``GET /requests``; bytes as latin-1 text, one character per byte."""
        headers, body, answer = self.headers, self.body.decode("latin-1"), self.answer.decode("latin-1")
        return {"method": self.method, "path": self.path, "headers": headers, "body": body, "answer": answer}


class Speaker:
    """The model's state: what it received (at most ``requests_max`` requests) and how fast it speaks.

    ``token_delay_s`` is waited before each streamed event, as in a model that thinks. ``scripted`` answers, when
    there are any, are given one by one instead of answers from the prompt.
    """

    def __init__(self, *, requests_max: int = 200, token_delay_s: float = 0.01) -> None:
        self.received: deque[Received] = deque(maxlen=requests_max)
        self.token_delay_s = token_delay_s
        self.scripted: deque[str] = deque()

    async def keep(self, request: Request) -> Received:
        """The request as it came, which ``GET /requests`` shows from now on."""
        headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in request.headers.raw]
        received = Received(request.method, request.url.path, headers, await request.body())
        self.received.append(received)
        return received

    def says(self, messages: list[Json]) -> str:
        """The answer to messages of plain text, each {role, content}."""
        return self.scripted.popleft() if self.scripted else answer_to(messages)

    def whole(self, received: Received, reply: Json) -> Response:
        received.answer = json.dumps(reply, indent=1).encode()
        return Response(received.answer, media_type="application/json")

    def streamed(self, received: Received, events: Iterable[str]) -> Response:
        """``events`` in SSE's own format, without the empty line that ends each."""
        stream = self._spoken(received, events)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-cache"})

    async def _spoken(self, received: Received, events: Iterable[str]) -> AsyncIterator[bytes]:
        for event in events:
            await asyncio.sleep(self.token_delay_s)
            written = f"{event}\n\n".encode()
            received.answer += written
            yield written


def tokens(text: str) -> list[str]:
    """The pieces in which a text is streamed: a word each, with the space before it."""
    return re.findall(r"\s*\S+|\s+$", text)


def called_tool(tools: Iterable[Json], messages: list[Json]) -> str | None:
    """The offered tool that the last message, when it is the user's, calls by its name."""
    last = messages[-1] if messages else {}
    words = set(re.findall(r"\w+", last["content"])) if last.get("role") == "user" else set()
    return next((tool["name"] for tool in tools if tool.get("name") in words), None)
