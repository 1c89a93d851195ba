"""What was worked out is not worked out again: what a memory alone says, and what was found for a question."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from semmem.memory import Memory, Vector
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.sizes import FOUND_MAX

T = TypeVar("T")


class OncePerMemory(Generic[T]):
    """``derive`` as a function that remembers what it said of a memory for as long as somebody holds the memory. Of an
    erased memory nothing stays behind, so what is derived must not hold the memory itself. A memory is known by being
    the same object: another version is another one."""

    def __init__(self, derive: Callable[[Memory], T]) -> None:
        self._derive = derive
        self._known: dict[int, tuple[T, _Held]] = {}

    def __call__(self, memory: Memory) -> T:
        place = id(memory)
        known = self._known.get(place)
        if known is None:
            held = _Held(memory, self._gone)
            held.place = place
            known = self._known[place] = (self._derive(memory), held)
        return known[0]

    def __len__(self) -> int:
        """Of how many memories something is remembered now."""
        return len(self._known)

    def _gone(self, held: ref[Memory]) -> None:
        if isinstance(held, _Held):
            self._known.pop(held.place, None)


class _Held(ref[Memory]):
    """Knows where its memory was, so that one function serves all: a closure for each takes 0.3 kB."""

    __slots__ = ("place",)

    place: int


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    vector: ref[Vector]
    since: float
    until: float
    found: T


class FoundBefore(Generic[T]):
    """Of each index the FOUND_MAX questions that were asked last, and what was found for them: a retry, a template, an
    agent's daily prompt. Nothing is kept but while it holds to the last digit: as long as the user's index is the same
    object, no memory has expired, and the question's vector is still the one that the embedder's cache keeps. Of an
    erased memory nothing stays behind, since what is kept goes with the index; of a question only its hash is known
    here."""

    def __init__(self) -> None:
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
        if len(entries) > FOUND_MAX:
            entries.popitem(last=False)
