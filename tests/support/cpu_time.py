"""Bounds on CPU time for tests whose subject is a blow-up (a square, a backtracking expression), never a speed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TRIES = 5


def within_cpu_s(bound_s: float, act: Callable[[int], object], tries: int = TRIES) -> bool:
    """Whether some try takes at most `bound_s` seconds of this thread's CPU time.

    `act` gets the number of the try, for what would answer from a cache the second time. The collector is off
    meanwhile: its time belongs to whatever was made before, and a busy machine's caches can spoil one try, not all.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return any(_seconds(act, attempt) <= bound_s for attempt in range(tries))
    finally:
        if was_on:
            gc.enable()


def _seconds(act: Callable[[int], object], attempt: int) -> float:
    started = time.thread_time()
    act(attempt)
    return time.thread_time() - started
