"""The store's own troubles, watched beside the requests: it does not open yet, does not answer, or its disk is full."""

from __future__ import annotations

import asyncio
import logging

from semmem.ports.errors import StoreDamaged, StoreError, StoreUnavailable
from semmem.ports.store import DiskBound, Store

STORE_RETRY_S = 2.0

log = logging.getLogger(__name__)


class StoreWatch:
    """Opens the store, and knows since the last look whether it answers and can write.

    ``disk``: the store, when it needs a disk of this machine. ``tried`` is set when it was tried to open it.
    """

    def __init__(self, store: Store, disk: DiskBound | None, *, retry_s: float = STORE_RETRY_S) -> None:
        self._store = store
        self._disk = disk
        self._retry_s = retry_s
        self.tried = asyncio.Event()
        self.answers = False
        self.has_room = True

    async def open(self) -> None:
        """Open, again and again while that may help.

        Raises StoreError when the store answers but does not fit: waiting will not help.
        """
        told = ""
        while True:
            try:
                await self._store.open()
            except StoreDamaged as error:
                if told != str(error):  # once: it names files, and waits for a person
                    log.error("store damaged, requests pass without memory: %s", error)
                told = str(error)
            except StoreUnavailable as error:
                log.error("store unavailable, memory disabled until it answers: %s", error)
            else:
                self.answers = True
                self.tried.set()
                return
            self.tried.set()
            await asyncio.sleep(self._retry_s)

    async def look(self) -> None:
        """Look whether it answers, once it was tried to open it, and whether its disk has room."""
        if self.tried.is_set():
            await self._look_at_store()
        await self._look_at_disk()

    async def _look_at_store(self) -> None:
        answered = self.answers
        try:
            await self._store.health()
            self.answers = True
        except StoreError as error:
            self.answers = False
            if answered:
                log.error("store does not answer, requests pass without memory: %s", type(error).__name__)
        if self.answers and not answered:
            log.info("store answers again")

    async def _look_at_disk(self) -> None:
        had_room = self.has_room
        try:
            if self._disk is not None:
                await self._disk.check_room()
            self.has_room = True
        except StoreError as error:
            self.has_room = False
            if had_room:
                log.error("disk full, memories are read but none is written: %s", error)
        if self.has_room and not had_room:
            log.info("the disk has room again")
