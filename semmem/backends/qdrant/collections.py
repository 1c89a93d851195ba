"""The collections of one Qdrant: an alias says which one everybody reads, in the client's local mode as on a server.

A store that was never reindexed has no alias, and one collection with the plain name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qdrant_client import models

from semmem.backends.qdrant.collection import Collection, described
from semmem.backends.qdrant.errors import within
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer
from semmem.backends.qdrant.store import QdrantStore
from semmem.ports.errors import StoreError
from semmem.ports.store import Described, live_name, number_of, passages_name


class QdrantCollections:
    """``first``: what the first collection shall be like, and every other but for its embedding. ``options`` are
    QdrantStore's. ``timeout_s`` bounds each call."""

    def __init__(
        self,
        engine: QdrantServer | LocalQdrant,
        first: Collection,
        *,
        options: Mapping[str, Any],
        timeout_s: float = 30.0,
    ) -> None:
        self.name = first.name
        self._engine = engine
        self._first = first
        self._options = options
        self._timeout_s = timeout_s

    async def open(self) -> None:
        await self._engine.open()

    async def close(self) -> None:
        await self._engine.close()

    def collection(self, described: Described) -> QdrantStore:
        about = {"name": described.name, "dimension": described.dimension, "signature": described.signature}
        return QdrantStore(self._engine, replace(self._first, **about), **self._options)  # type: ignore[arg-type]

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        async with within("find collections", self._timeout_s):
            read = await self._aliased() or self.name
            told = {name: await self._described(name) for name in await self._names()}
        return told.get(read), [about for name, about in told.items() if name != read]

    async def switch(self, name: str) -> None:
        """As the port says: a server changes all that is asked for in one call at once, and so does the local mode."""
        async with within("switch", self._timeout_s):
            former, alias = await self._aliased(), live_name(self.name)
            if former == name:
                return
            gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            new = models.CreateAlias(collection_name=name, alias_name=alias)
            made = models.CreateAliasOperation(create_alias=new)
            await self._engine.ask(
                "update_collection_aliases",
                change_aliases_operations=[*([gone] if former else []), made],
                timeout=math.ceil(self._timeout_s),
            )

    async def drop(self, name: str) -> None:
        """Raises StoreError for the one that everybody reads: its alias would go with it."""
        async with within("drop", self._timeout_s):
            listed = {each.name for each in (await self._engine.ask("get_collections")).collections}
            if name in listed and name == (await self._aliased() or self.name):
                raise StoreError(f"{name} is what everybody reads")
            for each in sorted({name, passages_name(name)} & listed):
                await self._engine.drop(each)

    async def check_room(self) -> None:
        await self._engine.check_room()

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _names(self) -> list[str]:
        """In the order in which they were made."""
        listed = (await self._engine.ask("get_collections")).collections
        numbers = {each.name: number_of(self.name, each.name) for each in listed}
        return sorted((name for name, number in numbers.items() if number), key=lambda name: numbers[name] or 0)

    async def _aliased(self) -> str | None:
        """What the alias names. Aliases of everybody are asked for, so that an error is none of a missing one."""
        listed = (await self._engine.ask("get_aliases")).aliases
        return next((each.collection_name for each in listed if each.alias_name == live_name(self.name)), None)

    async def _described(self, name: str) -> Described:
        return Described(name, *described(await self._engine.ask("get_collection", collection_name=name)))
