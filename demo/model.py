"""A stand-in for a language model: OpenAI-compatible, streaming, and as clever as its prompt.

It answers a question with the sentence of its prompt that shares most words with it, so whoever reads the answer sees
whether memory reached the prompt. It keeps the last requests as they came (``GET /requests``), which a real model
would not show. Run it with ``python -m demo.model --port 0``; it prints its address when it is ready.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from demo.model_messages import MessagesEndpoint
from demo.model_responses import ResponsesEndpoint

MODEL = "stand-in"
REFUSE = "!refuse"
"""A message of this text makes the model answer 400."""
UNKNOWN = "I don't know that yet."
ACKNOWLEDGED = "Got it, thank you for telling me."
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about an and are as at be been but by can could did do does for from had has have how i in is it its me my
        of on or our remember s should so t tell that the their them there they this to user was we what when where
        which who why will with would you your""",
    )
)


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

    def shown(self) -> dict[str, Any]:
        """For ``GET /requests``; bytes as latin-1 text, one character per byte."""
        headers, body, answer = self.headers, self.body.decode("latin-1"), self.answer.decode("latin-1")
        return {"method": self.method, "path": self.path, "headers": headers, "body": body, "answer": answer}


def _content_words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower())) - _STOP_WORDS


def _sentences(messages: Iterable[dict[str, Any]]) -> list[str]:
    texts = [m["content"] for m in messages if m.get("role") != "assistant" and isinstance(m.get("content"), str)]
    lines = [line.strip(" -*\t") for text in texts for line in text.splitlines()]
    return [part for line in lines for part in re.split(r"(?<=[.!?])\s+", line) if part]


def answer_to(messages: list[dict[str, Any]]) -> str:
    """What the prompt itself says about the last user message; an acknowledgement when that was not a question."""
    asked = next((i for i in reversed(range(len(messages))) if messages[i].get("role") == "user"), None)
    question = messages[asked].get("content") if asked is not None else None
    if asked is None or not isinstance(question, str):
        return UNKNOWN
    if not question.rstrip().endswith("?"):
        return ACKNOWLEDGED
    wanted = _content_words(question)
    known = _sentences(messages[:asked] + messages[asked + 1 :])
    best = max(known, key=lambda sentence: len(wanted & _content_words(sentence)), default="")
    return f"From what I was told: {best}" if wanted & _content_words(best) else UNKNOWN


class StandIn:
    """The model's state: what it received (at most ``requests_max`` requests) and how fast it speaks.

    ``token_delay_s`` is waited before each streamed token, as in a model that thinks. ``scripted`` answers, when
    there are any, are given one by one instead of answers from the prompt.
    """

    def __init__(self, *, requests_max: int = 200, token_delay_s: float = 0.01) -> None:
        self.received: deque[Received] = deque(maxlen=requests_max)
        self.token_delay_s = token_delay_s
        self.scripted: deque[str] = deque()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route(
                    "/v1/messages",
                    MessagesEndpoint(self, keep=self._keep, answer_to=answer_to).answer,
                    methods=["POST"],
                ),
                Route(
                    "/v1/responses",
                    ResponsesEndpoint(self, keep=self._keep, answer_to=answer_to).answer,
                    methods=["POST"],
                ),
                Route("/v1/models", self._models),
                Route("/requests", self._requests),
                Route("/{path:path}", self._echo, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    async def _keep(self, request: Request) -> Received:
        headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in request.headers.raw]
        received = Received(request.method, request.url.path, headers, await request.body())
        self.received.append(received)
        return received

    async def _chat(self, request: Request) -> Response:
        received = await self._keep(request)
        try:
            body = json.loads(received.body)
            messages = [message for message in body["messages"] if isinstance(message, dict)]
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": {"message": "not a chat completions request", "code": 400}}, 400)
        if any(message.get("content") == REFUSE for message in messages):
            return JSONResponse({"error": {"message": "refused, as asked", "code": 400}}, 400)
        text = self.scripted.popleft() if self.scripted else answer_to(messages)
        if body.get("stream") is True:
            events = self._stream(received, text)
            return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        received.answer = json.dumps(_completion(text, len(received.body)), indent=1).encode()
        return Response(received.answer, media_type="application/json")

    async def _stream(self, received: Received, text: str) -> AsyncIterator[bytes]:
        deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": token} for token in re.findall(r"\s*\S+|\s+$", text)]
        chunks = [_chunk(delta, None) for delta in deltas] + [_chunk({}, "stop"), "[DONE]"]
        for chunk in chunks:
            await asyncio.sleep(self.token_delay_s)
            event = f"data: {chunk}\n\n".encode()
            received.answer += event
            yield event

    async def _models(self, request: Request) -> Response:
        await self._keep(request)
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "semmem-demo"}]})

    async def _requests(self, request: Request) -> Response:
        return JSONResponse([received.shown() for received in self.received])

    async def _echo(self, request: Request) -> Response:
        received = await self._keep(request)
        received.answer = received.body
        return Response(received.body, media_type=request.headers.get("content-type", "text/plain"))


def _completion(text: str, prompt_bytes: int) -> dict[str, Any]:
    """A whole answer; a token is counted as four bytes, the usual rule of thumb for English."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    prompt, answer = prompt_bytes // 4, len(text.encode()) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    head = {"id": "chatcmpl-stand-in", "object": "chat.completion", "created": 0, "model": MODEL}
    return {**head, "choices": [choice], "usage": usage}


def _chunk(delta: dict[str, str], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-stand-in", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    return json.dumps({**head, "choices": [choice]}, ensure_ascii=False)


def server_for(stand_in: StandIn) -> uvicorn.Server:
    """A server that is given its socket when it runs, so that its port is known before."""
    config = uvicorn.Config(stand_in.app(), log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
    return uvicorn.Server(config)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demo.model", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 chooses a free one")
    parser.add_argument("--token-delay-ms", type=float, default=10.0, help="before each streamed token")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
    print(f"model ready http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server_for(StandIn(token_delay_s=options.token_delay_ms / 1000)).run(sockets=[listener])


if __name__ == "__main__":
    main()
