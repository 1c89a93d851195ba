"""What does not depend on the question is worked out once for each memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

from semmem.memory import Memory

T = TypeVar("T")


class OncePerMemory(Generic[T]):
    """``derive`` as a function that remembers what it said of a memory for as long as somebody holds the memory.

    Of an erased memory nothing stays behind, so what is derived must not hold the memory itself. A memory is known by
    being the same object: another version is another one.
    """

    def __init__(self, derive: Callable[[Memory], T]) -> None:
        self._derive = derive
        self._known: dict[int, tuple[T, ref[Memory]]] = {}

    def __call__(self, memory: Memory) -> T:
        place = id(memory)
        known = self._known.get(place)
        if known is None:
            known = self._derive(memory), ref(memory, lambda _gone: self._known.pop(place, None))
            self._known[place] = known
        return known[0]

    def __len__(self) -> int:
        """Of how many memories something is remembered now."""
        return len(self._known)
