"""A store's collections: memories with vectors of one embedding model, and beside them those of another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.ports.store import Enumerable, Fillable, Purgeable, Store, Sweepable


class Collection(Store, Sweepable, Purgeable, Enumerable, Fillable, Protocol):
    """One collection, as a store of its own."""


@dataclass(frozen=True, slots=True)
class Described:
    """``signature`` and ``dimension`` of the embedding that its vectors are of."""

    name: str
    signature: str
    dimension: int


class Collections(Protocol):
    """The collection that everybody reads, and those beside it. Raises StoreError."""

    @property
    def name(self) -> str:
        """What the first of them is called; the others' names begin with it."""

    async def open(self) -> None:
        """Connect. After a failure it may be called again. Raises as Store.open."""

    async def close(self) -> None:
        """Release everything, after the collections themselves were closed. Idempotent."""

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        """The one that everybody reads (None: there is none yet), and those beside it."""

    def collection(self, described: Described) -> Collection:
        """To be opened, which makes it when it is not there, and to be closed."""

    async def switch(self, name: str) -> None:
        """From now on everybody reads this one, in one step. Idempotent."""

    async def drop(self, name: str) -> None:
        """With all that it holds, and its passages. Never the one that everybody reads. Idempotent."""

    async def check_room(self) -> None:
        """As DiskBound says; nothing where there is no disk of this machine."""


def next_name(base: str, taken: Sequence[str]) -> str:
    """A name for one more collection: ``base_g2``, ``base_g3``, ..."""
    return f"{base}_g{1 + max((number_of(base, name) or 0 for name in taken), default=1)}"


def number_of(base: str, name: str) -> int | None:
    """1 for the first, the number of a later one, None for what is none of them."""
    if name == base:
        return 1
    found = re.fullmatch(re.escape(base) + r"_g([0-9]{1,9})", name)
    return int(found[1]) if found else None


def live_name(base: str) -> str:
    """The alias of the one that everybody reads. Without it that is the first."""
    return f"{base}_live"


def passages_name(name: str) -> str:
    """Of the collection that lies beside this one, and holds what was said in the users' own words."""
    return f"{name}_passages"
