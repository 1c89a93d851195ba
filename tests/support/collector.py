"""A collector of traces: OTLP over HTTP, as small as it can be, and what came to it in a form that tests can read."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Exported:
    """One span as it came. Ids are hexadecimal; ``parent`` is empty where there is none; times are nanoseconds."""

    name: str
    trace: str
    id: str
    parent: str
    state: str
    kind: int
    start: int
    end: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str], ...]
    resource: Mapping[str, Any]
    failed: bool


@dataclass
class Collector:
    """``status`` is what it answers, ``wait`` what it does before: both may be changed while it runs."""

    url: str = ""
    status: int = 200
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def spans(self) -> list[Exported]:
        return [span for body in list(self.bodies) for span in decoded(body)]

    def trace(self, trace: str) -> dict[str, list[Exported]]:
        """The spans of one trace by their names."""
        found: dict[str, list[Exported]] = {}
        for span in self.spans:
            if span.trace == trace:
                found.setdefault(span.name, []).append(span)
        return found


def decoded(body: bytes) -> Iterator[Exported]:
    for of_process in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = _plain(of_process.resource.attributes)
        for of_scope in of_process.scope_spans:
            for span in of_scope.spans:
                yield Exported(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.trace_state,
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _plain(span.attributes),
                    tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    resource,
                    span.status.code == span.status.STATUS_CODE_ERROR,
                )


def _plain(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens at ``url`` inside the block."""
    running = Collector()
    running.go_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            running.go_on.wait(30)
            if running.status == 200:
                running.headers.append({name.lower(): value for name, value in self.headers.items()})
                running.bodies.append(body)
            self.send_response(running.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.go_on.set()
        server.shutdown()
        thread.join(5)
        server.server_close()
