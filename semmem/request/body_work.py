"""Work on bodies: at once where they are short, beside the event loop where they are large."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from semmem.ports.text_work import Offload

T = TypeVar("T")

LARGE_BODY_BYTES = 1024 * 1024
"""Bodies above this wait for each other only: a chat of a hundred kilobytes does not wait behind them."""


@dataclass(frozen=True, slots=True)
class BodyWork:
    """Who works on a body of which length. Bodies of at most ``inline_bytes_max`` are worked on at once, those above
    LARGE_BODY_BYTES by ``large`` (None: like all others), the rest by ``usual``."""

    inline_bytes_max: int = 64 * 1024
    usual: Offload = asyncio.to_thread
    large: Offload | None = None

    async def do(self, body_bytes: int, work: Callable[[], T], *, until: float | None = None) -> T:
        """What ``work`` returns. Raises TimeoutError at ``until``, in the event loop's time; work that was begun beside
        the event loop then ends unheard. What is worked on at once is not interrupted."""
        if body_bytes <= self.inline_bytes_max:
            return work()
        offload = self.usual if self.large is None or body_bytes <= LARGE_BODY_BYTES else self.large
        async with asyncio.timeout_at(until):
            return await offload(work)
