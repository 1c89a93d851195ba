"""A circuit breaker: stops asking a server that keeps failing, and finds out when it is back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semmem.ports.errors import ModelRefused, ModelUnavailable


class CircuitBreaker:
    """Closed until ``failures_max`` tries in a row failed; then open for ``open_s``; then half open: the next try
    decides, and whoever comes meanwhile is turned away.

    A try fails by ModelUnavailable or by being cancelled (no answer came in time). One that was refused has reached a
    living server; any other exception says nothing about it.
    """

    def __init__(self, *, failures_max: int, open_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        if failures_max < 1 or open_s < 0:
            raise ValueError("failures_max must be at least 1 and open_s not negative")
        self._failures_max = failures_max
        self._open_s = open_s
        self._clock = clock
        self._failures = 0
        self._open_until = -math.inf
        self._probing = False

    def anew(self) -> CircuitBreaker:
        """A closed one with the same limits."""
        return CircuitBreaker(failures_max=self._failures_max, open_s=self._open_s, clock=self._clock)

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open``."""
        if self._failures < self._failures_max:
            return "closed"
        return "open" if self._clock() < self._open_until else "half_open"

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around one try. Raises ModelUnavailable when it must not be made."""
        probe = self._admit()
        try:
            yield
        except (ModelUnavailable, asyncio.CancelledError):
            self._fail()
            raise
        except ModelRefused:
            self._failures = 0
            raise
        else:
            self._failures = 0
        finally:
            if probe:
                self._probing = False

    def _admit(self) -> bool:
        """Whether the try that now begins is the one that decides."""
        state = self.state
        if state == "open" or (state == "half_open" and self._probing):
            raise ModelUnavailable("circuit open")
        probe = state == "half_open"
        self._probing = self._probing or probe
        return probe

    def _fail(self) -> None:
        self._failures += 1
        if self._failures >= self._failures_max:
            self._open_until = self._clock() + self._open_s
