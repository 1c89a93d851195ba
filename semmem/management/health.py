"""Health and metrics, on an address of their own: liveness knows only this process, readiness what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from semmem.management.door import CLOSE, has_body, head_of

Ready = Callable[[], Mapping[str, str | None]]
"""What is wrong with each component that is needed, in words without content; None: nothing."""


def create_health(ready: Ready, metrics_page: Callable[[], tuple[bytes, str]]) -> Starlette:
    """``metrics_page`` gives the page and its media type. Readiness is true or false for each component, with ``why``
    for those that are not ready: then it is 503.

    Nothing here takes a body: one that is announced is refused unread, and its connection closed.
    """

    async def live(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_request: Request) -> Response:
        components = ready()
        why = {name: wrong for name, wrong in components.items() if wrong is not None}
        told: dict[str, object] = {name: wrong is None for name, wrong in components.items()}
        return JSONResponse({**told, "why": why} if why else told, status_code=503 if why else 200)

    async def scrape(_request: Request) -> Response:
        page, media_type = metrics_page()
        return Response(page, media_type=media_type)

    routes = [Route("/healthz", live), Route("/readyz", readiness), Route("/metrics", scrape)]
    return Starlette(routes=routes, middleware=[Middleware(_Bodiless)])


class _Bodiless:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and has_body(head_of(scope)):
            await PlainTextResponse("nothing here takes a body\n", 413, CLOSE)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
