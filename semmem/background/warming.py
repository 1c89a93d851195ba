"""After a start: the latest active users are loaded behind the requests, so that not each of them waits for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from semmem.ports.errors import JournalError
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.index.kept import Preloaded

log = logging.getLogger(__name__)

SLICE_USERS = 100
"""After so many, one line says how far it is."""
LOOK_S = 1.0
"""So often it is looked whether the store answers."""
REST_MIN_S = 0.001


class ActiveUsers(Protocol):
    """Who has talked lately. Raises JournalError."""

    async def users_active(self, *, limit: int) -> list[str]:
        """Users, those whose turns are the latest first: at most ``limit``, fewer where some of them talk a lot."""


class Warming:
    """Loads at most ``users_max`` users, the latest active first, until there is room for no more.

    One at a time, when no request waits for a load, and resting as long after each as it took: at most half of one core
    and of the store's time, for as long as it takes. ``counts``: how many ended how.
    """

    def __init__(self, memories: HotMemories, active: ActiveUsers, *, users_max: int, look_s: float = LOOK_S) -> None:
        self._memories = memories
        self._active = active
        self._users_max = users_max
        self._look_s = look_s
        self.counts = Counter[Preloaded]()

    async def run(self, can_load: Callable[[], bool]) -> None:
        """To the end of the list; waits whenever not ``can_load``."""
        await self._until(can_load)
        began = time.monotonic()
        try:
            users = await self._active.users_active(limit=self._users_max)
        except JournalError as error:
            log.warning("the latest active users are not known, each is loaded when they come: %s", error)
            return
        for start in range(0, len(users), SLICE_USERS):
            await self._load(users[start : start + SLICE_USERS], can_load)
            self._tell(len(users), time.monotonic() - began)
            if self.counts[Preloaded.NO_ROOM]:
                return

    async def _load(self, users: Sequence[str], can_load: Callable[[], bool]) -> None:
        for user in users:
            await self._until(can_load)
            began = time.monotonic()
            ended = await self._memories.preload(user)
            self.counts[ended] += 1
            if ended is Preloaded.NO_ROOM:
                return
            await asyncio.sleep(max(REST_MIN_S, time.monotonic() - began))

    async def _until(self, can_load: Callable[[], bool]) -> None:
        while True:
            if can_load():
                return
            await asyncio.sleep(self._look_s)

    def _tell(self, users: int, seconds: float) -> None:
        log.info(
            "loaded %d of the %d latest active users in %.0f s, %d failed; memories in process take %.0f MB%s",
            self.counts[Preloaded.LOADED],
            users,
            seconds,
            self.counts[Preloaded.FAILED],
            self._memories.bytes / 1e6,
            ", and there is room for no more" if self.counts[Preloaded.NO_ROOM] else "",
        )
