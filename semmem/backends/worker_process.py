"""A child process in which texts are read: it has an interpreter lock of its own, and can be stopped in mid-expression.

``re`` holds the lock for as long as one search takes, and nothing stops a thread. The child is started when it is first
needed, killed when its work takes too long, and started again with the next piece of work; one piece at a time. It
gets no file of its parent but the two pipes, no variable of the environment beyond what an interpreter needs (keys of
models are among them), and ends when the pipes close. What goes through the pipes is pickled: both ends are semmem, and
what is unpickled here was pickled by functions of semmem.

For work that goes on when the parent was killed in the middle of it the child sets itself an alarm, which ends a
process whatever it is busy with."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from semmem.backends import worker_child
from semmem.backends.worker_child import LENGTH_BYTES
from semmem.ports.errors import WorkLost, WorkTooSlow, WorkUnavailable

T = TypeVar("T")

ORPHAN_GRACE_S = 5.0
"""So much longer than its parent allows a child works when nobody stops it."""
WALL_FACTOR = 10.0
"""A budget is processor time, so that a machine which has other things to do costs nobody's words; so many times as
long may it take by the clock."""
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TMPDIR", "SYSTEMROOT")


class WorkerProcess:
    """Implements TextWork. ``start_timeout_s`` bounds the start of the child, which no budget pays for."""

    def __init__(self, *, start_timeout_s: float = 60.0) -> None:
        self._start_timeout_s = start_timeout_s
        self._process: Child | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="semmem-worker")  # waits for the child, no more
        self._turn = asyncio.Lock()
        self._closed = False
        self._loaded: set[str] = set()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        """See TextWork. Waiting for other work and for the child's start costs nothing of ``budget_s``, nor does
        importing what ``work`` needs: seconds, on a busy machine."""
        wall_s = WALL_FACTOR * budget_s
        asked = pickle.dumps((budget_s, wall_s + ORPHAN_GRACE_S, work, args))
        async with self._turn:
            process = await self._ready(work)
            try:
                async with asyncio.timeout(wall_s):
                    answer = await self._in_thread(_exchanged, process, asked)
            except TimeoutError:
                await self._end()
                raise WorkTooSlow(f"stopped after {wall_s} s") from None
            except (OSError, EOFError):
                await self._end()
                if process.returncode == -signal.SIGPROF:
                    raise WorkTooSlow(f"stopped after {budget_s} s of processor time") from None
                raise WorkLost("the worker process died") from None
            except BaseException:  # cancelled: its answer would be taken for that of what is asked next
                self._abandon()
                raise
        done, value = pickle.loads(answer)
        if not done:
            raise RuntimeError(f"{value} in {work.__name__}")
        result: T = value
        return result

    async def close(self) -> None:
        """Stop the child and refuse further work. Idempotent."""
        self._closed = True
        await self._end()
        await asyncio.to_thread(self._thread.shutdown)

    async def _ready(self, work: Callable[..., Any]) -> Child:
        """The child, which has imported what ``work`` needs: whoever unpickles a function imports its module. What
        fails leaves no child behind."""
        if self._closed:
            raise WorkUnavailable("the worker process is closed")
        try:
            process = self._process
            if process is None or process.poll() is not None:
                await self._end()
                self._process = process = await self._in_thread(_spawn)
                self._loaded.clear()
                async with asyncio.timeout(self._start_timeout_s):
                    await self._in_thread(_read, process)
            if work.__module__ not in self._loaded:
                asked = pickle.dumps((self._start_timeout_s, self._start_timeout_s + ORPHAN_GRACE_S, callable, (work,)))
                async with asyncio.timeout(self._start_timeout_s):
                    await self._in_thread(_exchanged, process, asked)
                self._loaded.add(work.__module__)
            return process
        except (OSError, EOFError, TimeoutError) as error:
            await self._end()
            raise WorkUnavailable(f"the worker process did not start: {type(error).__name__}") from None
        except BaseException:
            self._abandon()
            raise

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    async def _end(self) -> None:
        reaped = self._abandon()
        if reaped is not None:
            await asyncio.wrap_future(reaped)

    def _abandon(self) -> Future[None] | None:
        """Kill it: the thread that reads from it then reads its end, and does what is to be done with the dead."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        return self._thread.submit(_reap, process)


Child = subprocess.Popen[bytes]


def _spawn() -> Child:
    """By ``subprocess``, which does not copy the tables of a parent of half a gigabyte, as a fork on the event loop
    does."""
    return subprocess.Popen(
        (sys.executable, "-m", worker_child.__name__),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a traceback quotes what users said
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        close_fds=True,
        start_new_session=True,  # Ctrl-C in a terminal is for semmem, which closes the child when it has drained
    )


def _exchanged(process: Child, asked: bytes) -> bytes:
    assert process.stdin is not None
    process.stdin.write(len(asked).to_bytes(LENGTH_BYTES) + asked)
    process.stdin.flush()
    return _read(process)


def _read(process: Child) -> bytes:
    """Raises EOFError."""
    assert process.stdout is not None
    length = process.stdout.read(LENGTH_BYTES)
    answer = process.stdout.read(int.from_bytes(length))
    if len(length) < LENGTH_BYTES or len(answer) < int.from_bytes(length):
        raise EOFError
    return answer


def _reap(process: Child) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what could not be written any more
                pipe.close()
