"""Who claims batches and has them learnt from, and who looks for changes of topic."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from semmem.background.outage import Outage
from semmem.background.tasks import Tasks
from semmem.ports.errors import JournalError, SemmemError
from semmem.ports.learning import Batch, BatchRules

log = logging.getLogger(__name__)

REST_S, REST_SHARE = 10.0, 0.1
"""While nothing is written to the journal only time makes a batch due. Then it is looked for so seldom, or after such a
share of the shortest of the times that the rules name."""


class BatchQueue(Protocol):
    """Where batches are claimed. Several processes may claim from one. Raises JournalError."""

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        """Lease the next due batch. A user with a leased batch is passed over, so one user's batches never overlap.

        An expired lease makes the same batch (same id, facts and applied) claimable again with ``attempt`` + 1.
        """


class Learner:
    """Claims batches and learns from them, ``concurrency`` at a time, looking every ``poll_interval_s``.

    ``last_write`` is another value after each write to the journal; by default it always is.
    """

    def __init__(
        self,
        journal: BatchQueue,
        learn: Callable[[Batch], Awaitable[object]],
        *,
        rules: BatchRules,
        concurrency: int = 4,
        poll_interval_s: float = 1.0,
        clock: Callable[[], float] = time.time,
        last_write: Callable[[], object] = object,
    ) -> None:
        self._journal = journal
        self._learn = learn
        self._rules = rules
        self._slots = asyncio.Semaphore(concurrency)
        self._poll_interval_s = poll_interval_s
        self._clock = clock
        self._tasks = Tasks()
        self._nudged = asyncio.Event()
        self._last_write = last_write
        self._seen: object = None
        self._rests_until = -math.inf
        self._outage = Outage(log, "journal claim")

    def use(self, learn: Callable[[Batch], Awaitable[object]], rules: BatchRules) -> None:
        """Learn so from the next batch on."""
        self._learn, self._rules = learn, rules
        self.nudge()

    def nudge(self) -> None:
        """Look now: somebody knows that a batch is due."""
        self._rests_until = -math.inf
        self._nudged.set()

    async def run(self, can_learn: Callable[[], bool] = lambda: True) -> None:
        """Learn until cancelled; running batches go on until ``drained``.

        Nothing is claimed unless ``can_learn``: a batch that is claimed in vain has used up one of its tries.
        """
        while True:
            if not can_learn() or not await self._claim_one():
                await self._pause()

    async def _claim_one(self) -> bool:
        if self._rests():
            return False
        await self._slots.acquire()
        try:
            batch = await self._journal.claim(self._rules, now=self._clock())
            self._outage.worked()
        except JournalError as error:
            self._outage.failed(error)
            self._rests_until = -math.inf
            batch = None
        except BaseException:
            self._slots.release()
            raise
        if batch is None:
            self._slots.release()
            return False
        self._rests_until = -math.inf
        self._tasks.spawn(f"learn {batch.id}", self._learn_one(batch))
        return True

    def _rests(self) -> bool:
        """Whether nothing can have become due since the last look; else this is the look that the next rest is from."""
        now, written = asyncio.get_running_loop().time(), self._last_write()
        if written == self._seen and now < self._rests_until:
            return True
        self._seen, self._rests_until = written, now + _rest_s(self._rules)
        return False

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


def _rest_s(rules: BatchRules) -> float:
    times_s = (rules.idle_s, rules.answer_wait_s, rules.lease_s)
    return min(REST_S, *(REST_SHARE * time_s for time_s in times_s if time_s))


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
        self._outage = Outage(log, "look at topics", level=logging.WARNING)

    async def run(self, can_look: Callable[[], bool] = lambda: True) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            if not can_look():
                continue
            try:
                if await self._look(self._clock()):
                    self._nudge()
                self._outage.worked()
            except SemmemError as error:
                self._outage.failed(type(error).__name__)
