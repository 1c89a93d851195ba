"""A model server whose every answer carries a nonce of its own, and which fails on request.

What it does is said by the request's header ``x-stand-in``, a list like ``sse=1, tokens=40, token_ms=10``. What it
received and sent, and when, is kept for whoever asked (header ``x-trial``).
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.faults import answers
from tests.faults.loops import LoopThread

NONCE_CHARS = 16
BODILESS = (204, 304)


@dataclass(frozen=True, slots=True)
class Script:
    """How to answer one request. ``tokens`` pieces, ``token_ms`` apart, after ``think_ms`` of silence.

    ``reset_after`` pieces the connection is reset (-1: never); ``pad`` bytes are added to each piece; ``drop``: no
    answer at all; ``empty``: a head without a body; ``bomb_mb``: gzip that unpacks to so many megabytes; ``zipped``:
    gzip; ``flood``: so many more headers; ``informs``: 103 comes first; ``trailers``: some at the end; ``length_off``:
    by so much content-length is wrong; ``two_lengths``: it has two.
    """

    sse: bool = False
    status: int = 200
    tokens: int = 20
    token_ms: int = 5
    think_ms: int = 0
    reset_after: int = -1
    pad: int = 0
    drop: bool = False
    empty: bool = False
    bomb_mb: int = 0
    zipped: bool = False
    flood: int = 0
    informs: bool = False
    trailers: bool = False
    length_off: int = 0
    two_lengths: bool = False

    @property
    def chunked(self) -> bool:
        return self.trailers or (self.sse and self.status == 200 and not self.length_off)

    @classmethod
    def read(cls, text: str) -> Script:
        pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
        said: dict[str, Any] = {name: int(value) for name, _, value in pairs}
        return cls(**said)

    def write(self) -> str:
        plain = Script()
        changed = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return ", ".join(f"{name}={int(value)}" for name, value in changed.items() if value != getattr(plain, name))


@dataclass(slots=True)
class Exchange:
    """One request as it came, and its answer: all that was ``planned``, and what went (``answer``, and ``sent`` with
    the monotonic time and the bytes so far of each piece).
    """

    nonce: str
    trial: str
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    whole: bool = False
    planned: bytes = b""
    answer: bytes | bytearray = field(default_factory=bytearray)
    sent: list[tuple[float, int]] = field(default_factory=list)
    cut: bool = False
    ended: bool = False


class Upstream:
    """``exchanges`` are all of them, in the order in which their heads came. ``crowd`` answers those that say that they
    belong to one (header ``x-crowd``): nobody looks after them one by one."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.port = 0
        self.crowd: Callable[[Exchange, asyncio.StreamWriter], Awaitable[None]] | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of(self, trial: str) -> Exchange | None:
        return next((exchange for exchange in list(self.exchanges) if exchange.trial == trial), None)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        exchange = _head(await reader.readuntil(b"\r\n\r\n"))
        self.exchanges.append(exchange)
        headers = dict(exchange.headers)
        script = Script.read(headers.get("x-stand-in", ""))
        try:
            async for piece in _body(reader, headers):
                exchange.body += piece
            exchange.whole = True
            if headers.get("upgrade") == "websocket":
                return await _echo(exchange, reader, writer)
            if self.crowd is not None and "x-crowd" in headers:
                await self.crowd(exchange, writer)
                return True
            gone = asyncio.get_running_loop().create_task(_until_gone(reader))
            try:
                return await self._answer(exchange, script, writer, gone)
            finally:
                gone.cancel()
                with suppress(asyncio.CancelledError):
                    await gone
        except (ConnectionError, asyncio.IncompleteReadError):
            exchange.cut = True
            raise
        finally:
            exchange.ended = True

    async def _answer(
        self, exchange: Exchange, script: Script, writer: asyncio.StreamWriter, gone: asyncio.Task[None]
    ) -> bool:
        await self._pause(script.think_ms, gone)
        if script.drop:
            return False
        pieces = _pieces(exchange.path, exchange.nonce, script)
        exchange.planned = b"".join(pieces)
        length = None if script.chunked else len(exchange.planned)
        if script.informs:
            writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n")
        writer.write(_answer_head(exchange.nonce, script, length))
        for number, piece in enumerate(pieces):
            if number == script.reset_after:
                _reset(writer)
                return False
            await self._pause(script.token_ms if number else 0, gone)
            exchange.answer += piece
            writer.write(piece if length is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            exchange.sent.append((time.monotonic(), len(exchange.answer)))
        if length is None:
            writer.write(b"0\r\n%b\r\n" % (b"x-checksum: 1234\r\n" if script.trailers else b""))
        await writer.drain()
        return not script.length_off

    async def _pause(self, milliseconds: int, gone: asyncio.Task[None]) -> None:
        await asyncio.wait([gone], timeout=milliseconds / 1000)
        if gone.done():
            raise ConnectionResetError


async def _echo(exchange: Exchange, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """A websocket: whatever comes goes back, until the caller closes. What is in its frames is no concern here."""
    upgraded = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade"
    writer.write(f"{upgraded}\r\nx-nonce: {exchange.nonce}\r\n\r\n".encode())
    while piece := await reader.read(1 << 16):
        exchange.answer += piece
        exchange.planned = bytes(exchange.answer)
        writer.write(piece)
        await writer.drain()
    return False


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """Ends when the caller closes. Envoy does not pipeline, so nothing is ever in the way while an answer is due."""
    while not reader.at_eof():
        if reader.exception() is not None:
            return
        await asyncio.sleep(0.005)


def _head(raw: bytes) -> Exchange:
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = [line.partition(":") for line in lines]
    headers = [(name.lower(), value.strip()) for name, _, value in pairs]
    trial = next((value for name, value in headers if name == "x-trial"), "")
    return Exchange(secrets.token_hex(NONCE_CHARS // 2), trial, method, path, headers)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
        return
    left = int(headers.get("content-length", "0"))
    while left:
        piece = await reader.read(min(left, 1 << 20))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


def _pieces(path: str, nonce: str, script: Script) -> list[bytes]:
    if script.empty:
        return []
    if script.status != 200:
        return [answers.refusal(nonce, script.status)]
    if script.bomb_mb:
        return _cut(answers.bomb(script.bomb_mb, sse=script.sse), script.tokens)
    if script.zipped:  # two texts of one length do not pack to the same, so this one has no nonce
        whole = answers.pieces(path, "0" * NONCE_CHARS, _words("0" * NONCE_CHARS, script), sse=script.sse)
        return _cut(answers.zipped(b"".join(whole)), script.tokens)
    return answers.pieces(path, nonce, _words(nonce, script), sse=script.sse)


def _words(nonce: str, script: Script) -> list[str]:
    return [f"w{number}-{nonce}{'x' * script.pad} " for number in range(script.tokens)]


def _cut(body: bytes, parts: int) -> list[bytes]:
    step = max(1, len(body) // parts)
    return [body[start : start + step] for start in range(0, len(body), step)]


def _answer_head(nonce: str, script: Script, length: int | None) -> bytes:
    kind = "text/event-stream" if script.sse and script.status == 200 else "application/json"
    lines = [f"HTTP/1.1 {script.status} {HTTPStatus(script.status).phrase}", f"x-nonce: {nonce}"]
    if script.status not in BODILESS:
        lines += [f"content-type: {kind}"]
        lines += ["transfer-encoding: chunked" if length is None else f"content-length: {length + script.length_off}"]
    if script.two_lengths:
        lines += ["content-length: 7"]
    if script.bomb_mb or script.zipped:
        lines += ["content-encoding: gzip"]
    if 300 <= script.status < 400:
        lines += ["location: http://elsewhere.test/v1/"]
    lines += [f"x-flood-{number}: {'f' * 300}" for number in range(script.flood)]
    return "\r\n".join([*lines, "", ""]).encode()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset instead of a proper end."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def upstream(loop: LoopThread) -> Iterator[Upstream]:
    server = Upstream()
    loop.run(server.open())
    try:
        yield server
    finally:
        loop.run(server.close())
