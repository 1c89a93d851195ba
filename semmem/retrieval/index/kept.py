"""What is kept of one user in this process: the memories, the index made of them, what both take, and whether it may
still be shown: it ages, other processes change it, and writes come late."""

import math
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from sys import getsizeof

from cachetools import TTLCache

from semmem.lifecycle.reflected import stands
from semmem.memory import Hit, Memory, MemoryStatus, Scope
from semmem.retrieval.index import sizes
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.regulars import Room

LATE_S = 30.0
"""How long after it failed here (a deadline, a cancelled caller) a write may still be done in the store. What was read
before that is read again after it: a memory whose deletion came late must not stay here until the process ends."""
DOUBT_S = 1.0
"""How long memories that another process has changed are shown on while they are read anew: a request that came
meanwhile would have none at all."""
ALL_DOUBT_S = 5.0
"""The same where anybody's may have changed: they are read anew as they are asked for."""
SILENT_USERS_MAX, SILENT_S = 50_000, 60.0
"""Of so many users it is believed so long that they have said nothing: another replica may have kept something."""


class Preloaded(StrEnum):
    """How it ended, to load a user for whom nobody waits."""

    LOADED = "loaded"  # or was there
    NO_ROOM = "no_room"  # somebody else would have had to go
    FAILED = "failed"  # the store did not answer, or was written to all the time


@dataclass(slots=True)
class Kept:
    """``index`` None: something was written since it was built. ``read_at``: by the clock of whoever read;
    ``doubted_at``: another process has changed them since. ``asked``: for how many questions what was found is kept
    beside the index; ``shown``: the ids of memories of which something is remembered since they were shown."""

    memories: dict[str, Memory]
    index: MemoryIndex | None
    read_at: float
    bytes: int
    doubted_at: float = math.inf
    asked: int = 0
    shown: set[str] = field(default_factory=set)

    @property
    def size(self) -> Room:
        return Room(self.bytes, len(self.memories), 1)

    def write(self, memory: Memory) -> bool:
        """The memory's new version is in the store. False, and nothing changes, where a later one is here."""
        present = self.memories.get(memory.id)
        if present is not None and present.version >= memory.version:
            return False  # as in the store, a version is written once
        self.memories[memory.id] = slim(memory)
        self.bytes += sizes.of_memory(memory) + (0 if memory.embedding is None else memory.embedding.nbytes)
        self.index = None
        return True

    def find(self, hits: Sequence[Hit]) -> int:
        """These were found for a question that was not asked before; how many bytes more that makes."""
        self.asked += 1
        more = sizes.FOUND_BYTES + sizes.HIT_BYTES * len(hits) if self.asked <= sizes.FOUND_MAX else 0
        for memory in (hit.memory for hit in hits[: sizes.SHOWN_MAX] if hit.memory.id not in self.shown):
            self.shown.add(memory.id)
            more += sizes.NOTE_BYTES + sizes.NOTE_TEXT_SHARE * getsizeof(memory.content)
        self.bytes += more
        return more


def built(memories: dict[str, Memory], read_at: float) -> Kept:
    """With an index, which takes milliseconds to build: for a thread beside the event loop."""
    live: list[Memory] = []
    hidden: list[Memory] = []
    for memory in memories.values():
        is_live = memory.status is MemoryStatus.ACTIVE and stands(memory, memories)
        (live if is_live else hidden).append(memory)
    index = MemoryIndex(live, hidden)
    return Kept(memories, index, read_at, index.bytes + sum(map(sizes.of_memory, hidden)))


def slim(memory: Memory) -> Memory:
    """Of a memory that is not recalled only id and version matter: an older version must not come back."""
    return memory if memory.status is MemoryStatus.ACTIVE else replace(memory, content="", embedding=None)


class Freshness:
    """``staleness_s``: the age from which nothing is shown; infinite where only this process writes. While ``is_told``
    says that this process hears of others' changes and they of its, it is ``told_staleness_s``. All times by one
    clock."""

    def __init__(self, staleness_s: float, told_staleness_s: float | None = None) -> None:
        self._untold_s = staleness_s
        self._told_s = staleness_s if told_staleness_s is None else max(staleness_s, told_staleness_s)
        self.is_told: Callable[[], bool] = lambda: False
        self._late_until: dict[str, float] = {}
        self.all_doubted_at = -math.inf
        """When another process last may have changed anybody's memories."""

    @property
    def _staleness_s(self) -> float:
        return self._told_s if self.is_told() else self._untold_s

    def is_current(self, user: str, kept: Kept, now: float) -> bool:
        """Whether it may be shown."""
        if now - kept.read_at >= self._staleness_s or now - kept.doubted_at >= DOUBT_S:
            return False
        doubted_too_long = kept.read_at <= self.all_doubted_at <= now - ALL_DOUBT_S
        return not doubted_too_long and not self.missed_a_late_write(user, kept, now)

    def is_ageing(self, kept: Kept, now: float) -> bool:
        """Whether it is to be read anew, though it may be shown for a while yet."""
        return now - kept.read_at > self._staleness_s / 2 or self.is_doubted(kept)

    def is_doubted(self, kept: Kept) -> bool:
        """Whether another process may have changed it since it was read."""
        return kept.doubted_at < math.inf or kept.read_at <= self.all_doubted_at

    def missed_a_late_write(self, user: str, kept: Kept, now: float) -> bool:
        return kept.read_at < self._late_until.get(user, -math.inf) <= now

    def may_be_late(self, user: str, now: float, kept: Container[str]) -> None:
        """A write failed here, and may still be done. ``kept``: users of whom something is here."""
        waiting = self._late_until.items()
        self._late_until = {other: until for other, until in waiting if until > now or other in kept}
        self._late_until[user] = now + LATE_S

    def was_read(self, user: str, kept: Kept) -> None:
        """Of writes that came late before that nothing can be missing any more."""
        if kept.read_at >= self._late_until.get(user, math.inf):
            del self._late_until[user]


class Unsaid:
    """Scopes without passages, as far as this process knows, so that the store is not asked for them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._scopes: TTLCache[str, set[Scope]] = TTLCache(SILENT_USERS_MAX, SILENT_S, timer=clock)

    def holds(self, scope: Scope) -> bool:
        return scope in self._scopes.get(scope.user, ())

    def note(self, scope: Scope) -> None:
        """The store has nothing of it."""
        self._scopes.setdefault(scope.user, set()).add(scope)

    def spoken(self, user: str) -> None:
        """Something of the user's is kept now."""
        self._scopes.pop(user, None)
