"""What is being erased, as this process knows it: hidden from every read, and refused to every write."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from semmem.memory import Forgetting, Memory


class Marks:
    """``hold`` hides what an erasure covers until ``release``, which may leave it hidden for some more seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of_user: dict[str, dict[Forgetting, float]] = {}

    def hold(self, what: Forgetting) -> None:
        self._of_user.setdefault(what.scope.user, {})[what] = math.inf

    def release(self, what: Forgetting, *, after_s: float = 0.0) -> None:
        """Hide it ``after_s`` longer: somebody may be about to write what he read before."""
        marks = self._of_user.get(what.scope.user, {})
        if what in marks:
            marks[what] = self._clock() + after_s
        self._drop_released()

    def any_of(self, user: str) -> bool:
        if user in self._of_user:
            self._drop_released()
        return user in self._of_user

    def cover(self, memory: Memory) -> bool:
        """Whether the memory is erased, whatever the store says."""
        return any(what.covers(memory) for what in self._of_user.get(memory.user, ()))

    def after(self, user: str, now: float) -> float:
        """``now``, or just after the user's newest erasure where the clock was set back behind that."""
        newest = max((what.at for what in self._of_user.get(user, ())), default=-math.inf)
        return now if now > newest else math.nextafter(newest, math.inf)

    def _drop_released(self) -> None:
        now = self._clock()
        for user, marks in list(self._of_user.items()):
            for what in [what for what, until in marks.items() if until <= now]:
                del marks[what]
            if not marks:
                del self._of_user[user]
