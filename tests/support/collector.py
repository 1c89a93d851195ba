"""A collector of traces: OTLP over HTTP, as small as it can be, and what came to it in a form that tests can read."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable, Iterator, Mapping
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


def printed(spans: Iterable[Exported]) -> str:
    """A trace as a tree: a line for each span with its length in milliseconds and what is known of it."""
    below: dict[str, list[Exported]] = {}
    for span in sorted(spans, key=lambda span: span.start):
        below.setdefault(span.parent, []).append(span)
    known = {span.id for spans in below.values() for span in spans}
    roots = [span for parent, spans in below.items() if parent not in known for span in spans]
    return "\n".join(line for root in roots for line in _lines(root, below, 0))


def _lines(span: Exported, below: Mapping[str, list[Exported]], depth: int) -> Iterator[str]:
    told = " ".join(f"{name.rpartition('.')[2]}={value}" for name, value in span.attributes.items())
    yield f"{'  ' * depth + span.name:<54} {(span.end - span.start) / 1e6:8.2f} ms  {told}".rstrip()
    for each in below.get(span.id, ()):
        yield from _lines(each, below, depth + 1)


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
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = b"".join(self._chunks())
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            running.go_on.wait(30)
            if running.status == 200:
                running.headers.append({name.lower(): value for name, value in self.headers.items()})
                running.bodies.append(body)
            self.send_response(running.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def _chunks(self) -> Iterator[bytes]:
            """The body, which Envoy sends in chunks."""
            if "content-length" in self.headers:
                yield self.rfile.read(int(self.headers["content-length"]))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

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
