"""A user's memories are bounded: beyond the limit the least valuable go."""

from __future__ import annotations

from semmem.memory import Memory, MemoryStatus, Scope
from semmem.ports import History, Store


class Quota:
    """Keeps at most ``memories_max`` memories per user, of all kinds together."""

    def __init__(self, store: Store, history: History, *, memories_max: int = 1000) -> None:
        if memories_max < 1:
            raise ValueError("memories_max must be at least 1")
        self._store = store
        self._history = history
        self._memories_max = memories_max

    async def make_room(self, user: str) -> int:
        """Forget what is over the limit; how many memories that were. Raises StoreError and JournalError."""
        scope = Scope(user)
        number = await self._store.count(scope)
        if number <= self._memories_max:
            return 0
        memories = await self._store.list(scope, limit=number)
        surplus = sorted(memories, key=_worth)[: len(memories) - self._memories_max]
        for memory in surplus:
            await self._history.forget_versions(scope, memory.id)
            await self._store.forget(scope, memory.id)
        return len(surplus)


def _worth(memory: Memory) -> tuple[bool, float, float, str]:
    """What is no longer retrieved goes first, then what matters least, then what was said longest ago."""
    return memory.status is MemoryStatus.ACTIVE, memory.importance, memory.updated_at, memory.id
