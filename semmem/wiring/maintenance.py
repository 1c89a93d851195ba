"""Settings -> what watches the store, and keeps memories and the journal in bounds when nobody asks."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from semmem.background import Outage
from semmem.config.settings import Settings
from semmem.config.values import DAY_S, HOUR_S
from semmem.lifecycle.quota import Decay, Quota
from semmem.memory import Scope
from semmem.ports.errors import JournalError, JournalFull, SemmemError, StoreDamaged, StoreError, StoreUnavailable
from semmem.ports.events import Announce, JournalCounted
from semmem.ports.housekeeping import Housekeeping
from semmem.ports.store import DiskBound, Store, Sweepable
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.maintenance import Maintenance, MaintenanceRules
from semmem.wiring.backends import Backends

NOBODY = Scope("\x1f")
"""A user who cannot be: names are free of control characters."""
WARMING_TRIES = 20

log = logging.getLogger(__name__)


@dataclass(eq=False)
class StoreWatch:
    """Opens the store, and knows since the last look whether it answers and can write. ``disk``: the store, when it
    needs a disk of this machine. ``tried`` is set when it was tried to open it. ``dimension``: of its vectors.
    ``quick_s``: how long an answer may take when it is warm; it is waited for at most ``warming_s``, with ``pause_s``
    between tries."""

    store: Store
    disk: DiskBound | None
    _: KW_ONLY
    dimension: int
    quick_s: float = math.inf
    retry_s: float = 2.0
    warming_s: float = 10.0
    pause_s: float = 0.05
    clock: Callable[[], float] = time.monotonic
    tried: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    answers: bool = field(init=False, default=False)
    has_room: bool = field(init=False, default=True)

    async def open(self) -> None:
        """Open, again and again while that may help. Raises StoreError when the store answers but does not fit: waiting
        will not help."""
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
            answered, error = self.answers, await _failed(self.store.health)
            self.answers = error is None
            if answered and error is not None:
                log.error("store does not answer, requests pass without memory: %s", type(error).__name__)
            if self.answers and not answered:
                log.info("store answers again")
        if self.disk is not None:
            had_room, error = self.has_room, await _failed(self.disk.check_room)
            self.has_room = error is None
            if had_room and error is not None:
                log.error("disk full, memories are read but none is written: %s", error)
            if self.has_room and not had_room:
                log.info("the disk has room again")


async def _failed(look: Callable[[], Awaitable[object]]) -> StoreError | None:
    try:
        await look()
    except StoreError as error:
        return error
    return None


UPKEEP_INTERVAL_S = 600.0
NO_ANSWER, CANNOT_WRITE = "does not answer", "cannot write"
"""What may be wrong with the journal."""


def quota(settings: Settings, backends: Backends, announce: Announce) -> Quota:
    return Quota(
        backends.store,
        backends.journal,
        memories_max=settings.memory.max_memories_per_user,
        decay=settings.memory.decay.fill(Decay),
        announce=announce,
    )


def lifetime_s(settings: Settings) -> float | None:
    """How long a memory lives after it was last said: the shorter of ttl_days and retention_days, None for ever."""
    days = [days for days in (settings.memory.ttl_days, settings.memory.retention_days) if days]
    return min(days) * DAY_S if days else None


def consolidator(settings: Settings, backends: Backends) -> Consolidator:
    return Consolidator(backends.store, backends.journal, cosine_min=settings.memory.consolidation.similarity_threshold)


def upkeep(settings: Settings, backends: Backends, sweepable: Sweepable, announce: Announce) -> Maintenance:
    memory = settings.memory
    rules = MaintenanceRules(
        interval_s=memory.consolidation.interval_hours * HOUR_S,
        retention_s=memory.retention_days * DAY_S or None,
        never_used_s=memory.decay.never_used_days * DAY_S if memory.decay.enabled else None,
        importance_max=memory.decay.importance_max,
        consolidate_from=memory.consolidation.threshold_memories if memory.consolidation.enabled else None,
        passages_max=settings.passages.per_user_max,
    )
    return Maintenance(
        backends.store, sweepable, backends.journal, consolidator(settings, backends), rules, announce=announce
    )


async def keep_up(upkeep: Callable[[], Maintenance], can_work: Callable[[], bool]) -> None:
    """Go through what is remembered, whenever ``can_work``: replaced versions, expired memories, and all that the
    upkeep of the moment has rules for. Runs until cancelled."""
    while True:
        await asyncio.sleep(UPKEEP_INTERVAL_S)
        if not can_work():
            continue
        try:
            await upkeep().run(time.time())
        except SemmemError as error:
            log.warning("upkeep failed, the next one goes on: %s", type(error).__name__)


@dataclass(eq=False)
class HousekeepingLoop:
    """Watches the store and the journal and counts the journal's turns, every ``interval_s``; drops those past their
    time every ``prune_interval_s``. ``retention_s``: how long turns are kept that were dealt with; ``marks_s``: how
    long it is known what was erased."""

    journal: Housekeeping
    store: StoreWatch
    announce: Announce
    _: KW_ONLY
    retention_s: float
    marks_s: float
    interval_s: float = 5.0
    prune_interval_s: float = 600.0
    journal_trouble: str | None = field(init=False, default=None)
    """What the last look found wrong with the journal, in a few words; None: it answers and has room."""
    _outage: Outage = field(init=False, default_factory=lambda: Outage(log, "look at the journal"))

    async def run(self) -> None:
        """Until cancelled."""
        pruned = time.monotonic()
        while True:
            await asyncio.sleep(self.interval_s)
            await self.store.look()
            due = time.monotonic() - pruned > self.prune_interval_s
            await self._watch_journal(prune=due)
            if due:
                pruned = time.monotonic()

    async def _watch_journal(self, *, prune: bool) -> None:
        try:
            self.announce(JournalCounted(await self.journal.counts()))
            if prune:
                await self.journal.prune(done_before=time.time() - self.retention_s)
                await self.journal.prune_states(now=time.time())
                await self.journal.prune_marks(forgotten_before=time.time() - self.marks_s)
            await self.journal.check_room()
        except JournalError as error:
            self.journal_trouble = CANNOT_WRITE if isinstance(error, JournalFull) else NO_ANSWER
            self._outage.failed(error)
        else:
            self.journal_trouble = None
            self._outage.worked()
