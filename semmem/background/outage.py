"""Failures of a loop that goes on: said when they begin, now and then while they last, and counted when they end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REMIND_S = 60.0
"""What still fails is said again after so long."""


class Outage:
    """Of one thing that is tried again and again. ``what`` names it in the log; ``level`` is that of its failures."""

    def __init__(
        self,
        log: logging.Logger,
        what: str,
        *,
        level: int = logging.ERROR,
        clock: Callable[[], float] = time.monotonic,
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
