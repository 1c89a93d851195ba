"""The collections of one Milvus: an alias says which one everybody reads, on Milvus Lite as on a server.

A store that was never reindexed has no alias, and one collection with the plain name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pymilvus import MilvusClient

from semmem.backends.milvus.connection import our_errors
from semmem.backends.milvus.embedded import EmbeddedMilvus
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.rows import VECTOR_FIELD
from semmem.backends.milvus.store import MilvusStore
from semmem.ports.errors import StoreError, StoreMismatch, StoreUnavailable
from semmem.ports.store import Collection, Described, live_name, number_of, passages_name

T = TypeVar("T")


class MilvusCollections:
    """On a server. ``make`` gives the store of a collection; ``client_options`` are pymilvus' own (uri, token, db_name,
    TLS). ``timeout_s`` bounds each call."""

    def __init__(
        self,
        name: str,
        make: Callable[[Described], Collection],
        *,
        client_options: dict[str, Any],
        timeout_s: float = 30.0,
    ) -> None:
        self._name = name
        self._make = make
        self._options = {**client_options, "dedicated": True, "timeout": timeout_s}
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        return self._name

    async def open(self) -> None:
        """Nothing is kept open: each call connects, and there are few."""

    async def close(self) -> None:
        pass

    def collection(self, described: Described) -> Collection:
        return self._make(described)

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        return await self._ask("find collections", self._found)

    async def switch(self, name: str) -> None:
        await self._ask("switch", lambda client: self._switch(client, name))

    async def drop(self, name: str) -> None:
        await self._ask("drop", lambda client: self._drop(client, name))

    async def check_room(self) -> None:
        """A server has its own disk."""

    # --- in a thread -------------------------------------------------------------------------------------------------

    async def _ask(self, operation: str, work: Callable[[MilvusClient], T]) -> T:
        with our_errors(operation):
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.to_thread(self._connected, work)

    def _connected(self, work: Callable[[MilvusClient], T]) -> T:
        client = MilvusClient(**self._options)
        try:
            return work(client)
        finally:
            client.close()

    def _found(self, client: MilvusClient) -> tuple[Described | None, list[Described]]:
        listed = client.list_collections(timeout=self._timeout_s)
        names = sorted(
            (name for name in listed if number_of(self._name, name)), key=lambda name: number_of(self._name, name) or 0
        )
        read = self._read(client, names)
        told = {name: self._described(client, name) for name in names}
        return told.get(read), [about for name, about in told.items() if name != read]

    def _read(self, client: MilvusClient, names: Sequence[str]) -> str:
        """What the alias names. Asked of every collection, since an error must not pass for a missing alias."""
        for name in names:
            if live_name(self._name) in client.list_aliases(name, timeout=self._timeout_s)["aliases"]:
                return name
        return self._name

    def _described(self, client: MilvusClient, name: str) -> Described:
        told = client.describe_collection(name, timeout=self._timeout_s)
        dimensions = [field["params"]["dim"] for field in told["fields"] if field["name"] == VECTOR_FIELD]
        return Described(name, told["properties"].get("semmem.signature", ""), int(*dimensions[:1] or (0,)))

    def _switch(self, client: MilvusClient, name: str) -> None:
        names = [each for each in client.list_collections(timeout=self._timeout_s) if number_of(self._name, each)]
        aliases = {each: client.list_aliases(each, timeout=self._timeout_s)["aliases"] for each in names}
        alias = live_name(self._name)
        if alias in aliases[name]:
            return
        change = client.alter_alias if any(alias in of for of in aliases.values()) else client.create_alias
        change(name, alias, timeout=self._timeout_s)

    def _drop(self, client: MilvusClient, name: str) -> None:
        """Raises StoreError for the one that everybody reads: its alias would go with it."""
        listed = client.list_collections(timeout=self._timeout_s)
        names = [each for each in listed if number_of(self._name, each)]
        if name in names and self._read(client, names) == name:
            raise StoreError(f"{name} is what everybody reads")
        for each in (name, passages_name(name)):
            if each in listed:
                client.drop_collection(each, timeout=self._timeout_s)


class LiteCollections(MilvusCollections):
    """In the folder of this machine, with the child process that serves it."""

    def __init__(
        self, name: str, process: MilvusLiteProcess, *, purge_timeout_s: float, options: dict[str, Any]
    ) -> None:
        super().__init__(name, self._of_process, client_options={"uri": process.choose_port()})
        self._process = process
        self._purge_timeout_s = purge_timeout_s
        self._store_options = options
        self._room = EmbeddedMilvus(process, collection=name, dimension=1, signature="")

    async def open(self) -> None:
        """As EmbeddedMilvus.open, as far as it concerns the child."""
        await self._process.start()

    async def close(self) -> None:
        await self._process.stop()

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        try:
            return await super().found()
        except StoreError as error:
            raise StoreUnavailable(str(error)) from None

    async def check_room(self) -> None:
        await self._room.check_room()

    def _of_process(self, described: Described) -> Collection:
        about = {"collection": described.name, "signature": described.signature, "dimension": described.dimension}
        return LiteCollection(self._process, purge_timeout_s=self._purge_timeout_s, **{**self._store_options, **about})


class LiteCollection(EmbeddedMilvus):
    """One of several collections of a child process that somebody else starts and stops."""

    async def open(self) -> None:
        """As the port says: what a new child may mend is StoreUnavailable."""
        try:
            await MilvusStore.open(self)
        except StoreMismatch:
            raise
        except StoreError as error:
            raise StoreUnavailable(str(error)) from None

    async def close(self) -> None:
        await MilvusStore.close(self)
