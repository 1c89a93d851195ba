"""The API that answers now: one application after another behind one listener."""

from __future__ import annotations

from semmem.management.door import App, Receive, Scope, Send


class CurrentApi:
    """An ASGI application. A call is answered to its end by the one that it began with."""

    def __init__(self, application: App) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)
