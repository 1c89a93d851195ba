"""How late the event loop comes to what is due: what any request or token waits for the code of others."""

from __future__ import annotations

import asyncio

from prometheus_client import Histogram

INTERVAL_S = 0.1
"""Between two looks: each costs some 30 microseconds of processor time."""


async def watch_loop(lag_seconds: Histogram, *, interval_s: float = INTERVAL_S) -> None:
    """Observe it until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + interval_s
        await asyncio.sleep(interval_s)
        lag_seconds.observe(max(0.0, loop.time() - due))
