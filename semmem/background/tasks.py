"""Owned tasks and threads, and failures of those that go on. No task is spawned anywhere else in semmem's own code, so
nothing runs that nobody owns."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

CANCELLED_S = 10.0
"""So long a cancelled task has to end."""


async def ends_within(work: Awaitable[object], timeout_s: float) -> bool:
    """Wait for it so long at most; whether it has ended."""
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        return False
    return True


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

    async def drained(self, timeout_s: float) -> bool:
        """Wait for all of them, and cancel whatever is left then; whether nothing was."""
        done = await self.wait(timeout_s)
        await self.cancel()
        return done

    async def cancel(self, timeout_s: float = CANCELLED_S) -> None:
        """Cancel all of them and wait until they have ended, at most ``timeout_s``: a library may swallow a
        cancellation, and the process shall end all the same."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, going_on = await asyncio.wait(tasks, timeout=timeout_s)
            for task in going_on:
                log.error("task %s was cancelled and goes on", task.get_name())


class OffloadThreads:
    """Threads for work that would hold up the event loop. What has not begun when its caller gives up is left. One by
    default: each that computes delays the event loop by some milliseconds now and then."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="semmem-large-body")

    async def __call__(self, work: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def close(self) -> None:
        """Wait for what has begun."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)


REMIND_S = 60.0
"""What still fails is said again after so long."""


class Outage:
    """Of one thing that is tried again and again. ``what`` names it in the log; ``level`` is that of its failures."""

    def __init__(
        self, log: logging.Logger, what: str, *, level: int = logging.ERROR, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log, self._what, self._level, self._clock = log, what, level, clock
        self._failures = 0
        self._began = self._said = 0.0

    @property
    def lasts(self) -> bool:
        """Whether it failed when it was last tried."""
        return self._failures > 0

    def failed(self, why: object) -> None:
        """``why`` is shown, so that it must hold nothing of a user's."""
        now = self._clock()
        self._failures += 1
        if self._failures == 1:
            self._began = self._said = now
            self._log.log(self._level, "%s failed, it is tried again: %s", self._what, why)
        elif now - self._said >= REMIND_S:
            self._said = now
            told = self._what, self._failures, now - self._began, why
            self._log.log(self._level, "%s still fails, %d times in %.0f s: %s", *told)

    def worked(self) -> None:
        if self._failures > 1:
            told = self._what, self._failures, self._clock() - self._began
            self._log.log(self._level, "%s works again, after %d failures in %.1f s", *told)
        self._failures = 0
