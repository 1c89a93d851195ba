"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

from semmem.telemetry.metering import watch_loop
from semmem.telemetry.metrics import Metrics


@asynccontextmanager
async def _watched(requests: Callable[[], int], *, busy_s: float, idle_s: float) -> AsyncIterator[Metrics]:
    metrics = Metrics()
    watching = watch_loop(metrics.loop_lag_seconds, requests, busy_s=busy_s, idle_s=idle_s)
    task = asyncio.get_running_loop().create_task(watching)
    try:
        yield metrics
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _looks(metrics: Metrics, at_least: float) -> float:
    """How many of the looks met a lag of more than 50 ms, once there were so many looks."""
    while _value(metrics, "_count") < at_least:
        await asyncio.sleep(0.005)
    return _value(metrics, "_count") - _value(metrics, "_bucket", le="0.05")


def _value(metrics: Metrics, suffix: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"semmem_loop_lag_seconds{suffix}", labels) or 0.0


def _hold_the_loop_up() -> None:
    time.sleep(0.2)


async def test_what_holds_the_loop_up_is_seen_as_lag_and_waiting_is_not() -> None:
    async with _watched(lambda: 0, busy_s=0.01, idle_s=0.01) as metrics:
        before = await _looks(metrics, 3)
        assert before <= 1  # a busy machine may be late by itself, once
        _hold_the_loop_up()
        assert await _looks(metrics, _value(metrics, "_count") + 2) > before


async def test_it_is_looked_at_often_while_requests_come() -> None:
    requests = count()
    async with _watched(lambda: next(requests), busy_s=0.001, idle_s=0.3) as metrics, asyncio.timeout(60):
        await _looks(metrics, 20)  # six seconds, were no request noticed


async def test_it_is_looked_at_seldom_while_none_comes() -> None:
    async with _watched(lambda: 7, busy_s=0.001, idle_s=0.3) as metrics:
        await asyncio.sleep(0.1)
        assert _value(metrics, "_count") == 0
        await _looks(metrics, 1)
        await asyncio.sleep(0.1)
        assert _value(metrics, "_count") <= 2  # and not a hundred
