"""Who has said nothing yet, so that the store is not asked for passages that are not there."""

from __future__ import annotations

import time
from collections.abc import Callable

from cachetools import TTLCache

from semmem.memory import Scope

USERS_MAX = 50_000
KNOWN_S = 60.0
"""So long it is believed: another replica may have kept something since."""


class Unsaid:
    """Scopes without passages, as far as this process knows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._scopes: TTLCache[str, set[Scope]] = TTLCache(USERS_MAX, KNOWN_S, timer=clock)

    def holds(self, scope: Scope) -> bool:
        return scope in self._scopes.get(scope.user, ())

    def note(self, scope: Scope) -> None:
        """The store has nothing of it."""
        self._scopes.setdefault(scope.user, set()).add(scope)

    def spoken(self, user: str) -> None:
        """Something of the user's is kept now."""
        self._scopes.pop(user, None)
