"""The model's place. Answers at once; a stream's tokens carry the time at which they were written.

Raw asyncio, because a web framework would cost more than what is measured. Each answer says how many bytes the request
had (``x-prompt-bytes``), so that a client can see that memories were put in.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from typing import cast

import uvloop

STAMP = b'"sent_ns":'
"""Before the time of CLOCK_MONOTONIC, which all processes of a machine share, in nanoseconds."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAM = b'"stream": true'
_CHUNK = b'{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,'
_ANSWER = (
    b'{"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Of course. Here is what I would do in your place, step by step."},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":15,"total_tokens":515}}'
)


class Upstream(asyncio.Protocol):
    """One connection; one request at a time on it, as Envoy does."""

    def __init__(self, tokens: int, interval_s: float) -> None:
        self._tokens = tokens
        self._interval_s = interval_s
        self._buffer = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class, with the same methods

    def connection_lost(self, _error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = _LENGTH.search(self._buffer, 0, end)
        total = end + (int(length[1]) if length else 0)
        if len(self._buffer) >= total:
            streamed = self._buffer.find(_STREAM, end, total) >= 0
            del self._buffer[:total]
            self._answer(total - end, streamed)

    def _answer(self, prompt_bytes: int, streamed: bool) -> None:
        head = b"HTTP/1.1 200 OK\r\nx-prompt-bytes: %d\r\n" % prompt_bytes
        if streamed:
            self._transport.write(head + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            self._token(0, asyncio.get_running_loop().time())
        else:
            head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_ANSWER)
            self._transport.write(head + _ANSWER)

    def _token(self, number: int, began: float) -> None:
        if number == self._tokens:
            last = _CHUNK + b'"delta":{},"finish_reason":"stop"}]}'
            self._transport.write(_event(last) + _event(b"[DONE]") + b"0\r\n\r\n")
            return
        self._transport.write(_event(_CHUNK + b'"delta":{"content":"word "}}],' + STAMP + b"%d}" % time.monotonic_ns()))
        due = began + (number + 1) * self._interval_s
        self._timer = asyncio.get_running_loop().call_at(due, self._token, number + 1, began)


def _event(data: bytes) -> bytes:
    """One server-sent event as one HTTP chunk."""
    return b"%x\r\ndata: %b\n\n\r\n" % (len(data) + 8, data)


async def _serve(tokens: int, interval_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(tokens, interval_s), "127.0.0.1", 0)
    print(f"upstream ready {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--interval-ms", type=float, required=True)
    arguments = parser.parse_args()
    uvloop.run(_serve(arguments.tokens, arguments.interval_ms / 1000))
