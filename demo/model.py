"""A stand-in for a language model: three APIs, streaming, and as clever as its prompt.

It answers a question with the note or sentence of its prompt that shares most words with it, so whoever reads the
answer sees whether memory reached the prompt. It keeps the last requests as they came (``GET /requests``), which a real
model would not show. Run it with ``python -m demo.model --port 0``; it prints its address when it is ready.
"""

from __future__ import annotations

import argparse
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from demo.model_chat import REFUSE, ChatEndpoint
from demo.model_messages import MessagesEndpoint
from demo.model_responses import ResponsesEndpoint
from demo.stand_in import MODEL, Received, Speaker

__all__ = ["MODEL", "REFUSE", "Received", "StandIn", "server_for"]


class StandIn(Speaker):
    """The model with its routes; any other path answers with what it was sent."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", ChatEndpoint(self).answer, methods=["POST"]),
                Route("/v1/messages", MessagesEndpoint(self).answer, methods=["POST"]),
                Route("/v1/responses", ResponsesEndpoint(self).answer, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/requests", self._requests),
                Route("/{path:path}", self._echo, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    async def _models(self, request: Request) -> Response:
        await self.keep(request)
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "semmem-demo"}]})

    async def _requests(self, request: Request) -> Response:
        return JSONResponse([received.shown() for received in self.received])

    async def _echo(self, request: Request) -> Response:
        received = await self.keep(request)
        received.answer = received.body
        return Response(received.body, media_type=request.headers.get("content-type", "text/plain"))


def server_for(stand_in: StandIn) -> uvicorn.Server:
    """A server that is given its socket when it runs, so that its port is known before."""
    config = uvicorn.Config(stand_in.app(), log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
    return uvicorn.Server(config)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demo.model", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 chooses a free one")
    parser.add_argument("--token-delay-ms", type=float, default=10.0, help="before each streamed token")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
    print(f"model ready http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server_for(StandIn(token_delay_s=options.token_delay_ms / 1000)).run(sockets=[listener])


if __name__ == "__main__":
    main()
