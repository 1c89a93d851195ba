"""Whether what was read of a user may still be shown: it ages, other processes change it, and writes come late."""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from semmem.retrieval.index.kept import Kept

LATE_S = 30.0
"""How long after it failed here (a deadline, a cancelled caller) a write may still be done in the store. What was read
before that is read again after it: a memory whose deletion came late must not stay here until the process ends."""
DOUBT_S = 1.0
"""How long memories that another process has changed are shown on while they are read anew: a request that came
meanwhile would have none at all."""
ALL_DOUBT_S = 5.0
"""The same where anybody's may have changed: they are read anew as they are asked for."""


class Freshness:
    """``staleness_s``: the age from which nothing is shown; infinite where only this process writes. While ``is_told``
    says that this process hears of others' changes and they of its, it is ``told_staleness_s``. All times by one
    clock."""

    def __init__(self, staleness_s: float, told_staleness_s: float | None = None) -> None:
        self._untold_s = staleness_s
        self._told_s = staleness_s if told_staleness_s is None else max(staleness_s, told_staleness_s)
        self.is_told: Callable[[], bool] = lambda: False
        self._late_until: dict[str, float] = {}
        self._all_doubted_at = -math.inf

    @property
    def _staleness_s(self) -> float:
        return self._told_s if self.is_told() else self._untold_s

    def is_current(self, user: str, kept: Kept, now: float) -> bool:
        """Whether it may be shown."""
        if now - kept.read_at >= self._staleness_s or now - kept.doubted_at >= DOUBT_S:
            return False
        return not self.missed_a_late_write(user, kept, now) and not self._is_doubted_too_long(kept, now)

    def is_certain(self, user: str, kept: Kept, now: float) -> bool:
        """Whether it may be shown, and nothing speaks against that."""
        return not self.is_doubted(kept) and self.is_current(user, kept, now)

    def is_ageing(self, kept: Kept, now: float) -> bool:
        """Whether it is to be read anew, though it may be shown for a while yet."""
        return now - kept.read_at > self._staleness_s / 2 or self.is_doubted(kept)

    def is_doubted(self, kept: Kept) -> bool:
        """Whether another process may have changed it since it was read."""
        return kept.doubted_at < math.inf or kept.read_at <= self._all_doubted_at

    def missed_a_late_write(self, user: str, kept: Kept, now: float) -> bool:
        return kept.read_at < self._late_until.get(user, -math.inf) <= now

    def doubt_all(self, now: float) -> None:
        """Another process may have changed anybody's memories."""
        self._all_doubted_at = now

    def may_be_late(self, user: str, now: float, kept: Container[str]) -> None:
        """A write failed here, and may still be done. ``kept``: users of whom something is here."""
        waiting = self._late_until.items()
        self._late_until = {other: until for other, until in waiting if until > now or other in kept}
        self._late_until[user] = now + LATE_S

    def was_read(self, user: str, kept: Kept) -> None:
        """Of writes that came late before that nothing can be missing any more."""
        if kept.read_at >= self._late_until.get(user, math.inf):
            del self._late_until[user]

    def _is_doubted_too_long(self, kept: Kept, now: float) -> bool:
        return kept.read_at <= self._all_doubted_at <= now - ALL_DOUBT_S
