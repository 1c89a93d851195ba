"""What was found for a question that is asked again: a retry, a template, an agent's daily prompt.

Nothing is kept but while it holds to the last digit: as long as the user's index is the same object, no memory has
expired, and the question's vector is still the one that the embedder's cache keeps. Of an erased memory nothing stays
behind, since what is kept goes with the index; of a question only its hash is known here.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from semmem.memory import Vector
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.sizes import FOUND_MAX

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    vector: ref[Vector]
    since: float
    until: float
    found: T


class FoundBefore(Generic[T]):
    """Of each index the ``entries_max`` questions that were asked last, and what was found for them."""

    def __init__(self, entries_max: int = FOUND_MAX) -> None:
        self._entries_max = entries_max
        self._of: WeakKeyDictionary[MemoryIndex, OrderedDict[Hashable, _Kept[T]]] = WeakKeyDictionary()

    def get(self, index: MemoryIndex, asked: Hashable, vector: Vector, now: float) -> T | None:
        """``asked``: all that the result depends on beside index, vector and time; without texts."""
        entries = self._of.get(index)
        kept = None if entries is None else entries.get(asked)
        if kept is None or entries is None or kept.vector() is not vector or not kept.since <= now < kept.until:
            return None
        entries.move_to_end(asked)
        return kept.found

    def put(
        self, index: MemoryIndex, asked: Hashable, vector: Vector, now: float, found: T, *, until: float = math.inf
    ) -> None:
        """``now``: as of when it was found, ``until``: how long it holds at most, in seconds since the epoch."""
        entries = self._of.setdefault(index, OrderedDict())
        entries[asked] = _Kept(ref(vector), now, min(until, index.same_until(now)), found)
        entries.move_to_end(asked)
        if len(entries) > self._entries_max:
            entries.popitem(last=False)
