"""A user's memories are bounded: beyond the limit the least valuable go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from semmem.lifecycle.removal import remove
from semmem.lifecycle.value import Decay, value
from semmem.memory import Memory, MemoryStatus, Scope
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Store

QUOTA = "quota"
"""The reason under which memories are counted that went for want of room."""


@dataclass(eq=False)
class Quota:
    """Keeps at most ``memories_max`` memories per user, of all kinds together. MemoriesRemoved is announced."""

    store: Store
    records: MemoryRecords
    _: KW_ONLY
    memories_max: int = 1000
    decay: Decay = field(default_factory=Decay)
    clock: Callable[[], float] = time.time
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        if self.memories_max < 1:
            raise ValueError("memories_max must be at least 1")

    async def make_room(self, user: str) -> int:
        """Forget what is over the limit; how many memories that were. Raises StoreError and JournalError."""
        scope = Scope(user)
        number = await self.store.count(scope)
        if number <= self.memories_max:
            return 0
        memories = await self.store.list(scope, limit=number)
        surplus = (await self._by_worth(user, memories))[: len(memories) - self.memories_max]
        for memory in surplus:
            await remove(self.store, self.records, scope, memory.id)
        self.announce(MemoriesRemoved(QUOTA, len(surplus)))
        return len(surplus)

    async def _by_worth(self, user: str, memories: list[Memory]) -> list[Memory]:
        """Least first: what is no longer retrieved, then by value, then what was said longest ago."""
        uses = await self.records.uses(user)
        now = self.clock()

        def worth(memory: Memory) -> tuple[bool, float, float, str]:
            worth_now = value(memory, uses.get(memory.id, Uses()), now, self.decay)
            return memory.status is MemoryStatus.ACTIVE, worth_now, memory.updated_at, memory.id

        return sorted(memories, key=worth)
