"""An HTTP listener that lives in semmem's own event loop and leaves its signals alone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The composition root handles signals, for all doors together."""
        yield


class HttpListener:
    """Serves one ASGI application on one address."""

    def __init__(self, app: Any, address: str) -> None:
        self._address = address
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5)
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

    def close(self) -> None:
        """Give the address back. Idempotent."""
        if self._socket is not None:
            self._socket.close()
