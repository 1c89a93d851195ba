"""Tracing as it is configured: nothing of it where it is off, and a word for what is missing."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import semmem
from semmem.config.settings import Settings
from semmem.ports.spans import NO_TRACER, NOWHERE
from semmem.telemetry.metrics import Metrics
from semmem.wiring.backends import TracingError, tracing
from tests.support.collector import collector

ROOT = Path(semmem.__file__).parents[1]


def settings(url: str) -> Settings:
    return Settings.model_validate({"tracing": {"endpoint": url, "service_name": "shop-memory"}})


async def test_without_a_collector_nothing_is_recorded_sent_or_kept() -> None:
    async with AsyncExitStack() as stack:
        assert tracing(Settings(), Metrics(), stack) == (NO_TRACER, None)


def test_without_a_collector_nothing_is_imported_for_it() -> None:
    program = "import sys, semmem.wiring.app\n"
    program += "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.stdout == "[]\n", done.stderr


async def test_what_ended_is_exported_before_the_process_ends() -> None:
    with collector() as told:
        async with AsyncExitStack() as stack:
            tracer, export = tracing(settings(told.url), Metrics(), stack)
            with tracer.begin("request", lambda: NOWHERE):
                pass
            assert export is not None
            await export.drained(2.0)
        (span,) = told.spans
    assert (span.name, span.resource["service.name"]) == ("request", "shop-memory")
    assert span.resource["service.version"] == semmem.__version__
    assert span.resource["service.instance.id"]


async def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "semmem.telemetry.tracing", None)
    async with AsyncExitStack() as stack:
        with pytest.raises(TracingError, match=r"pip install 'semmem\[otel\]'"):
            tracing(settings("http://127.0.0.1:9/v1/traces"), Metrics(), stack)
