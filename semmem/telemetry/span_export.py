"""Spans on their way to a collector: a queue with an end, a thread that sends (OTLP over HTTP, by OpenTelemetry's own
exporter), and one word for each outage.

Nothing of a collector reaches a request: a span that ends is put into the queue or dropped, and both are a step of the
event loop. Imported only where traces are wanted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import Counter


def otlp_exporter(
    endpoint: str, *, headers: Mapping[str, str] | None = None, ca_file: str = "", timeout_s: float = 3.0
) -> SpanExporter:
    """Sends to ``endpoint``, a whole URL, with gzip; one try and its repetitions take ``timeout_s``. ``ca_file``: whom
    to believe instead of the system's authorities.

    The exporter logs every try of every batch; an outage is told once, by whoever calls it.
    """
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    session = requests.Session()
    session.trust_env = False  # no proxies, as with every server that semmem calls
    return OTLPSpanExporter(
        endpoint,
        certificate_file=ca_file or None,
        headers=dict(headers or {}),
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
    )


log = logging.getLogger(__name__)

EXPORTED, FAILED, DROPPED = "exported", "failed", "dropped"
"""What became of a span: sent, in a batch that could not be sent, or met a full queue."""


class Offload(Protocol):
    """Runs blocking work beside the event loop."""

    async def __call__(self, work: Callable[[], SpanExportResult], /) -> SpanExportResult: ...


class SpanExport(SpanProcessor):
    """Sends spans by ``exporter``, at most ``batch_max`` at a time, every ``interval_s`` or as soon as so many wait.

    At most ``queue_max`` wait. A batch that fails is not tried again here: the exporter has tried for as long as its
    own timeout allows, and meanwhile others have come. ``spans`` counts by result.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        spans: Counter,
        *,
        offload: Offload,
        queue_max: int = 4096,
        batch_max: int = 128,
        interval_s: float = 1.0,
    ) -> None:
        self._exporter = exporter
        self._counts = {word: spans.labels(word) for word in (EXPORTED, FAILED, DROPPED)}
        self._offload = offload
        self._waiting: deque[ReadableSpan] = deque()
        self._queue_max = queue_max
        self._batch_max = batch_max
        self._interval_s = interval_s
        self._full = asyncio.Event()
        self._sending = asyncio.Lock()
        self._is_out = False

    def __len__(self) -> int:
        return len(self._waiting)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing: only what has ended is sent."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span, on the event loop. Neither waits nor raises."""
        if len(self._waiting) >= self._queue_max:
            self._counts[DROPPED].inc()
            return
        self._waiting.append(span)
        if len(self._waiting) >= self._batch_max:
            self._full.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send what waits now."""
        async with self._sending:
            for _ in range(0, len(self._waiting), self._batch_max):
                await self._send([self._waiting.popleft() for _ in range(min(self._batch_max, len(self._waiting)))])

    async def drained(self, timeout_s: float) -> bool:
        """Send what waits, for the last time; False when ``timeout_s`` was not enough."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.flush()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Try nothing any more; what is being sent ends soon."""
        self._exporter.shutdown()

    async def _send(self, batch: list[ReadableSpan]) -> None:
        try:
            result = await self._offload(partial(self._exporter.export, batch))
            why = "" if result is SpanExportResult.SUCCESS else "the collector does not take them"
        except asyncio.CancelledError:
            self._counts[FAILED].inc(len(batch))
            raise
        except Exception as error:  # whatever a library raises: traces are lost, and nothing else
            why = type(error).__name__
        self._counts[FAILED if why else EXPORTED].inc(len(batch))
        self._tell(why)

    def _tell(self, why: str) -> None:
        """One warning for an outage, and its end."""
        if why and not self._is_out:
            log.warning("traces are not exported (%s): they are counted and lost until the collector answers", why)
        elif self._is_out and not why:
            log.info("traces are exported again")
        self._is_out = bool(why)
