"""An HTTP listener that lives in semmem's own event loop and leaves its signals alone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn

from semmem.management.connections import BoundedProtocol


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        """Once a second, for the date that every answer carries. uvicorn's own looks ten times as often whether it
        shall end, which an idle process would notice."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.ending.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The composition root handles signals, for all doors together."""
        yield


class HttpListener:
    """Serves one ASGI application on one address, over HTTP/1.1 alone: no websockets, no upgrade.

    At most ``connections_max`` connections at a time. One that sends no head is closed after ``head_timeout_s`` to
    twice that. What a proxy says of its clients (``x-forwarded-for``) is not believed.
    """

    def __init__(self, app: Any, address: str, *, connections_max: int = 256, head_timeout_s: float = 10.0) -> None:
        self._address = address
        protocol: Any = partial(BoundedProtocol, connections_max=connections_max, head_timeout_s=head_timeout_s)
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        self._server = _Server(config)
        self._socket: socket.socket | None = None

    def bind(self) -> str:
        """Take the address, and tell it with the port that was chosen. Raises OSError naming it."""
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        try:
            self._socket = socket.create_server(
                (host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise OSError(f"cannot listen for HTTP on {self._address}: {error.strerror}") from None
        return f"{self._address.rpartition(':')[0]}:{self._socket.getsockname()[1]}"

    async def serve(self) -> None:
        """Serve until ``stop``."""
        if self._socket is None:
            raise RuntimeError("bind first")
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Ask ``serve`` to end."""
        self._server.should_exit = True
        self._server.ending.set()

    def close(self) -> None:
        """Give the address back. Idempotent."""
        if self._socket is not None:
            self._socket.close()
