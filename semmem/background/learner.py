"""Who claims batches and has them learnt from, and who looks for changes of topic."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from semmem.background.tasks import Tasks
from semmem.ports.errors import JournalError, SemmemError
from semmem.ports.learning import Batch, BatchQueue, BatchRules

log = logging.getLogger(__name__)


class Learner:
    """Claims batches and learns from them, ``concurrency`` at a time, looking every ``poll_interval_s``."""

    def __init__(
        self,
        journal: BatchQueue,
        learn: Callable[[Batch], Awaitable[object]],
        *,
        rules: BatchRules,
        concurrency: int = 4,
        poll_interval_s: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._learn = learn
        self._rules = rules
        self._slots = asyncio.Semaphore(concurrency)
        self._poll_interval_s = poll_interval_s
        self._clock = clock
        self._tasks = Tasks()
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        """Look now: somebody knows that a batch is due."""
        self._nudged.set()

    async def run(self, can_learn: Callable[[], bool] = lambda: True) -> None:
        """Learn until cancelled; running batches go on until ``drained``.

        Nothing is claimed unless ``can_learn``: a batch that is claimed in vain has used up one of its tries.
        """
        while True:
            if not can_learn() or not await self._claim_one():
                await self._pause()

    async def _claim_one(self) -> bool:
        await self._slots.acquire()
        try:
            batch = await self._journal.claim(self._rules, now=self._clock())
        except JournalError as error:
            log.error("journal claim failed: %s", error)
            batch = None
        except BaseException:
            self._slots.release()
            raise
        if batch is None:
            self._slots.release()
            return False
        self._tasks.spawn(f"learn {batch.id}", self._learn_one(batch))
        return True

    async def _learn_one(self, batch: Batch) -> None:
        try:
            await self._learn(batch)
        except SemmemError as error:  # the lease runs out and the batch is claimed again
            log.warning("batch %s not finished: %s", batch.id, type(error).__name__)
        finally:
            self._slots.release()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._poll_interval_s):
                await self._nudged.wait()
        except TimeoutError:
            pass
        self._nudged.clear()

    async def drained(self, timeout_s: float) -> bool:
        """Wait for running batches; whatever is left is cancelled and claimed again when its lease runs out."""
        done = await self._tasks.wait(timeout_s)
        await self._tasks.cancel()
        return done


class DriftLoop:
    """Looks for changes of topic every ``interval_s``, while ``can_look``, and calls ``nudge`` when it found one.

    ``look`` is given the time. A look that fails is made up for by the next one.
    """

    def __init__(
        self,
        look: Callable[[float], Awaitable[int]],
        nudge: Callable[[], None],
        *,
        interval_s: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._look = look
        self._nudge = nudge
        self._interval_s = interval_s
        self._clock = clock

    async def run(self, can_look: Callable[[], bool] = lambda: True) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            if not can_look():
                continue
            try:
                if await self._look(self._clock()):
                    self._nudge()
            except SemmemError as error:
                log.warning("no look at topics: %s", type(error).__name__)
