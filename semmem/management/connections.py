"""HTTP/1.1 connections that end: so many at a time, and each has so long for the head of a request.

The server's own timer runs between requests only, so a connection that sends its first head byte by byte, or nothing,
would stay for ever.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from semmem.management.problems import problem

NOT_HTTP = json.dumps(problem("INVALID_REQUEST", "this is not an HTTP request")).encode()


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol; beyond ``connections_max`` a new connection is closed without an answer.

    ``head_timeout_s``: what a head may take at least; twice that ends every connection that sends none.
    """

    def __init__(self, *arguments: Any, connections_max: int, head_timeout_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connections_max = connections_max
        self._head_timeout_s = head_timeout_s
        self._looked_at: object = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._connections_max:
            transport.abort()
        else:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(self._head_timeout_s, self._look)

    def _look(self) -> None:
        """Close when no request was under way, or came, since the last look."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way or self.cycle is not self._looked_at:
            self._looked_at = self.cycle
            self._look_later()
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What no request can be made of is answered in the shape of every error."""
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(NOT_HTTP)).encode()))
        try:
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=NOT_HTTP), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # something was answered already
            pass
        self.transport.close()
