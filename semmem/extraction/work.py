"""Where texts are read by rules: off the event loop, and for a limited time.

What people write is read in milliseconds. The limits are for texts that somebody has made up to be slow: such a text
costs its own turn and nothing else."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from semmem.ports.errors import WorkLost, WorkTooSlow

T = TypeVar("T")

TOO_SLOW = "too_slow"
BATCH_TOO_SLOW = "batch_too_slow"
WORKER_DIED = "worker_died"
"""Reasons for not reading a text: it took longer than it may; those before it had taken all the time of their batch;
the process that read it died of it."""


class InThread:
    """TextWork in a worker thread, without a limit: for tests and commands, where nobody else waits."""

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        return await asyncio.to_thread(work, *args)


IN_THREAD = InThread()


def reason(error: WorkTooSlow | WorkLost) -> str:
    """Why a text was not read, as one word."""
    return TOO_SLOW if isinstance(error, WorkTooSlow) else WORKER_DIED
