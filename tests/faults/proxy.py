"""A TCP proxy that can be told to misbehave: it stands between semmem and something semmem depends on."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.loops import LoopThread

HOST = "127.0.0.1"


class Proxy:
    """``pass``, ``hang`` (takes bytes, forwards none), ``slow`` (each piece ``delay_s`` late), ``reset`` (ends every
    connection), ``refuse`` (nobody listens). ``touched`` counts connections and pieces that were mistreated."""

    def __init__(self, target_port: int, *, delay_s: float = 0.6) -> None:
        self._target_port = target_port
        self._delay_s = delay_s
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._mode = "pass"
        self._passing = asyncio.Event()
        self._passing.set()
        self.port = 0
        self.touched = 0

    async def open(self) -> None:
        await self._listen()

    async def close(self) -> None:
        await self.behave("refuse")

    async def behave(self, mode: str) -> None:
        self._mode = mode
        if mode == "hang":
            self._passing.clear()
        else:
            self._passing.set()
        if mode in ("reset", "refuse"):
            for writer in list(self._writers):
                _abort(writer)
        if mode == "refuse" and self._server is not None:
            self._server.close()
            self._server = None
        if mode != "refuse" and self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "reset":
            self.touched += 1
            _abort(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target_port)
        except OSError:
            _abort(writer)
            return
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers -= both
            for end in both:
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 16):
            if self._mode != "pass":
                self.touched += 1
            if self._mode == "slow":
                await asyncio.sleep(self._delay_s)
            await self._passing.wait()
            writer.write(piece)
            await writer.drain()
        writer.close()


def _abort(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def proxy(loop: LoopThread, target_port: int) -> Iterator[Proxy]:
    server = Proxy(target_port)
    loop.run(server.open())
    try:
        yield server
    finally:
        loop.run(server.close())
