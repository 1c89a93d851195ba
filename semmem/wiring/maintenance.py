"""Settings -> what keeps memories and the journal in bounds when nobody asks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from semmem.background import Outage
from semmem.config.settings import Settings
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.value import Decay
from semmem.ports.errors import JournalError, JournalFull, SemmemError
from semmem.ports.events import Announce, JournalCounted
from semmem.ports.maintenance import Housekeeping
from semmem.ports.store import Sweepable
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.maintenance import Maintenance, MaintenanceRules
from semmem.wiring.backends import Backends
from semmem.wiring.store_watch import StoreWatch

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3_600.0, 86_400.0
UPKEEP_INTERVAL_S = 600.0
NO_ANSWER, CANNOT_WRITE = "does not answer", "cannot write"
"""What may be wrong with the journal."""


def quota(settings: Settings, backends: Backends, announce: Announce) -> Quota:
    rules = settings.memory.decay
    return Quota(
        backends.store,
        backends.journal,
        memories_max=settings.memory.max_memories_per_user,
        decay=Decay(half_life_s=rules.half_life_days * DAY_S, floor=rules.floor),
        announce=announce,
    )


def lifetime_s(settings: Settings) -> float | None:
    """How long a memory lives after it was last said: the shorter of ttl_days and retention_days, None for ever."""
    days = [days for days in (settings.memory.ttl_days, settings.memory.retention_days) if days]
    return min(days) * DAY_S if days else None


def consolidator(settings: Settings, backends: Backends) -> Consolidator:
    return Consolidator(
        backends.store,
        backends.journal,
        cosine_min=settings.memory.consolidation.similarity_threshold,
    )


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
        backends.store,
        sweepable,
        backends.journal,
        consolidator(settings, backends),
        rules,
        announce=announce,
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
    time every ``prune_interval_s``.

    ``retention_s``: how long turns are kept that were dealt with; ``marks_s``: how long it is known what was erased.
    """

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


def housekeeping(settings: Settings, backends: Backends, store: StoreWatch, announce: Announce) -> HousekeepingLoop:
    return HousekeepingLoop(
        backends.journal,
        store,
        announce,
        retention_s=settings.journal.retention_days * DAY_S,
        marks_s=settings.erasure.marks_days * DAY_S,
    )
