"""Ports that measure: each wraps the real one and counts and times its calls; and how late the event loop is. Only the
composition root uses them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cache

from prometheus_client import Histogram

from semmem.background.tasks import Outage
from semmem.memory import Message, Vector
from semmem.ports.embedder import Embedder, EmbedderWrapper
from semmem.ports.errors import EmbedderBusy, SemmemError
from semmem.ports.models import Reranker, ServedModel
from semmem.ports.spans import MODEL, OPERATION, step
from semmem.ports.store import Store, StoreCall, StoreWrapper
from semmem.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

IN_PROCESS = "in_process"
"""The backend that is no server."""

Listener = Callable[[str, str | None], None]
"""Called with the user and the memory's id (None: any of them) when a write has ended. It must not raise."""


class ObservedStore(StoreWrapper):
    """Counts and times calls by operation and status, and then tells ``listeners`` of writes of memories, however they
    ended: one that failed may have been done all the same. Nobody keeps copies of passages. Only writes through this
    object are seen, so another process's are not. ``backend``: its name in the metrics."""

    def __init__(self, store: Store, metrics: Metrics, backend: str, listeners: Sequence[Listener] = ()) -> None:
        super().__init__(store)
        self._metrics = metrics
        self._backend = backend
        self._listeners = listeners

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        started = time.perf_counter()
        status = "error"  # also when cancelled by a deadline
        try:
            with step(f"{call.operation} {self._backend}", calls_out=self._backend != IN_PROCESS) as span:
                span.note("db.system.name", self._backend)
                span.note("db.operation.name", call.operation)
                yield
            status = "ok"
        finally:
            self._metrics.store_operations.labels(self._backend, call.operation, status).inc()
            self._metrics.store_seconds.labels(self._backend, call.operation).observe(time.perf_counter() - started)
            if call.writes and not call.of_passages:
                for listener in self._listeners:
                    listener(call.user, call.memory_id)


class MeteredEmbedder(EmbedderWrapper):
    """An Embedder whose calls are timed, and which says when it fails and when it works again. ``model``: its name in
    traces; ``is_remote``: a server embeds."""

    def __init__(self, embedder: Embedder, metrics: Metrics, *, model: str = "", is_remote: bool = False) -> None:
        super().__init__(embedder)
        self._seconds = cache(metrics.embedder_seconds.labels)
        self._model, self._is_remote = model, is_remote
        self._span_name = f"embeddings {model}".strip()
        self._outage = Outage(log, "embed", level=logging.WARNING)

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        started = time.perf_counter()
        status = "error"
        try:
            with step(self._span_name, calls_out=self._is_remote) as span:
                span.note(OPERATION, "embeddings")
                span.note(MODEL, self._model)
                vector = await super().embed(text, within_s=within_s)
            status = "ok"
            self._outage.worked()
            return vector
        except EmbedderBusy:
            status = "busy"
            raise
        except SemmemError as error:
            self._outage.failed(error)
            raise
        except asyncio.CancelledError:  # whoever asked could wait no longer
            status = "late"
            raise
        finally:
            self._seconds(status).observe(time.perf_counter() - started)

    def at_hand(self, text: str) -> Vector | None:
        """Counted as a call where there is one."""
        vector = super().at_hand(text)
        if vector is not None:
            self._seconds("ok").observe(0.0)
        return vector


@dataclass(eq=False)
class MeteredModel:
    """A LanguageModel whose calls are timed by role and by the kind of failure; not by name, of which there may be as
    many as clients think of. ``name``: the one that is configured, for traces."""

    model: ServedModel
    metrics: Metrics
    role: str
    _: KW_ONLY
    name: str = ""

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        with _model_call(self.metrics, self.role, "chat", self.name):
            return await self.model.complete(messages, timeout_s=timeout_s, json_schema=json_schema)

    def named(self, name: str) -> MeteredModel:
        return MeteredModel(self.model.named(name), self.metrics, self.role)

    async def close(self) -> None:
        await self.model.close()


@dataclass(eq=False)
class MeteredReranker:
    """A Reranker whose calls are timed as those of a model in the role ``rerank``."""

    reranker: Reranker
    metrics: Metrics

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        with _model_call(self.metrics, "rerank", "rerank"):
            return await self.reranker.rerank(query, texts, timeout_s=timeout_s)

    async def close(self) -> None:
        await self.reranker.close()


@contextmanager
def _model_call(metrics: Metrics, role: str, operation: str, model: str = "") -> Iterator[None]:
    started = time.perf_counter()
    status = "cancelled"
    try:
        with step(f"{operation} {model}".strip(), calls_out=True) as span:
            span.note(OPERATION, operation)
            span.note("semmem.role", role)
            if model:
                span.note(MODEL, model)
            yield
        status = "ok"
    except SemmemError as error:
        status = type(error).__name__
        raise
    finally:
        metrics.model_seconds.labels(role, status).observe(time.perf_counter() - started)


BUSY_S = 0.1
IDLE_S = 1.0
"""Between two looks, while requests come and while none does: each look costs some 0.1 ms of processor time."""


async def watch_loop(
    lag_seconds: Histogram, requests: Callable[[], int], *, busy_s: float = BUSY_S, idle_s: float = IDLE_S
) -> None:
    """How late the event loop comes to what is due: what any request or token waits for the code of others. Observe
    it until cancelled. ``requests``: how many there have been."""
    loop = asyncio.get_running_loop()
    seen = requests()
    pause_s = idle_s
    while True:
        due = loop.time() + pause_s
        await asyncio.sleep(pause_s)
        lag_seconds.observe(max(0.0, loop.time() - due))
        now = requests()
        pause_s, seen = idle_s if now == seen else busy_s, now
