"""What is kept of one user in this process: the memories, the index made of them, and what both take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from semmem.lifecycle.reflected import stands
from semmem.memory import Hit, Memory, MemoryStatus
from semmem.retrieval.index import sizes
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.regulars import Room


class Preloaded(StrEnum):
    """How it ended, to load a user for whom nobody waits."""

    LOADED = "loaded"  # or was there
    NO_ROOM = "no_room"  # somebody else would have had to go
    FAILED = "failed"  # the store did not answer, or was written to all the time


@dataclass(slots=True)
class Kept:
    """``index`` None: something was written since it was built. ``read_at``: by the clock of whoever read;
    ``doubted_at``: another process has changed them since.

    ``asked``: for how many questions what was found is kept beside the index; ``shown``: the ids of memories of which
    something is remembered since they were shown.
    """

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
        self.bytes += sizes.of_memory(memory) + sizes.of_vector(memory)
        self.index = None
        return True

    def find(self, hits: Sequence[Hit]) -> int:
        """These were found for a question that was not asked before; how many bytes more that makes."""
        self.asked += 1
        more = sizes.of_found(len(hits)) if self.asked <= sizes.FOUND_MAX else 0
        for memory in (hit.memory for hit in hits[: sizes.SHOWN_MAX] if hit.memory.id not in self.shown):
            self.shown.add(memory.id)
            more += sizes.of_note(memory)
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
    return Kept(memories, index, read_at, index.bytes + sizes.of_memories(hidden))


def slim(memory: Memory) -> Memory:
    """Of a memory that is not recalled only id and version matter: an older version must not come back."""
    return memory if memory.status is MemoryStatus.ACTIVE else replace(memory, content="", embedding=None)
