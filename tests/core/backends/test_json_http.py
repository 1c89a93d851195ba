"""What all HTTP models have in common, against a real socket."""

from __future__ import annotations

from typing import Any

from semmem.backends.models.json_http import JsonEndpoint
from semmem.background import Tasks
from semmem.management.server import HttpListener


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    asked: list[str] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        headers = [(b"location", b"/elsewhere")]
        await send({"type": "http.response.start", "status": 307, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    listener, tasks = HttpListener(app, "127.0.0.1:0"), Tasks()
    address = listener.bind()
    serving = tasks.spawn("serve", listener.serve())
    endpoint = JsonEndpoint(f"http://{address}", "/embeddings", answer_bytes_max=1000)
    try:
        status, _, _ = await endpoint.post({"input": "a secret"})
    finally:
        await endpoint.close()
        listener.stop()
        await serving
        listener.close()
    assert (status, asked) == (307, ["/v1/embeddings"])
