"""HTTP/1.1 over raw asyncio: connections that are kept, one request at a time on each, clocks read in the callback."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bench.upstream import STAMP

_HEADER = re.compile(rb"\r\n(content-length|x-prompt-bytes|x-semmem-outcome): *([^\r]*)", re.IGNORECASE)
_TOKEN = re.compile(STAMP + rb"(\d+)}")
_LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """One exchange. Seconds from the request's write. ``tokens``: when each was read, by the monotonic clock, and how
    long after the upstream wrote it."""

    status: int
    outcome: str
    prompt_bytes: int
    seconds: float
    first_token_s: float | None = None
    tokens: tuple[tuple[float, float], ...] = ()


class Connection(asyncio.Protocol):
    """One connection to Envoy."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._read = 0
        self._first_token_s: float | None = None
        self._tokens: list[tuple[float, float]] = []
        self.has_token = asyncio.Event()
        self._waiting: asyncio.Future[Reply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class, with the same methods

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionError(f"Envoy closed the connection: {error}"))

    @property
    def tokens(self) -> Sequence[tuple[float, float]]:
        """Those that came so far, of the exchange that is under way: see Reply."""
        return self._tokens

    async def ask(self, request: bytes, timeout_s: float) -> Reply:
        """Raises TimeoutError, and ConnectionError when Envoy hangs up."""
        self._buffer.clear()
        self._read, self._first_token_s, self._tokens = 0, None, []
        self.has_token.clear()
        self._waiting = asyncio.get_running_loop().create_future()
        self._began = time.monotonic_ns()
        self._transport.write(request)
        async with asyncio.timeout(timeout_s):
            return await self._waiting

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self._buffer += data
        self._read_tokens(now)
        end = self._buffer.find(b"\r\n\r\n") + 4
        if end < 4 or self._waiting is None or self._waiting.done():
            return
        headers = {name.lower(): value for name, value in _HEADER.findall(self._buffer, 0, end)}
        length = headers.get(b"content-length")
        whole = self._buffer.endswith(_LAST_CHUNK) if length is None else len(self._buffer) >= end + int(length)
        if whole:
            self._waiting.set_result(self._reply(headers, (now - self._began) / 1e9))

    def _read_tokens(self, now: int) -> None:
        for stamp in _TOKEN.finditer(self._buffer, self._read):
            self._read = stamp.end()
            self._tokens.append((now / 1e9, (now - int(stamp[1])) / 1e9))
            if self._first_token_s is None:
                self._first_token_s = (now - self._began) / 1e9
                self.has_token.set()

    def _reply(self, headers: dict[bytes, bytes], seconds: float) -> Reply:
        return Reply(
            status=int(self._buffer[9:12]),
            outcome=headers.get(b"x-semmem-outcome", b"").decode(),
            prompt_bytes=int(headers.get(b"x-prompt-bytes", b"0")),
            seconds=seconds,
            first_token_s=self._first_token_s,
            tokens=tuple(self._tokens),
        )


async def connect(port: int, count: int) -> list[Connection]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(count)]
