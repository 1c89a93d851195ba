"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from semmem.telemetry.loop_lag import watch_loop
from semmem.telemetry.metrics import Metrics


async def _seen(metrics: Metrics, at_least: float) -> float:
    """How many of the looks met a lag of more than 50 ms, once there were so many looks."""
    while _value(metrics, "_count") < at_least:
        await asyncio.sleep(0.005)
    return _value(metrics, "_count") - _value(metrics, "_bucket", le="0.05")


def _hold_the_loop_up() -> None:
    time.sleep(0.2)


def _value(metrics: Metrics, suffix: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"semmem_loop_lag_seconds{suffix}", labels) or 0.0


async def test_what_holds_the_loop_up_is_seen_as_lag_and_waiting_is_not() -> None:
    metrics = Metrics()
    watching = asyncio.get_running_loop().create_task(watch_loop(metrics.loop_lag_seconds, interval_s=0.01))
    try:
        assert await _seen(metrics, 3) <= 1  # a busy machine may be late by itself, once
        before = await _seen(metrics, 3)
        _hold_the_loop_up()
        assert await _seen(metrics, _value(metrics, "_count") + 2) > before
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
