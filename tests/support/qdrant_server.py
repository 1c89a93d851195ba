"""What answers Qdrant's REST interface in tests: the client's local mode behind HTTP, for want of a server.

It is no Qdrant server, and shows nothing of one but what goes over the wire: it takes requests as the client writes
them, refuses what is not a known model, and keeps every body for tests to look at. Indexes and quantisation are only
remembered.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 500: "Internal Server Error"}


@dataclass
class Seen:
    """One request: method, path without the query, the query, and the body as JSON."""

    method: str
    path: str
    query: str
    body: Any


@dataclass
class QdrantStandIn:
    """``fail`` with (status, body) answers every call with it; ``hang`` none; the next ``drops`` lose their connection.
    ``version`` is what it says it is."""

    version: str = "1.20.0"
    api_key: str = ""
    fail: tuple[int, str] | None = None
    hang: bool = False
    drops: int = 0
    seen: list[Seen] = field(default_factory=list)
    creations: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        self._local = QdrantClient(":memory:")
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        """At the port it had, when it was stopped."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut every connection; what it keeps stays."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for writer in tuple(self._writers):
                writer.transport.abort()
            await server.wait_closed()

    def bodies(self, method: str, ending: str) -> list[Any]:
        return [one.body for one in self.seen if one.method == method and one.path.endswith(ending)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if self.hang:
                    await asyncio.sleep(3600)
                if self.drops:
                    self.drops -= 1
                    return
                status, answer = self._answer(method, target, headers, json.loads(body) if body else None)
                content = answer.encode()
                writer.write(
                    f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, method: str, target: str, headers: dict[str, str], body: Any) -> tuple[int, str]:
        path, _, query = target.partition("?")
        self.seen.append(Seen(method, path, query, body))
        if self.fail is not None:
            return self.fail
        if self.api_key and headers.get("api-key") != self.api_key:
            return 401, "{}"
        if path == "/":
            return 200, json.dumps({"title": "stand-in", "version": self.version})
        try:
            result = self._result(method, path, body or {})
        except ValueError as error:
            return (404 if "not found" in str(error) else 400), json.dumps({"status": {"error": str(error)}})
        return 200, json.dumps({"result": result, "status": "ok", "time": 0.0})

    def _result(self, method: str, path: str, body: dict[str, Any]) -> Any:
        of_all: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/collections"): lambda: json.loads(self._local.get_collections().model_dump_json()),
            ("GET", "/aliases"): lambda: json.loads(self._local.get_aliases().model_dump_json()),
            ("POST", "/collections/aliases"): lambda: self._alias(body),
        }
        if (method, path) in of_all:
            return of_all[method, path]()
        return self._of_one(method, *path.removeprefix("/collections/").partition("/")[::2], body)

    def _of_one(self, method: str, name: str, rest: str, body: dict[str, Any]) -> Any:
        do: Callable[[str, dict[str, Any]], Any] = {
            ("GET", ""): self._describe,
            ("PUT", ""): self._create,
            ("DELETE", ""): lambda name, _: self._local.delete_collection(name),
            ("GET", "exists"): lambda name, _: {"exists": self._local.collection_exists(name)},
            ("PUT", "index"): lambda name, body: models.CreateFieldIndex(**body) and _done(),
            ("PUT", "points"): self._upsert,
            ("POST", "points/scroll"): self._scroll,
            ("POST", "points/query"): self._query,
            ("POST", "points/count"): self._count,
            ("POST", "points/delete"): self._delete,
        }[method, rest]
        return do(name, body)

    def _describe(self, name: str, body: dict[str, Any]) -> Any:
        info = json.loads(self._local.get_collection(name).model_dump_json())
        made = self.creations[name]
        info["config"]["quantization_config"] = made.get("quantization_config")
        info["config"]["hnsw_config"] |= {key: at for key, at in made["hnsw_config"].items() if at is not None}
        return info

    def _create(self, name: str, body: dict[str, Any]) -> Any:
        asked = models.CreateCollection(**body)
        assert isinstance(asked.vectors, dict)
        self._local.create_collection(name, vectors_config=asked.vectors, metadata=asked.metadata)
        self.creations[name] = body
        return True

    def _alias(self, body: dict[str, Any]) -> Any:
        asked = models.ChangeAliasesOperation(**body)
        return self._local.update_collection_aliases(asked.actions)

    def _upsert(self, name: str, body: dict[str, Any]) -> Any:
        asked = models.PointsList(**body)
        self._local.upsert(name, points=asked.points, update_filter=asked.update_filter)
        return _done()

    def _scroll(self, name: str, body: dict[str, Any]) -> Any:
        asked = models.ScrollRequest(**body)
        found, following = self._local.scroll(
            name,
            scroll_filter=asked.filter,
            limit=asked.limit or 10,
            offset=asked.offset,
            with_payload=asked.with_payload or False,
            with_vectors=asked.with_vector or False,
        )
        return {"points": [json.loads(point.model_dump_json()) for point in found], "next_page_offset": following}

    def _query(self, name: str, body: dict[str, Any]) -> Any:
        asked = models.QueryRequest(**body)
        assert isinstance(asked.query, models.NearestQuery)
        found = self._local.query_points(
            name,
            query=asked.query,
            using=asked.using,
            query_filter=asked.filter,
            limit=asked.limit or 10,
            with_payload=True,
            with_vectors=asked.with_vector or False,
        )
        return json.loads(found.model_dump_json())

    def _count(self, name: str, body: dict[str, Any]) -> Any:
        asked = models.CountRequest(**body)
        return {"count": self._local.count(name, count_filter=asked.filter, exact=True).count}

    def _delete(self, name: str, body: dict[str, Any]) -> Any:
        self._local.delete(name, points_selector=models.FilterSelector(**body))
        return _done()


def _done() -> dict[str, Any]:
    return {"operation_id": 1, "status": "completed"}


@asynccontextmanager
async def standing_in(**options: Any) -> AsyncIterator[QdrantStandIn]:
    server = QdrantStandIn(**options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def tls_context(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert_file, key_file)
    return context
