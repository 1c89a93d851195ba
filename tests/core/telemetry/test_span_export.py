"""Spans on their way: nothing of a collector reaches who made them, and nothing goes uncounted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from semmem.background import OffloadThreads
from semmem.ports.spans import NOWHERE
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.tracing import OtelTracer, SpanExport, otlp_exporter
from tests.support.collector import collector
from tests.support.ports import free_port

SPAN = ReadableSpan("a span")


class Shelf(SpanExporter):
    """Takes batches while ``open`` is set; ``fails``: with what it answers, or raises."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.open = threading.Event()
        self.open.set()
        self.fails: Exception | bool = False
        self.is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.open.wait(10)
        if isinstance(self.fails, Exception):
            raise self.fails
        if self.fails:
            return SpanExportResult.FAILURE
        self.batches.append(len(spans))
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut = True


class Exporting:
    def __init__(self, exporter: SpanExporter | None = None, *, queue_max: int = 10, batch_max: int = 4) -> None:
        self.shelf = Shelf()
        self.metrics = Metrics()
        self.threads = OffloadThreads()
        self.export = SpanExport(
            exporter or self.shelf,
            self.metrics.trace_spans,
            offload=self.threads,
            queue_max=queue_max,
            batch_max=batch_max,
            interval_s=0.01,
        )

    def end(self, number: int) -> None:
        for _ in range(number):
            self.export.on_end(SPAN)

    def counted(self, result: str) -> float | None:
        return self.metrics.registry.get_sample_value("semmem_trace_spans_total", {"result": result})


async def test_spans_are_sent_together_and_no_more_at_a_time_than_wanted() -> None:
    exporting = Exporting()
    exporting.end(10)
    await exporting.export.flush()
    assert exporting.shelf.batches == [4, 4, 2]
    assert (exporting.counted("exported"), len(exporting.export)) == (10, 0)


async def test_what_meets_a_full_queue_is_dropped_and_counted() -> None:
    exporting = Exporting(queue_max=10)
    exporting.end(25)
    assert (len(exporting.export), exporting.counted("dropped")) == (10, 15)


async def test_a_collector_that_does_not_answer_keeps_nobody() -> None:
    exporting = Exporting()
    exporting.shelf.open.clear()
    running = asyncio.get_running_loop().create_task(exporting.export.run())
    exporting.end(4)
    await asyncio.sleep(0.05)
    exporting.end(1000)
    await asyncio.sleep(0)
    assert exporting.shelf.batches == [], "who ends spans is here again before the collector answers"
    assert exporting.counted("dropped") == 990
    exporting.shelf.open.set()
    while exporting.counted("exported") != 14:
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])


async def test_an_outage_is_told_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    exporting = Exporting(batch_max=1)
    for fails in (True, OSError("a secret"), True, False, False, True, False):
        exporting.shelf.fails = fails
        exporting.end(1)
        await exporting.export.flush()
    said = [record.levelname for record in caplog.records]
    assert said == ["WARNING", "INFO", "WARNING", "INFO"]
    assert "a secret" not in caplog.text
    assert (exporting.counted("failed"), exporting.counted("exported")) == (4, 3)


async def test_the_end_waits_only_so_long_and_counts_what_it_gives_up() -> None:
    exporting = Exporting()
    exporting.end(3)
    assert await exporting.export.drained(5)
    exporting.shelf.open.clear()
    exporting.end(2)
    assert not await exporting.export.drained(0.05)
    assert exporting.counted("failed") == 2
    exporting.export.close()
    assert exporting.shelf.is_shut
    exporting.shelf.open.set()


async def test_the_real_exporter_gives_up_in_its_time_and_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    exporting = Exporting(otlp_exporter(f"http://127.0.0.1:{free_port()}/v1/traces", timeout_s=0.5))
    exporting.end(1)
    await exporting.export.flush()
    assert exporting.counted("failed") == 1
    assert [record.name for record in caplog.records] == ["semmem.telemetry.tracing"]


async def test_a_credential_is_sent_in_its_header_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with collector() as told:
        exporting = Exporting(otlp_exporter(told.url, headers={"x-team": "key"}, timeout_s=5))
        with OtelTracer(exporting.export).begin("request", lambda: NOWHERE):
            pass
        await exporting.export.flush()
        assert told.headers[0]["x-team"] == "key"
        assert [span.name for span in told.spans] == ["request"]
