"""The store's own troubles, watched beside the requests: it does not open yet, does not answer, or its disk is full."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from semmem.memory import Scope
from semmem.ports.errors import StoreDamaged, StoreError, StoreUnavailable
from semmem.ports.store import DiskBound, Store

STORE_RETRY_S = 2.0
NOBODY = Scope("\x1f")
"""A user who cannot be: names are free of control characters."""
WARMING_S = 10.0
"""So long a store that was opened is waited for, until it is quick."""
WARMING_TRIES = 20
WARMING_PAUSE_S = 0.05

log = logging.getLogger(__name__)


@dataclass(eq=False)
class StoreWatch:
    """Opens the store, and knows since the last look whether it answers and can write.

    ``disk``: the store, when it needs a disk of this machine. ``tried`` is set when it was tried to open it.
    ``dimension``: of its vectors. ``quick_s``: how long an answer may take when it is
    warm; it is waited for at most ``warming_s``, with ``pause_s`` between tries.
    """

    store: Store
    disk: DiskBound | None
    _: KW_ONLY
    dimension: int
    quick_s: float = math.inf
    retry_s: float = STORE_RETRY_S
    warming_s: float = WARMING_S
    pause_s: float = WARMING_PAUSE_S
    clock: Callable[[], float] = time.monotonic
    tried: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    answers: bool = field(init=False, default=False)
    has_room: bool = field(init=False, default=True)

    async def open(self) -> None:
        """Open, again and again while that may help.

        Raises StoreError when the store answers but does not fit: waiting will not help.
        """
        told = ""
        while True:
            try:
                await self.store.open()
            except StoreDamaged as error:
                if told != str(error):  # once: it names files, and waits for a person
                    log.error("store damaged, requests pass without memory: %s", error)
                told = str(error)
            except StoreUnavailable as error:
                log.error("store unavailable, memory disabled until it answers: %s", error)
            else:
                await self._warm()
                self.answers = True
                self.tried.set()
                return
            self.tried.set()
            await asyncio.sleep(self.retry_s)

    async def _warm(self) -> None:
        """Read and search as requests do, until that is quick: the first calls of a new process load what they need,
        and a request would wait for it longer than it may. A store that stays slow is served with all the same."""
        try:
            async with asyncio.timeout(self.warming_s):
                for _ in range(WARMING_TRIES):
                    if await self._is_quick():
                        return
                    await asyncio.sleep(self.pause_s)
        except TimeoutError:
            pass
        log.warning("the store is open, but slow: requests may pass without memory")

    async def _is_quick(self) -> bool:
        vector = np.full(self.dimension, self.dimension**-0.5, dtype=np.float32)
        began = self.clock()
        try:
            await self.store.list(NOBODY, limit=1)
            await self.store.search(NOBODY, vector, limit=1, now=time.time())
        except StoreError:
            return False
        return self.clock() - began <= self.quick_s

    async def look(self) -> None:
        """Look whether it answers, once it was tried to open it, and whether its disk has room."""
        if self.tried.is_set():
            await self._look_at_store()
        await self._look_at_disk()

    async def _look_at_store(self) -> None:
        answered = self.answers
        try:
            await self.store.health()
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
            if self.disk is not None:
                await self.disk.check_room()
            self.has_room = True
        except StoreError as error:
            self.has_room = False
            if had_room:
                log.error("disk full, memories are read but none is written: %s", error)
        if self.has_room and not had_room:
            log.info("the disk has room again")
