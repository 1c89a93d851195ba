"""The two ways to the tools: streamable HTTP at /mcp of the API, behind the API's own door, and stdio for one user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from fastapi import FastAPI
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import BaseRoute, Route

from semmem.management.door import CALLER, App, Receive, Scope, Send
from semmem.management.mcp_tools import memory_server

log = logging.getLogger(__name__)

PATH = "/mcp"
TIMEOUT_S = 60.0


class Tools:
    """Tools for any number of APIs: they answer while ``run`` runs, from when ``ready`` is set."""

    def __init__(self, server: MCPServer, routes: Sequence[BaseRoute]) -> None:
        self._server = server
        self._routes = routes
        self.ready = asyncio.Event()

    def add_to(self, api: FastAPI) -> None:
        api.router.routes.extend(self._routes)

    async def run(self) -> None:
        """Until cancelled."""
        async with self._server.session_manager.run():
            self.ready.set()
            await asyncio.Event().wait()


def mount(api: FastAPI, *, body_bytes_max: int) -> Tools:
    """Add the tools to the API."""
    tools = tools_of(api, body_bytes_max=body_bytes_max)
    tools.add_to(api)
    return tools


def tools_of(api: App, *, body_bytes_max: int) -> Tools:
    """Tools whose calls are answered by ``api``, an ASGI application.

    Each request stands for itself, so any replica may get it. Host and Origin are the door's business.
    """

    async def call(context: Context, method: str, path: str, asked: Mapping[str, Any]) -> httpx.Response:
        request: Any = context.request_context.request

        async def for_caller(scope: Scope, receive: Receive, send: Send) -> None:
            await api({**scope, CALLER: request.scope[CALLER]}, receive, send)

        transport = httpx.ASGITransport(app=for_caller)
        async with httpx.AsyncClient(transport=transport, base_url="http://semmem") as http:
            return await http.request(method, path, **asked)

    server = memory_server(call)
    quieten(logging.getLogger("mcp"))
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=body_bytes_max,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    for route in application.routes:
        if isinstance(route, Route):  # a GET would stay open without end, for news that no request here has
            route.methods = {"POST"}
            route.app = _named(route)
    return Tools(server, application.routes)


def _named(route: Route) -> App:
    """The route's application, by which the door knows where a call went: only the framework's own routes say so."""
    app = route.app

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = route
        await app(scope, receive, send)

    return call


class _WithoutWords(logging.Handler):
    """Says that something was logged, and where: the SDK's lines show what a caller wrote, or a failure's values."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        failure = record.exc_info[0] if record.exc_info else None
        log.log(record.levelno, "the tools' SDK: %s in %s", failure.__name__ if failure else "a message", record.name)


def quieten(logger: logging.Logger) -> None:
    """What it and those below it log loses its words. Idempotent."""
    logger.propagate = False
    if not any(isinstance(handler, _WithoutWords) for handler in logger.handlers):
        logger.addHandler(_WithoutWords())


async def serve_stdio(url: str, token: str, user: str | None) -> None:
    """Answer on standard input and output, by calls to a running semmem, until the input ends."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_S, trust_env=False) as http:

        async def call(_context: Context, method: str, path: str, asked: Mapping[str, Any]) -> httpx.Response:
            try:
                return await http.request(method, path, **asked)
            except httpx.HTTPError as error:
                failure = {"code": "NO_ANSWER", "message": f"{url}: {type(error).__name__}"}
                return httpx.Response(503, json={"error": failure})

        await memory_server(call, user=user).run_stdio_async()
