"""The most recently used entries of a table. Every request reads and writes a dozen, so it is a few lines around what
the interpreter has in C."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most ``entries_max`` entries; the one that was used longest ago goes first."""

    __slots__ = ("_entries", "_entries_max")

    def __init__(self, entries_max: int) -> None:
        self._entries = OrderedDict[K, V]()
        self._entries_max = entries_max

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The entry, which counts as used; None where there is none."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        entries = self._entries
        entries[key] = value
        entries.move_to_end(key)
        if len(entries) > self._entries_max:
            entries.popitem(last=False)

    def values(self) -> list[V]:
        """The one that was used longest ago comes first."""
        return list(self._entries.values())

    def drop(self, unwanted: Callable[[V], bool]) -> None:
        """Forget those entries; the others stay as recent as they were."""
        for key in [key for key, value in self._entries.items() if unwanted(value)]:
            del self._entries[key]
