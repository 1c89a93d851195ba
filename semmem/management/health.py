"""Health and metrics, on an address of their own: liveness knows only this process, readiness what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from semmem.metrics import Metrics


def create_health(metrics: Metrics, ready: Callable[[], Mapping[str, bool]], refresh: Callable[[], None]) -> Starlette:
    """``ready`` tells which needed components are ready; ``refresh`` updates gauges before a scrape."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_request: Request) -> Response:
        components = dict(ready())
        return JSONResponse(components, status_code=200 if all(components.values()) else 503)

    async def scrape(_request: Request) -> Response:
        refresh()
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/healthz", live), Route("/readyz", readiness), Route("/metrics", scrape)])
