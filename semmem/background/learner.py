"""Who claims batches and has them learnt from, who looks for changes of topic, and how both have texts embedded."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Protocol

from semmem.background.tasks import Outage, Tasks, ends_within
from semmem.extraction.drift import DriftWatch
from semmem.memory import Vector
from semmem.ports.embedder import Embedder, EmbedderWrapper
from semmem.ports.errors import JournalError, SemmemError
from semmem.ports.learning import Batch, BatchRules

log = logging.getLogger(__name__)

REST_S, REST_SHARE = 10.0, 0.1
"""While nothing is written to the journal only time makes a batch due. Then it is looked for so seldom, or after such a
share of the shortest of the times that the rules name."""


class BatchQueue(Protocol):
    """Where batches are claimed. Several processes may claim from one. Raises JournalError."""

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        """Lease the next due batch. A user with a leased batch is passed over, so one user's batches never overlap. An
        expired lease makes the same batch (same id, facts and applied) claimable again with ``attempt`` + 1."""


@dataclass(eq=False)
class Learner:
    """Claims batches and learns from them, ``concurrency`` at a time, looking every ``poll_interval_s``. ``last_write``
    is another value after each write to the journal; by default it always is."""

    journal: BatchQueue
    learn: Callable[[Batch], Awaitable[object]]
    _: KW_ONLY
    rules: BatchRules
    concurrency: InitVar[int] = 4
    poll_interval_s: float = 1.0
    clock: Callable[[], float] = time.time
    last_write: Callable[[], object] = object

    def __post_init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._tasks = Tasks()
        self._nudged = asyncio.Event()
        self._seen: object = None
        self._rests_until = -math.inf
        self._outage = Outage(log, "journal claim")

    def use(self, learn: Callable[[Batch], Awaitable[object]], rules: BatchRules) -> None:
        """Learn so from the next batch on."""
        self.learn, self.rules = learn, rules
        self.nudge()

    def nudge(self) -> None:
        """Look now: somebody knows that a batch is due."""
        self._rests_until = -math.inf
        self._nudged.set()

    async def run(self, can_learn: Callable[[], bool] = lambda: True) -> None:
        """Learn until cancelled; running batches go on until ``drained``. Nothing is claimed unless ``can_learn``: a
        batch that is claimed in vain has used up one of its tries."""
        while True:
            if not can_learn() or not await self._claim_one():
                await ends_within(self._nudged.wait(), self.poll_interval_s)
                self._nudged.clear()

    async def _claim_one(self) -> bool:
        if self._rests():
            return False
        await self._slots.acquire()
        try:
            batch = await self.journal.claim(self.rules, now=self.clock())
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
        now, written = asyncio.get_running_loop().time(), self.last_write()
        if written == self._seen and now < self._rests_until:
            return True
        times_s = (self.rules.idle_s, self.rules.answer_wait_s, self.rules.lease_s)
        rest_s = min(REST_S, *(REST_SHARE * time_s for time_s in times_s if time_s))
        self._seen, self._rests_until = written, now + rest_s
        return False

    async def _learn_one(self, batch: Batch) -> None:
        try:
            await self.learn(batch)
        except SemmemError as error:  # the lease runs out and the batch is claimed again
            log.warning("batch %s not finished: %s", batch.id, type(error).__name__)
        finally:
            self._slots.release()

    async def drained(self, timeout_s: float) -> bool:
        """Wait for running batches; whatever is left is cancelled and claimed again when its lease runs out."""
        return await self._tasks.drained(timeout_s)


async def watch_topics(
    watch: Callable[[], DriftWatch | None],
    nudge: Callable[[], None],
    can_look: Callable[[], bool] = lambda: True,
    *,
    interval_s: float = 5.0,
    clock: Callable[[], float] = time.time,
) -> None:
    """Call ``nudge`` when a change of topic, seen by the watch of the moment, has made a batch due; until cancelled. A
    look that fails is made up for by the next one."""
    outage = Outage(log, "look at topics", level=logging.WARNING)
    while True:
        await asyncio.sleep(interval_s)
        if (current := watch()) is None or not can_look():
            continue
        try:
            if await current.look(clock()):
                nudge()
            outage.worked()
        except SemmemError as error:
            outage.failed(type(error).__name__)


class PatientEmbedder(EmbedderWrapper):
    """An Embedder that has at most ``texts_max`` texts under way, behind those of requests; the others wait here, in
    the order they came: so that no request's question waits behind all that is learnt."""

    def __init__(self, embedder: Embedder, *, texts_max: int) -> None:
        super().__init__(embedder)
        self._slots = asyncio.Semaphore(texts_max)

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        async with self._slots:
            return await super().embed(text)
