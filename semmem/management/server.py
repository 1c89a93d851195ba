"""An HTTP listener that lives in semmem's own event loop and leaves its signals alone; its connections end: so many at
a time, and each has so long for the head of a request.

The server's own timer runs between requests only, so a connection that sends its first head byte by byte, or nothing,
would stay for ever.
"""

import asyncio
import contextlib
import hashlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from semmem.management.door import CLOSE, OPEN_FOLDER, has_body, head_of
from semmem.management.problems import problem

NOT_HTTP = json.dumps(problem("INVALID_REQUEST", "this is not an HTTP request")).encode()


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol; beyond ``connections_max`` a new connection is closed without an answer. ``head_timeout_s``:
    what a head may take at least; twice that ends every connection that sends none."""

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
            self._timer = self.loop.call_later(self._head_timeout_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close when no request was under way, or came, since the last look."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way or self.cycle is not self._looked_at:
            self._looked_at = self.cycle
            self._timer = self.loop.call_later(self._head_timeout_s, self._look)
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What no request can be made of is answered in the shape of every error."""
        length = str(len(NOT_HTTP)).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close"), (b"content-length", length)]
        with contextlib.suppress(h11.LocalProtocolError):  # something was answered already
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=NOT_HTTP), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


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
    """Serves one ASGI application on one address, over HTTP/1.1 alone: no websockets, no upgrade. At most
    ``connections_max`` connections at a time. One that sends no head is closed after ``head_timeout_s`` to twice that.
    What a proxy says of its clients (``x-forwarded-for``) is not believed."""

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
        where, _, port = self._address.rpartition(":")
        host = where.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, int(port)), family=family)
        except OSError as error:
            raise OSError(f"cannot listen for HTTP on {self._address}: {error.strerror}") from None
        return f"{where}:{self._socket.getsockname()[1]}"

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


# --- health and metrics -----------------------------------------------------------------------------------------------
# On an address of their own: liveness knows only this process, readiness what it needs.

Ready = Callable[[], Mapping[str, str | None]]
"""What is wrong with each component that is needed, in words without content; None: nothing."""


def create_health(ready: Ready, metrics_page: Callable[[str], tuple[bytes, str]]) -> Starlette:
    """``metrics_page`` gives the page for an Accept header, and its media type. Readiness is true or false for each
    component, with ``why`` for those that are not ready: then it is 503. Nothing here takes a body: one that is
    announced is refused unread, and its connection closed."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_request: Request) -> Response:
        components = ready()
        why = {name: wrong for name, wrong in components.items() if wrong is not None}
        told: dict[str, object] = {name: wrong is None for name, wrong in components.items()}
        return JSONResponse({**told, "why": why} if why else told, status_code=503 if why else 200)

    async def scrape(request: Request) -> Response:
        page, media_type = metrics_page(request.headers.get("accept", ""))
        return Response(page, media_type=media_type)

    routes = [Route("/healthz", live), Route("/readyz", readiness), Route("/metrics", scrape)]
    return Starlette(routes=routes, middleware=[Middleware(_bodiless)])


def _bodiless(app: ASGIApp) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and has_body(head_of(scope)):
            await PlainTextResponse("nothing here takes a body\n", 413, CLOSE)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return call


# --- the Studio -------------------------------------------------------------------------------------------------------
# Its files, as they come with the package: read once, served from memory, under a policy that lets a page load nothing
# from elsewhere. They hold nothing of anybody; what they show they ask of the API, with the caller's token.

INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def files() -> Mapping[str, Response]:
    """By name, each with a digest of its body, so that a browser that has it asks only whether it is still the same.
    Raises KeyError for a file whose kind has no media type."""
    found = {}
    for each in resources.files("semmem.management").joinpath("studio").iterdir():
        body, media_type = each.read_bytes(), MEDIA_TYPES[each.name[each.name.rfind(".") :]]
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        found[each.name] = Response(body, headers=HEADERS | {"etag": etag}, media_type=media_type)
    return found


def add_studio(api: FastAPI) -> None:
    """At OPEN_FOLDER; whoever opens the API's bare address in a browser is led there."""
    known = files()

    async def page(request: Request) -> Response:
        file = known.get(request.path_params.get("name") or INDEX)
        if file is None:
            return PlainTextResponse("the Studio has no such page\n", 404, HEADERS)
        etag = file.headers["etag"]
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=HEADERS | {"etag": etag})
        return file

    async def to_studio(_request: Request) -> Response:
        return RedirectResponse(f"{OPEN_FOLDER}/", 307, HEADERS)

    api.mount(OPEN_FOLDER, Starlette(routes=[Route("/", page), Route("/{name}", page)]))
    api.add_route("/", to_studio)
