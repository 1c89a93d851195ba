"""Ports that measure: each wraps the real one and counts and times its calls. Only the composition root uses them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from semmem.memory import Hit, Memory, MemoryType, Message, Scope, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import SemmemError
from semmem.ports.models import LanguageModel, Reranker
from semmem.ports.store import Store
from semmem.telemetry.metrics import Metrics


class MeteredStore:
    """A Store whose calls are counted by operation and status."""

    def __init__(self, store: Store, metrics: Metrics, backend: str) -> None:
        self._store = store
        self._metrics = metrics
        self._backend = backend

    @asynccontextmanager
    async def _call(self, operation: str) -> AsyncIterator[None]:
        started = time.perf_counter()
        status = "error"  # also when cancelled by a deadline
        try:
            yield
            status = "ok"
        finally:
            self._metrics.store_operations.labels(self._backend, operation, status).inc()
            self._metrics.store_seconds.labels(self._backend, operation).observe(time.perf_counter() - started)

    async def open(self) -> None:
        async with self._call("open"):
            await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def put(self, scope: Scope, memory: Memory) -> None:
        async with self._call("put"):
            await self._store.put(scope, memory)

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        fresh: bool = False,
    ) -> list[Hit]:
        async with self._call("search"):
            return await self._store.search(scope, vector, limit=limit, now=now, types=types, fresh=fresh)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        async with self._call("get"):
            return await self._store.get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0
    ) -> list[Memory]:
        async with self._call("list"):
            return await self._store.list(scope, types=types, limit=limit, offset=offset)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        async with self._call("forget"):
            return await self._store.forget(scope, memory_id)

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        async with self._call("forget_scope"):
            return await self._store.forget_scope(scope, types=types, said_until=said_until)

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        async with self._call("count"):
            return await self._store.count(scope, types=types)

    async def health(self) -> None:
        async with self._call("health"):
            await self._store.health()


class MeteredEmbedder:
    """An Embedder whose calls are timed."""

    def __init__(self, embedder: Embedder, metrics: Metrics) -> None:
        self._embedder = embedder
        self._metrics = metrics

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def signature(self) -> str:
        return self._embedder.signature

    async def open(self) -> None:
        await self._embedder.open()

    async def close(self) -> None:
        await self._embedder.close()

    async def embed(self, text: str) -> Vector:
        started = time.perf_counter()
        status = "error"
        try:
            vector = await self._embedder.embed(text)
            status = "ok"
            return vector
        finally:
            self._metrics.embedder_seconds.labels(status).observe(time.perf_counter() - started)


class MeteredModel:
    """A LanguageModel whose calls are timed by role and by the kind of failure."""

    def __init__(self, model: LanguageModel, metrics: Metrics, role: str) -> None:
        self._model = model
        self._metrics = metrics
        self._role = role

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        with _model_call(self._metrics, self._role):
            return await self._model.complete(messages, timeout_s=timeout_s, json_schema=json_schema)

    async def close(self) -> None:
        await self._model.close()


class MeteredReranker:
    """A Reranker whose calls are timed as those of a model in the role ``rerank``."""

    def __init__(self, reranker: Reranker, metrics: Metrics) -> None:
        self._reranker = reranker
        self._metrics = metrics

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        with _model_call(self._metrics, "rerank"):
            return await self._reranker.rerank(query, texts, timeout_s=timeout_s)

    async def close(self) -> None:
        await self._reranker.close()


@contextmanager
def _model_call(metrics: Metrics, role: str) -> Iterator[None]:
    started = time.perf_counter()
    status = "cancelled"
    try:
        yield
        status = "ok"
    except SemmemError as error:
        status = type(error).__name__
        raise
    finally:
        metrics.model_seconds.labels(role, status).observe(time.perf_counter() - started)
