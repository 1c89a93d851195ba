"""Liveness, readiness, metrics, and the listener they are served by."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from semmem.background import Tasks
from semmem.management.server import HttpListener, create_health
from semmem.telemetry.metrics import Metrics, MetricsPage


async def test_health_over_a_real_socket() -> None:
    ready: dict[str, str | None] = {"journal": None, "embedder": "is being loaded"}
    metrics = Metrics()
    listener = HttpListener(
        create_health(lambda: ready, MetricsPage(metrics, gauges={metrics.journal_queue: lambda: 7})), "127.0.0.1:0"
    )
    address = listener.bind()
    assert not address.endswith(":0")
    tasks = Tasks()
    serving = tasks.spawn("health", listener.serve())
    async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        for _ in range(100):
            try:
                live = await client.get("/healthz")
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.02)
        assert live.status_code == 200
        not_yet, why = await client.get("/readyz"), {"embedder": "is being loaded"}
        assert (not_yet.status_code, not_yet.json()) == (503, {"journal": True, "embedder": False, "why": why})
        ready["embedder"] = None
        now = await client.get("/readyz")
        assert (now.status_code, now.json()) == (200, {"journal": True, "embedder": True})
        families = {
            family.name: family for family in text_string_to_metric_families((await client.get("/metrics")).text)
        }
        assert families["semmem_journal_queue"].samples[0].value == 7
        asked = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})
        assert asked.headers["content-type"].startswith("application/openmetrics-text")
    listener.stop()
    await asyncio.wait_for(serving, 60)


async def test_an_address_in_use_is_an_error_that_names_it() -> None:
    one = HttpListener(None, "127.0.0.1:0")
    address = one.bind()
    with pytest.raises(OSError, match=address):
        HttpListener(None, address).bind()
    one.close()
