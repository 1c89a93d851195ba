"""Who has memories: what every copy of everything begins with."""

from __future__ import annotations

import math
from typing import Protocol

from semmem.ports.store import Enumerable

USERS_MAX = 2**31 - 1


class Known(Protocol):
    """Who may have memories, as the journal knows it. Raises JournalError."""

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]: ...


class Everybody:
    """Both are asked: rows that are being moved may be missing in the store's answer, and users whom nobody has told
    the journal of in the other."""

    def __init__(self, store: Enumerable, known: Known) -> None:
        self._store = store
        self._known = known

    async def users(self) -> list[str]:
        """Whoever has memories, or had some as far as the journal knows. Raises StoreError and JournalError."""
        known = await self._known.users_due(maintained_before=math.inf, limit=USERS_MAX)
        return sorted(await self._store.users() | set(known))
