"""What was used last, by name; the rest is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The ``entries_max`` values that were last put or got, by name."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[str, T] = OrderedDict()

    def get(self, name: str) -> T | None:
        if name not in self._entries:
            return None
        self._entries.move_to_end(name)
        return self._entries[name]

    def drop(self, unwanted: Callable[[T], bool]) -> None:
        for name in [name for name, value in self._entries.items() if unwanted(value)]:
            del self._entries[name]

    def put(self, name: str, value: T) -> None:
        self._entries[name] = value
        self._entries.move_to_end(name)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
