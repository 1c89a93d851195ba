"""The collections of one Milvus: an alias says which one everybody reads, on Milvus Lite as on a server.

A store that was never reindexed has no alias, and one collection with the plain name."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from pymilvus import MilvusClient

from semmem.backends.disk_room import require_room
from semmem.backends.milvus.connection import client_options, our_errors, server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.rows import VECTOR_FIELD
from semmem.backends.milvus.store import MilvusStore
from semmem.ports.errors import StoreError, StoreMismatch, StoreUnavailable
from semmem.ports.store import Collection, Described, live_name, made_of, passages_name

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class MilvusCollections:
    """On a server (see ``server_options``). ``options`` are MilvusStore's, of every collection. ``timeout_s`` bounds
    each call."""

    name: str
    server: Mapping[str, Any]
    _: KW_ONLY
    options: Mapping[str, Any]
    timeout_s: float = 30.0

    async def open(self) -> None:
        """Nothing is kept open: each call connects, and there are few."""

    async def close(self) -> None:
        pass

    def collection(self, described: Described) -> Collection:
        return MilvusStore(self.server, **self._options_of(described))

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
            async with asyncio.timeout(self.timeout_s):
                return await asyncio.to_thread(self._connected, work)

    def _connected(self, work: Callable[[MilvusClient], T]) -> T:
        with closing(MilvusClient(**client_options(self.server, self.timeout_s))) as client:
            return work(client)

    def _found(self, client: MilvusClient) -> tuple[Described | None, list[Described]]:
        names = self._names(client)
        read = self._aliased(client, names) or self.name
        told = {name: self._described(client, name) for name in names}
        return told.get(read), [about for name, about in told.items() if name != read]

    def _names(self, client: MilvusClient) -> list[str]:
        return made_of(self.name, client.list_collections(timeout=self.timeout_s))

    def _aliased(self, client: MilvusClient, names: Sequence[str]) -> str | None:
        """Asked of every collection, since an error must not pass for a missing alias."""
        for name in names:
            if live_name(self.name) in client.list_aliases(name, timeout=self.timeout_s)["aliases"]:
                return name
        return None

    def _described(self, client: MilvusClient, name: str) -> Described:
        told = client.describe_collection(name, timeout=self.timeout_s)
        dimensions = [field["params"]["dim"] for field in told["fields"] if field["name"] == VECTOR_FIELD]
        return Described(name, told["properties"].get("semmem.signature", ""), int(*dimensions[:1] or (0,)))

    def _switch(self, client: MilvusClient, name: str) -> None:
        former = self._aliased(client, self._names(client))
        if former != name:
            change = client.alter_alias if former else client.create_alias
            change(name, live_name(self.name), timeout=self.timeout_s)

    def _drop(self, client: MilvusClient, name: str) -> None:
        """Raises StoreError for the one that everybody reads: its alias would go with it."""
        names = self._names(client)
        if name in names and name == (self._aliased(client, names) or self.name):
            raise StoreError(f"{name} is what everybody reads")
        listed = client.list_collections(timeout=self.timeout_s)
        for each in (name, passages_name(name)):
            if each in listed:
                client.drop_collection(each, timeout=self.timeout_s)

    def _options_of(self, about: Described) -> dict[str, Any]:
        described = {"collection": about.name, "signature": about.signature, "dimension": about.dimension}
        return {**self.options, **described}


class LiteCollections(MilvusCollections):
    """In the folder of this machine, with the child process that serves it. ``options`` are LiteStore's."""

    def __init__(self, name: str, process: MilvusLiteProcess, *, options: Mapping[str, Any]) -> None:
        super().__init__(name, server_options(process.uri), options=options)
        self._process = process

    async def open(self) -> None:
        """Raises StoreDamaged when a file of the folder cannot be read, StoreError when another process has it."""
        await self._process.start()

    async def close(self) -> None:
        await self._process.stop()

    def collection(self, described: Described) -> Collection:
        return LiteStore(self._process, **self._options_of(described))

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        try:
            return await super().found()
        except StoreError as error:
            raise StoreUnavailable(str(error)) from None

    async def check_room(self) -> None:
        await require_room(self._process.data_dir)


class LiteStore(MilvusStore):
    """A MilvusStore at the address of a child process that somebody else starts and stops. ``purge_timeout_s`` bounds
    one purge."""

    def __init__(self, process: MilvusLiteProcess, *, purge_timeout_s: float = 60.0, **options: Any) -> None:
        super().__init__(server_options(process.uri), **options)
        self._purge_timeout_s = purge_timeout_s

    async def open(self) -> None:
        """As the port says: what a new child may mend is StoreUnavailable."""
        try:
            await super().open()
        except StoreMismatch:
            raise
        except StoreError as error:
            raise StoreUnavailable(str(error)) from None

    async def purge(self) -> bool:
        """As Purgeable says; True. Writes wait for it, reads only for single files. Raises StoreFull without room for
        the largest file once more."""
        async with self._writing, self._connection.within("purge", self._purge_timeout_s):
            async with self._reads.held_off():
                await self._connection.call("flush")
            await self._connection.call("compact")  # on semmem's Milvus Lite: files without removed rows, and then done
        return True
