"""What a read has to wait for, so that it shows what was written.

Milvus Lite does not read snapshots. A read that is under way while a memory's new row is inserted and its old row
deleted may miss both; one that starts while rows move from the write buffer into a segment (flush) may miss those
rows. So an old row is deleted only when every read that began before its successor was there has ended, and reads
wait for a flush.

A Milvus server does, so the above costs it a wait in the background and nothing in reads. But a Bounded read may lag
behind a write by a time tick (200 ms), and on 2.3.5 a Session read does not wait for a deletion: a user whose
memories were just written here is read with Strong for a while.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cachetools import TTLCache


class Reads:
    """The reads in flight, and a gate before new ones."""

    def __init__(self) -> None:
        self._in_flight: set[asyncio.Future[None]] = set()
        self._gate = asyncio.Event()
        self._gate.set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        while not self._gate.is_set():
            await self._gate.wait()
        ended = asyncio.get_running_loop().create_future()
        self._in_flight.add(ended)
        try:
            yield
        finally:
            self._in_flight.discard(ended)
            ended.set_result(None)

    async def drained(self) -> None:
        """Return when every read that is in flight now has ended. Later ones do not matter."""
        if self._in_flight:
            await asyncio.wait(tuple(self._in_flight))

    @asynccontextmanager
    async def held_off(self) -> AsyncIterator[None]:
        """Within, no read is in flight and new ones wait."""
        self._gate.clear()
        try:
            await self.drained()
            yield
        finally:
            self._gate.set()


class RecentWrites:
    """The users written to in the last ``settle_s`` seconds."""

    def __init__(self, *, settle_s: float) -> None:
        self._written: TTLCache[str, None, float] = TTLCache(math.inf, settle_s)  # none may go before its time

    def add(self, user: str) -> None:
        self._written[user] = None

    def __contains__(self, user: str) -> bool:
        return user in self._written
