"""An OpenAI-compatible chat completions server that answers from a script, faults included. Loopback only.

    async with ScriptedLLM("first answer", Reply(status=429), "third") as llm:
        OpenAIModel(llm.base_url, "any")

The last reply of the script is repeated. A function from the request's body to a reply may stand for a reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One answer. ``raw`` replaces the whole body; ``hang`` never answers; ``drop`` closes the connection after the
    head; ``slow_s`` waits before answering."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    slow_s: float = 0.0
    hang: bool = False
    drop: bool = False


Line = str | Reply | Callable[[Body], "str | Reply"]


class ScriptedLLM:
    """``requests`` holds every body that came in, ``headers`` the headers with it (names in lower case).

    ``refuses`` are the response_format types that are refused with ``refusal``.
    """

    def __init__(
        self,
        *script: Line,
        refuses: frozenset[str] = frozenset(),
        refusal: Reply | None = None,
    ) -> None:
        self._script = script or ("",)
        self._refuses = refuses
        self._refusal = refusal or Reply(status=400, raw=b'{"error": {"message": "response_format is not supported"}}')
        self._answered = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    async def __aenter__(self) -> ScriptedLLM:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._connections):
            writer.transport.abort()
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    @property
    def formats(self) -> list[str]:
        """The response_format type of each request, ``none`` where there was none."""
        return [request.get("response_format", {}).get("type", "none") for request in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body: Body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.paths.append(head[0].split(" ")[1])
        self.headers.append(headers)
        self.requests.append(body)
        reply = self._reply(body)
        await asyncio.sleep(reply.slow_s)
        if reply.hang:
            await reader.read()  # until the client gives up
            return False
        writer.write(_head(reply) if reply.drop else _head(reply) + _content(reply))
        await writer.drain()
        return not reply.drop

    def _reply(self, body: Body) -> Reply:
        if body.get("response_format", {}).get("type") in self._refuses:
            return self._refusal
        line = self._script[min(self._answered, len(self._script) - 1)]
        self._answered += 1
        answer = line(body) if callable(line) else line
        return Reply(answer) if isinstance(answer, str) else answer


def _content(reply: Reply) -> bytes:
    if reply.raw is not None:
        return reply.raw
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}).encode()


def _head(reply: Reply) -> bytes:
    headers = {"content-type": "application/json", "content-length": str(len(_content(reply))), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
