"""A user's memories are bounded: beyond the limit the least valuable go; and so are passages: the oldest go."""

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from cachetools import LRUCache

from semmem.lifecycle.writes import remove
from semmem.memory import PASSAGES, Memory, MemoryStatus, Scope
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import MemoryRecords, Uses, WriteRecords
from semmem.ports.store import Store, list_all

QUOTA, PASSAGE_QUOTA = "quota", "passage_quota"
"""The reasons under which memories, and passages, are counted that went for want of room."""
USERS_MAX = 10_000
"""For so many users it is known how much room is left."""
UNCOUNTED_MAX = 20
"""A user may have so many memories over the limit, for each other replica that writes them, until it counts."""


@dataclass(frozen=True, slots=True)
class Decay:
    """``half_life_s`` in seconds, of a memory that was never used; ``floor`` a share of 1."""

    half_life_s: float = 30 * 86_400.0
    floor: float = 0.1

    def __post_init__(self) -> None:
        if self.half_life_s <= 0 or not 0 <= self.floor <= 1:
            raise ValueError("half_life_s must be above 0, floor between 0 and 1")


def value(memory: Memory, uses: Uses, now: float, decay: Decay) -> float:
    """What the memory is worth keeping at ``now``, in [0, 1]: what it matters, faded by the time since it was last said
    or last put into a prompt.

        value = importance * (floor + (1 - floor) * 2 ** (-age / strength))
        strength = half_life * (1 + ln(1 + uses))

    This is the forgetting curve of Ebbinghaus (Über das Gedächtnis, 1885), R = e^(-t/S), written with a half-life: a
    memory that was used 1, 10 and 100 times fades 1.7, 3.4 and 5.6 times as slowly as one that never was. ``floor`` is
    the share that never fades, so that what matters most outlasts what is merely new.
    """
    age_s = max(0.0, now - max(memory.updated_at, uses.last_at))
    strength_s = decay.half_life_s * (1.0 + math.log1p(uses.count))
    kept = math.pow(2.0, -age_s / strength_s)
    return min(max(memory.importance, 0.0), 1.0) * (decay.floor + (1.0 - decay.floor) * kept)


@dataclass(eq=False, repr=False)
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
        self._left: LRUCache[str, int] = LRUCache(USERS_MAX)

    async def grown(self, user: str) -> int:
        """``make_room`` for one memory more. To count reads something of all that the user has, so it is done again
        only after half of the room that was left, or UNCOUNTED_MAX memories: another replica may use room as well."""
        left = self._left.get(user, 0)
        if left == 0:
            return await self.make_room(user)
        self._left[user] = left - 1
        return 0

    async def make_room(self, user: str) -> int:
        """Forget what is over the limit; how many memories that were. Raises StoreError and JournalError."""
        scope = Scope(user)
        number = await self.store.count(scope)
        self._left[user] = min(max(0, self.memories_max - number) // 2, UNCOUNTED_MAX - 1)
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


@dataclass(eq=False, repr=False)
class PassageQuota:
    """Keeps at most ``per_user_max`` passages of each user. MemoriesRemoved is announced."""

    store: Store
    records: WriteRecords
    per_user_max: int
    announce: Announce = nobody_listens

    async def make_room(self, user: str) -> int:
        """Forget the oldest; how many. Raises StoreError and JournalError."""
        if await self.store.count(Scope(user), types=PASSAGES) <= self.per_user_max:
            return 0
        kept = sorted(await all_passages(self.store, user), key=lambda passage: -passage.said_at)
        surplus = kept[self.per_user_max :]
        for passage in surplus:
            await remove(self.store, self.records, Scope(user), passage.id)
        self.announce(MemoriesRemoved(PASSAGE_QUOTA, len(surplus)))
        return len(surplus)


async def all_passages(store: Store, user: str) -> list[Memory]:
    """All passages of a user, without vectors. Raises StoreError."""
    return await list_all(store, Scope(user), types=PASSAGES, vectors=False)
