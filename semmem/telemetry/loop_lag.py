"""How late the event loop comes to what is due: what any request or token waits for the code of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client import Histogram

BUSY_S = 0.1
IDLE_S = 1.0
"""Between two looks, while requests come and while none does: each look costs some 0.1 ms of processor time."""


async def watch_loop(
    lag_seconds: Histogram, requests: Callable[[], int], *, busy_s: float = BUSY_S, idle_s: float = IDLE_S
) -> None:
    """Observe it until cancelled. ``requests``: how many there have been."""
    loop = asyncio.get_running_loop()
    seen = requests()
    pause_s = idle_s
    while True:
        due = loop.time() + pause_s
        await asyncio.sleep(pause_s)
        lag_seconds.observe(max(0.0, loop.time() - due))
        now = requests()
        pause_s, seen = idle_s if now == seen else busy_s, now
