"""Where texts are read: beside the event loop, and not for ever.

Nothing here is expensive for what people write. It is for what somebody makes up: a text that is dear to read costs
its own turn and nothing else.
"""

from __future__ import annotations

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
    """TextWork for where nobody else is served: in a thread, which nothing stops."""

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        return await asyncio.to_thread(work, *args)


def reason(error: WorkTooSlow | WorkLost) -> str:
    """The word for it."""
    return TOO_SLOW if isinstance(error, WorkTooSlow) else WORKER_DIED
