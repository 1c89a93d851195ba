"""A store whose calls are measured, and whose changes are announced to whoever keeps copies of what was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from semmem.ports.spans import step
from semmem.ports.store import Store
from semmem.ports.store_wrapper import StoreCall, StoreWrapper
from semmem.telemetry.metrics import Metrics

IN_PROCESS = "in_process"
"""The backend that is no server."""

Listener = Callable[[str, str | None], None]
"""Called with the user and the memory's id (None: any of them) when a write has ended. It must not raise."""


class ObservedStore(StoreWrapper):
    """Counts and times calls by operation and status, and then tells ``listeners`` of writes of memories, however they
    ended: one that failed may have been done all the same. Nobody keeps copies of passages.

    Only writes through this object are seen, so another process's are not. ``backend``: its name in the metrics.
    """

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
                self._announce(call)

    def _announce(self, call: StoreCall) -> None:
        for listener in self._listeners:
            listener(call.user, call.memory_id)
