"""What always matters and has ended or changed is said back in the next block, whatever is asked.

So the model can ask whether it is so, and the user sees at once what was understood.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from semmem.memory import Hit, Memory
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.search import ResolvedQuery
from semmem.text.screening import readable

SAID_BACK_S = 7 * 86_400.0
"""A change that was told longer ago is known by now."""
SAID_BACK_MAX = 10_000
"""So many versions of memories are remembered as said back, by this process alone: another one says them once more."""
CHANGES_MAX = 3
"""In one block, the newest."""


class Changes:
    """Remembers, for as long as the process lives, which changes were shown."""

    def __init__(self) -> None:
        self._said: LRUCache[tuple[str, int], bool] = LRUCache(SAID_BACK_MAX)

    def to_say_back(self, index: MemoryIndex | None, query: ResolvedQuery, kept: Sequence[Hit]) -> list[Hit]:
        """Those changes that no block has shown yet and ``kept`` does not hold, newest first. None where the user's
        index was not there in time: the next request says them."""
        if index is None or not index.changing:
            return []
        members = index.members(query.scope, query.types, query.now)
        shown = {hit.memory.id for hit in kept}
        found = [index.memories[place] for place in index.changing if members[place]]
        told = [memory for memory in found if memory.id not in shown and self._is_news(memory, query.now)]
        news = [memory for memory in told if readable(memory) is None]
        news.sort(key=lambda memory: -memory.said_at)
        return [Hit(memory, 0.0, 0.0) for memory in news[:CHANGES_MAX]]

    def said_back(self, shown: Sequence[Hit]) -> None:
        """These stand in a block."""
        for hit in shown:
            if hit.memory.changes_standing:
                self._said[hit.memory.id, hit.memory.version] = True

    def _is_news(self, memory: Memory, now: float) -> bool:
        return (memory.id, memory.version) not in self._said and 0 <= now - memory.said_at < SAID_BACK_S
