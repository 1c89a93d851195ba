"""What serves at the moment, and the listeners that it stands behind."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from semmem.config.listeners_section import HttpListenerSection
from semmem.config.settings import Settings
from semmem.envoy.server import ExtProcServer
from semmem.envoy.service import ExternalProcessor
from semmem.envoy.tls import TlsFiles, server_credentials
from semmem.management.server import HttpListener
from semmem.retrieval.index.hot_memories import Spawn
from semmem.telemetry.log_lines import tell_from
from semmem.wiring import doors, learning
from semmem.wiring.serving import Serving, Workshop

LISTENER_END_S = 5.0


class CurrentApi:
    """An ASGI application. A call is answered to its end by the one that it began with."""

    def __init__(self, application: ASGIApp) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)


TOOL_BODY_BYTES_MAX = 64 * 1024**2
"""Of the tools' own server, behind the API's door, which has the configured limit."""


class Front:
    """Raises OSError naming a certificate that cannot be read."""

    def __init__(self, serving: Serving, api: CurrentApi, workshop: Workshop) -> None:
        self.serving, self.api, self._workshop = serving, api, workshop
        self.server = envoy_door(serving.settings, serving.processor)
        api.application = serving.api

    def take_up(self, serving: Serving) -> None:
        """All at once, between two steps of whatever runs."""
        shop, former, learns = self._workshop, self.serving.settings, serving.learning
        parts = shop.parts
        self.serving, self.api.application = serving, serving.api
        self.server.use(serving.processor)
        parts.learner.use(learning.learn(learns.batches, shop.announce, shop.tracer), learns.rules)
        if parts.at_once is not None:
            parts.at_once.use(learns.reading, learns.batches.settling)
        parts.compression.maker.use(serving.making)
        tell_from(serving.settings.log.level)
        closing = parts.opened.clients.close_others(serving.settings, after_s=former.memory.extraction.lease_s)
        shop.spawn("close models", closing)


async def front(settings: Settings, workshop: Workshop) -> Front:
    """With what serves from the start, and the tools for models where they are wanted."""
    api = CurrentApi(_nobody)
    if settings.listeners.api.mcp:
        from semmem.management.mcp_doors import tools_of  # and with it an SDK that most processes never need

        tools = workshop.tools = tools_of(api, body_bytes_max=TOOL_BODY_BYTES_MAX)
        workshop.spawn("tools", tools.run())
        await tools.ready.wait()
    return Front(workshop.first(settings), api, workshop)


async def _nobody(_scope: object, _receive: object, _send: object) -> None:
    """The API before there is one: its listener is not bound yet."""


def envoy_door(settings: Settings, processor: ExternalProcessor) -> ExtProcServer:
    """The ext_proc server, not started. Raises OSError naming a file that cannot be read."""
    grpc = settings.listeners.grpc
    credentials = None  # plain text
    if (tls := grpc.tls).cert_file:
        client_ca = Path(tls.client_ca_file) if tls.client_ca_file else None
        credentials = server_credentials(TlsFiles(Path(tls.cert_file), Path(tls.key_file), client_ca))
    return ExtProcServer(
        processor,
        address=f"unix:{grpc.unix_socket}" if grpc.unix_socket else grpc.address,
        message_bytes_max=doors.door_limits(settings).message_bytes_max,
        credentials=credentials,
    )


async def serve(
    name: str, application: object, where: HttpListenerSection, *, spawn: Spawn, stack: AsyncExitStack
) -> str:
    """Listen until ``stack`` is closed; the address with its port. Raises OSError naming one that is in use."""
    listener = HttpListener(
        application, where.address, connections_max=where.connections_max, head_timeout_s=where.head_timeout_s
    )
    bound = listener.bind()
    task = spawn(name, listener.serve())

    async def stop() -> None:
        listener.stop()
        await asyncio.wait({task}, timeout=LISTENER_END_S)
        listener.close()

    stack.push_async_callback(stop)
    return bound
