"""The store's own troubles, watched beside the requests: it does not open yet, or its disk is full."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from semmem.ports.errors import StoreDamaged, StoreError, StoreUnavailable
from semmem.ports.store import DiskBound, Store

STORE_RETRY_S = 2.0

log = logging.getLogger(__name__)


async def open_store(store: Store, on_try: Callable[[bool], None]) -> None:
    """Open, again and again while that may help; ``on_try`` is told after each try whether it is open.

    Raises StoreError when the store answers but does not fit: waiting will not help.
    """
    told = ""
    while True:
        try:
            await store.open()
        except StoreDamaged as error:
            if told != str(error):  # once: it names files, and waits for a person
                log.error("store damaged, requests pass without memory: %s", error)
            told = str(error)
        except StoreUnavailable as error:
            log.error("store unavailable, memory disabled until it answers: %s", error)
        else:
            on_try(True)
            return
        on_try(False)
        await asyncio.sleep(STORE_RETRY_S)


class DiskWatch:
    """Whether the store can write, as of the last look. None: a store that needs no disk of this machine."""

    def __init__(self, disk: DiskBound | None) -> None:
        self._disk = disk
        self.has_room = True

    async def look(self) -> None:
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
