"""A server of HTTP that answers what it was told to, in order: an API that refuses, limits, or is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass(frozen=True)
class Answer:
    """``body``: JSON, or text as it is."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Answer:
    """As the API has it."""
    return Answer(status, {"error": {"code": code, "message": message}} | more, headers or {})


@contextmanager
def answering(answers: Sequence[Answer]) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and what it was asked, as ``METHOD path?query``. The last answer is given again and again."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            self.rfile.read(int(self.headers.get("content-length", "0")))
            asked.append(f"{self.command} {self.path}")
            self._answer(answers[min(len(asked), len(answers)) - 1])

        def _answer(self, answer: Answer) -> None:
            content = answer.content()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """To nobody."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
