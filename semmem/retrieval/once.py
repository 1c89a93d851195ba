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
