"""What goes on beside the calls: owned tasks, the flush of Milvus Lite's buffer, and the reads that it waits for."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from semmem.ports.errors import StoreError

logger = logging.getLogger(__name__)


class OwnedTasks:
    """Starts tasks, logs the one that fails (its type only: messages may hold content), cancels the rest on close."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended. Idempotent."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("%s: a background task ended with %s", self._owner, type(error).__name__)


class BackgroundFlush:
    """Writes Milvus Lite's buffer into segments: calls ``flush`` when ``rows`` were written, or ``interval_s`` after
    the first row that waits. A row that lies in the buffer costs every search about 0.09 ms; one in a segment hardly
    anything. Rows are durable without this (write-ahead log): a flush that fails costs speed only."""

    def __init__(self, flush: Callable[[], Awaitable[None]], *, rows: int, interval_s: float) -> None:
        self._flush = flush
        self._rows = rows
        self._interval_s = interval_s
        self._waiting = 0
        self._some = asyncio.Event()
        self._enough = asyncio.Event()

    def wrote(self, rows: int) -> None:
        self._waiting += rows
        self._some.set()
        if self._waiting >= self._rows:
            self._enough.set()

    async def run(self) -> None:
        """For ever, one flush at a time. After a failure the next interval tries again; only the first is logged."""
        failed = False
        while True:
            await self._some.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._enough.wait()
            flushing = self._waiting
            try:
                await self._flush()
            except StoreError as error:
                if not failed:
                    logger.warning("milvus: flush failed (%s), %d rows wait", type(error).__name__, flushing)
                failed = True
                await asyncio.sleep(self._interval_s)
            else:
                failed = False
                self._waiting -= flushing
                self._some.clear()
                self._enough.clear()
                if self._waiting:
                    self.wrote(0)


class Reads:
    """The reads in flight, and a gate before new ones: what a read has to wait for, so that it shows what was written.
    Milvus Lite does not read snapshots. A read that is under way while a memory's new row is inserted and its old row
    deleted may miss both; one that starts while rows move from the write buffer into a segment (flush) may miss those
    rows. So an old row is deleted only when every read that began before its successor was there has ended, and reads
    wait for a flush. A Milvus server does: there reads need not be waited for. It shows writes late instead (see
    own_writes)."""

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
