"""What a read has to wait for, so that it shows what was written.

Milvus Lite does not read snapshots. A read that is under way while a memory's new row is inserted and its old row
deleted may miss both; one that starts while rows move from the write buffer into a segment (flush) may miss those
rows. So an old row is deleted only when every read that began before its successor was there has ended, and reads
wait for a flush.

A Milvus server does: there reads need not be waited for. It shows writes late instead (see own_writes).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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
