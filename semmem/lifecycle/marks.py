"""What is being erased, as this process knows it: hidden from every read, and refused to every write."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from semmem.memory import SKEW_S, Forgetting, Memory

LAG_S = 10.0
"""So long after an erasure a read of the store, which another replica may have made ready, may still show what went."""


class Marks:
    """``hold`` hides what an erasure covers until ``release``, which may leave it hidden for some more seconds.

    ``clock`` is set by nobody, ``wall`` may be: an erasure that lies ahead of it was dated by a clock that was ahead,
    and covers what was said until this process held it, not until that time comes.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._of_user: dict[str, dict[Forgetting, float]] = {}
        self._held_at: dict[Forgetting, float] = {}
        self._released_at: dict[str, float] = {}

    def hold(self, what: Forgetting) -> None:
        self._of_user.setdefault(what.scope.user, {})[what] = math.inf
        self._held_at.setdefault(what, self._clock())

    def release(self, what: Forgetting, *, after_s: float = 0.0) -> None:
        """Hide it ``after_s`` longer: somebody may be about to write what he read before."""
        marks, now = self._of_user.get(what.scope.user, {}), self._clock()
        if what in marks:
            marks[what] = now + after_s
            self._released_at[what.scope.user] = now
        self._drop_released()
        for user in [user for user, at in self._released_at.items() if at + LAG_S < now]:
            del self._released_at[user]

    def lately(self, user: str) -> bool:
        """Whether something of the user's is being erased, or was a moment ago."""
        return self.any_of(user) or self._released_at.get(user, -math.inf) + LAG_S >= self._clock()

    def any_of(self, user: str) -> bool:
        if user in self._of_user:
            self._drop_released()
        return user in self._of_user

    def cover(self, memory: Memory) -> bool:
        """Whether the memory is erased, whatever the store says."""
        erased = self._of_user.get(memory.user, ())
        return any(what.covers(memory) and not self._is_said_since(what, memory) for what in erased)

    def _is_said_since(self, what: Forgetting, memory: Memory) -> bool:
        now = self._wall()
        if what.memory_id is not None or what.at <= now + SKEW_S:
            return False
        return now - (self._clock() - self._held_at[what]) < memory.said_at <= now + SKEW_S

    def after(self, user: str, now: float) -> float:
        """``now``, or just after the user's newest erasure where the clock was set back behind that."""
        newest = max((what.at for what in self._of_user.get(user, ())), default=-math.inf)
        return now if now > newest else math.nextafter(newest, math.inf)

    def _drop_released(self) -> None:
        now = self._clock()
        for user, marks in list(self._of_user.items()):
            for what in [what for what, until in marks.items() if until <= now]:
                del marks[what], self._held_at[what]
            if not marks:
                del self._of_user[user]
