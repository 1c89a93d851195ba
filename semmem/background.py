"""Everything that runs beside the requests: owned tasks, the journal's writer, the learner. All bounded, all drained.

No task is spawned anywhere else in semmem's own code, so nothing runs that nobody owns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from semmem.memory import Forgetting, Turn, TurnEnding
from semmem.ports.errors import JournalError, SemmemError
from semmem.ports.events import Announce, JournalCommitted, nobody_listens
from semmem.ports.learning import Batch, BatchQueue, BatchRules
from semmem.ports.recording import TurnClosed, TurnRecords

T = TypeVar("T")

log = logging.getLogger(__name__)


class Tasks:
    """Owns tasks: keeps them referenced, logs the type of an unexpected failure, ends them together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def keep(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]], *, pause_s: float = 1.0) -> None:
        """Work that never ends: after a failure that nobody expected it begins again ``pause_s`` later."""
        self.spawn(name, self._again_and_again(name, work, pause_s))

    async def _again_and_again(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]], pause_s: float) -> None:
        while True:
            try:
                await work()
                return
            except Exception as error:  # whatever it is: everything that was to come would end with it
                log.error("%s failed, it begins again: %s", name, type(error).__name__)
                await asyncio.sleep(pause_s)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task %s failed: %s", task.get_name(), type(error).__name__)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for all of them; False when some still run after ``timeout_s``."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)
        return not self._tasks

    async def cancel(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OffloadThreads:
    """Threads for work that would hold up the event loop. What has not begun when its caller gives up is left.

    One by default: each that computes delays the event loop by some milliseconds now and then.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="semmem-large-body")

    async def __call__(self, work: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def close(self) -> None:
        """Wait for what has begun."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)


class JournalWriter:
    """Writes halves of turns behind the requests, many in one commit.

    ``offer_*`` never waits. A half waits at most ``commit_interval_s`` for company. When the journal fails, halves are
    kept and tried again; beyond ``queue_max`` new ones are dropped and counted (``dropped``), since memory only adds.
    What says that words are not to be kept has as much room again: without it they would be kept.
    """

    def __init__(
        self,
        journal: TurnRecords,
        *,
        queue_max: int = 10_000,
        commit_interval_s: float = 0.02,
        commit_halves_max: int = 500,
        retry_s: float = 0.5,
        announce: Announce = nobody_listens,
    ) -> None:
        self._journal = journal
        self._queue: deque[Turn | TurnClosed] = deque()
        self._queue_max = queue_max
        self._commit_interval_s = commit_interval_s
        self._commit_halves_max = commit_halves_max
        self._retry_s = retry_s
        self._announce = announce
        self._waiting = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    def offer(self, half: Turn | TurnClosed) -> bool:
        """Accept a half for writing; False when the queue is full and it was dropped."""
        forbids = isinstance(half, TurnClosed) and half.status in (TurnEnding.DECLINED, TurnEnding.REFUSED)
        if len(self._queue) >= self._queue_max * (2 if forbids else 1):
            self.dropped += 1
            return False
        self._queue.append(half)
        self._idle.clear()
        self._waiting.set()
        return True

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        """Drop the halves of erased turns; how many, and the turns of which nothing is left here.

        That their words were said is still written, as bare places: whoever is sent them again shall know them.
        Those that are being committed at this moment are not tried again; the journal decides about this try.
        """
        erased = {half.id for half in self._queue if isinstance(half, Turn) and what.covers_turn(half)}
        erased -= {half.id for half in self._queue if isinstance(half, Turn) and not what.covers_turn(half)}
        gone = [half for half in self._queue if _is_of(half, what, erased)]
        left = [half for half in self._queue if not _is_of(half, what, erased)]
        self._queue = deque([*left, *(_place(half) for half in gone if isinstance(half, Turn) and half.message_id)])
        self._settle()
        return len(gone), sorted(erased)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._waiting.wait()
            await asyncio.sleep(self._commit_interval_s)
            if not await self._commit():
                await asyncio.sleep(self._retry_s)

    async def _commit(self) -> bool:
        halves = [self._queue[i] for i in range(min(len(self._queue), self._commit_halves_max))]
        if not halves:
            return True  # all that waited was erased
        started = time.perf_counter()
        try:
            await self._journal.record(
                [half for half in halves if isinstance(half, Turn)],
                [half for half in halves if isinstance(half, TurnClosed)],
            )
        except Exception as error:  # whatever it is: a writer that dies would take every later turn with it
            self._announce(JournalCommitted("error", time.perf_counter() - started))
            why = error if isinstance(error, JournalError) else type(error).__name__
            log.error("journal write failed, %d halves wait: %s", len(self._queue), why)
            return False
        committed = {id(half) for half in halves}  # only now: a commit that was cancelled or failed keeps them
        while self._queue and id(self._queue[0]) in committed:
            self._queue.popleft()
        self._settle()
        self._announce(JournalCommitted("ok", time.perf_counter() - started))
        return True

    def _settle(self) -> None:
        if not self._queue:
            self._waiting.clear()
            self._idle.set()

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything offered is committed; False when ``timeout_s`` was not enough."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


def _is_of(half: Turn | TurnClosed, what: Forgetting, erased: set[str]) -> bool:
    return what.covers_turn(half) if isinstance(half, Turn) else half.turn_id in erased


def _place(turn: Turn) -> TurnClosed:
    return TurnClosed(f"{turn.message_id}.{turn.ordinal}", TurnEnding.ERASED, turn.opened_at)


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
