"""A user's memories are bounded: beyond the limit the least valuable go."""

from __future__ import annotations

import time
from collections.abc import Callable

from semmem.lifecycle.removal import remove
from semmem.lifecycle.value import Decay, value
from semmem.memory import Memory, MemoryStatus, Scope
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Store

QUOTA = "quota"
"""The reason under which memories are counted that went for want of room."""


class Quota:
    """Keeps at most ``memories_max`` memories per user, of all kinds together. MemoriesRemoved is announced."""

    def __init__(
        self,
        store: Store,
        records: MemoryRecords,
        *,
        memories_max: int = 1000,
        decay: Decay | None = None,
        clock: Callable[[], float] = time.time,
        announce: Announce = nobody_listens,
    ) -> None:
        if memories_max < 1:
            raise ValueError("memories_max must be at least 1")
        self._store = store
        self._records = records
        self._memories_max = memories_max
        self._decay = decay or Decay()
        self._clock = clock
        self._announce = announce

    async def make_room(self, user: str) -> int:
        """Forget what is over the limit; how many memories that were. Raises StoreError and JournalError."""
        scope = Scope(user)
        number = await self._store.count(scope)
        if number <= self._memories_max:
            return 0
        memories = await self._store.list(scope, limit=number)
        surplus = (await self._by_worth(user, memories))[: len(memories) - self._memories_max]
        for memory in surplus:
            await remove(self._store, self._records, scope, memory.id)
        self._announce(MemoriesRemoved(QUOTA, len(surplus)))
        return len(surplus)

    async def _by_worth(self, user: str, memories: list[Memory]) -> list[Memory]:
        """Least first: what is no longer retrieved, then by value, then what was said longest ago."""
        uses = await self._records.uses(user)
        now = self._clock()

        def worth(memory: Memory) -> tuple[bool, float, float, str]:
            worth_now = value(memory, uses.get(memory.id, Uses()), now, self._decay)
            return memory.status is MemoryStatus.ACTIVE, worth_now, memory.updated_at, memory.id

        return sorted(memories, key=worth)
