"""A store that has one collection, and no others beside it."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.ports.collections import Collection, Described
from semmem.ports.errors import StoreError
from semmem.ports.store import DiskBound


class SingleCollection:
    """Collections of a store that says itself whether it fits (its ``open`` raises StoreMismatch)."""

    def __init__(self, name: str, store: Collection) -> None:
        self._name = name
        self._store = store

    @property
    def name(self) -> str:
        return self._name

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        return None, ()

    def collection(self, described: Described) -> Collection:
        if described.name != self._name:
            raise StoreError("this store has no collection beside the one that is read: export, and import again")
        return self._store

    async def switch(self, name: str) -> None:
        raise StoreError("this store has no other collection")

    async def drop(self, name: str) -> None:
        raise StoreError("this store has no other collection")

    async def check_room(self) -> None:
        if isinstance(self._store, DiskBound):
            await self._store.check_room()
