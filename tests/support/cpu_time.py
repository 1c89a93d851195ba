"""Bounds on CPU time for tests whose subject is a blow-up (a square, a backtracking expression), never a speed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TRIES = 5
YARDSTICK_S = 0.002
"""What the yardstick takes where bounds were found."""


def within_cpu_s(bound_s: float, act: Callable[[int], object], tries: int = TRIES) -> bool:
    """Whether some try takes at most `bound_s` seconds of this thread's CPU time, or as much more as this machine is
    slower than the one that bounds were found on.

    `act` gets the number of the try, for what would answer from a cache the second time. The collector is off
    meanwhile: its time belongs to whatever was made before, and a busy machine's caches can spoil one try, not all.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return any(_seconds(act, attempt) <= of_this_machine(bound_s) for attempt in range(tries))
    finally:
        if was_on:
            gc.enable()


def of_this_machine(bound_s: float) -> float:
    """So much of this machine's CPU time, as busy as it is just now."""
    return bound_s * max(1.0, min(_seconds(_yardstick, attempt) for attempt in range(3)) / YARDSTICK_S)


def _yardstick(_attempt: int) -> int:
    """A bit of what the tests' subjects do: numbers, texts, dictionaries."""
    seen: dict[str, int] = {}
    for number in range(15_000):
        word = str(number % 1000)
        seen[word] = seen.get(word, 0) + len(word)
    return len(seen)


def _seconds(act: Callable[[int], object], attempt: int) -> float:
    started = time.thread_time()
    act(attempt)
    return time.thread_time() - started
