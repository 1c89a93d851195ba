"""Settings -> the tracer, and what sends its spans; nothing is imported for it where no collector is named."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from semmem import __version__
from semmem.background import OffloadThreads
from semmem.config.features_section import TracingSection
from semmem.config.settings import Settings
from semmem.ports.errors import SemmemError
from semmem.ports.spans import NO_TRACER, Tracer
from semmem.telemetry.metrics import Metrics

DRAIN_S = 2.0
"""How long the end of the process waits for spans that are not sent yet."""


class TracingError(SemmemError):
    """Traces are wanted and cannot be made."""


async def _nothing() -> None:
    """There are no spans."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """``run`` sends spans until it is cancelled (None: there are none), ``last_word`` what is left of them."""

    tracer: Tracer = NO_TRACER
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    last_word: Callable[[], Awaitable[object]] = _nothing


def tracing(settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> Tracing:
    """What ends with ``stack``. Raises TracingError naming a package or a file that is missing."""
    rules = settings.tracing
    if not rules.endpoint:
        return Tracing()
    try:  # optional packages, which take a fifth of a second to import
        from semmem.telemetry.tracing import OtelTracer, SpanExport, Telling, otlp_exporter
    except ModuleNotFoundError:
        raise TracingError("tracing.endpoint needs packages: pip install 'semmem[otel]'") from None
    value = rules.credential.get_secret_value()
    exporter = otlp_exporter(
        rules.endpoint,
        headers={rules.header: value} if value else {},
        ca_file=rules.ca_file,
        timeout_s=rules.timeout_s,
    )
    threads = OffloadThreads()
    export = SpanExport(
        exporter,
        metrics.trace_spans,
        offload=threads,
        queue_max=rules.queue_max,
        batch_max=rules.batch_max,
        interval_s=rules.interval_s,
    )
    stack.push_async_callback(threads.close)
    stack.callback(export.close)  # before the threads: it ends what they wait for

    async def last_word() -> None:
        await export.drained(DRAIN_S)

    telling = Telling(
        content=rules.content,
        user_hmac_secret=rules.user_hmac_secret.get_secret_value().encode(),
        store_id=_store_id(settings),
    )
    tracer = OtelTracer(export, ratio=rules.sample_ratio, telling=telling, resource=_resource(rules))
    return Tracing(tracer, export.run, last_word)


def _resource(rules: TracingSection) -> dict[str, str]:
    """What every trace says of this process. The id tells replicas apart, and means nothing beyond."""
    return {
        "service.name": rules.service_name,
        "service.version": __version__,
        "service.instance.id": str(uuid.uuid4()),
    }


def _store_id(settings: Settings) -> str:
    memory = settings.memory
    names = {"milvus": memory.milvus.collection, "qdrant": memory.qdrant.collection}
    return names.get(memory.backend, memory.backend)
