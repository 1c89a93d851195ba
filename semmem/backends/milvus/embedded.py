"""The store of one machine: Milvus Lite, with the child process that runs it, as one thing to open, purge and close."""

from __future__ import annotations

import asyncio
from typing import Any

from semmem.backends.disk_room import check_room
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.ports.errors import StoreError, StoreFull, StoreMismatch, StoreUnavailable

ROOM_BYTES = 256 * 1024
"""A batch's worth of memories; more than any one of them needs."""


class EmbeddedMilvus(MilvusStore):
    """A MilvusStore at the address of ``process``, which it starts when it opens and stops when it closes.

    ``purge_timeout_s`` bounds one purge. ``options`` are MilvusStore's.
    """

    def __init__(self, process: MilvusLiteProcess, *, purge_timeout_s: float = 60.0, **options: Any) -> None:
        super().__init__(process.choose_port(), **options)
        self._process = process
        self._purge_timeout_s = purge_timeout_s
        self._starting = asyncio.Lock()

    async def open(self) -> None:
        """As the port says. After a failure the next call begins with a new child, which reads the folder anew.

        Raises StoreDamaged when a file of the folder cannot be read, StoreError when another process has the folder.
        """
        async with self._starting:
            await self._process.start()
            try:
                await super().open()
            except StoreMismatch:
                raise
            except StoreError as error:
                await self._process.stop()
                raise StoreUnavailable(str(error)) from None

    async def close(self) -> None:
        await super().close()
        await self._process.stop()

    async def check_room(self) -> None:
        """Raises StoreFull when nothing can be written to the folder now."""
        try:
            await asyncio.to_thread(check_room, self._process.data_dir, ROOM_BYTES)
        except OSError as error:
            raise StoreFull(f"nothing can be written to {self._process.data_dir}: {error.strerror}") from None

    async def purge(self) -> bool:
        """As Purgeable says; True. Writes wait for it, reads only for single files. Raises StoreFull without room for
        the largest file once more."""
        timeout_s = self._purge_timeout_s
        async with self._writing, self._connection.within("purge", timeout_s):
            async with self._reads.held_off():
                await self._collection.flush(timeout_s=timeout_s)
            await self._collection.compact(timeout_s=timeout_s)
        return True
