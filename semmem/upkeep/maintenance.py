"""Going through memories when nobody asks: what is over its time goes, with everything that is kept beside it.

Every step is bounded, safe to repeat, and leaves what it did not get to for the next run."""

import asyncio
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from semmem.lifecycle.quota import PassageQuota
from semmem.lifecycle.writes import remove
from semmem.memory import MERGED, UNFOUNDED, Memory, MemoryStatus, Scope
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Store, Sweepable, list_all
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.reflections import withdraw

EXPIRED, RETENTION, NEVER_USED = "expired", "retention", "never_used"
"""Reasons under which memories are counted that went in a run, as MERGED is for those that stay in history."""


class MaintenanceRecords(MemoryRecords, Protocol):
    """What those need who go through everything when nobody asks: who has memories, and what is left over of them."""

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]:
        """Users whose memories were last gone through before then, longest ago first."""

    async def mark_maintained(self, user: str, *, now: float) -> None:
        """The user's memories were gone through."""

    async def said_again(self, user: str) -> dict[str, float]:
        """When what a memory says was last said again and not stored (seconds), by memory id."""

    async def forget_user(self, user: str) -> None:
        """Erase versions, statistics and the name of a user who has no memories. Turns stay."""

    async def orphans(self, *, limit: int) -> list[tuple[str, str]]:
        """(user, memory id) of what was forgotten under batches and holds that have ended. A worker that died between
        its write and its second question may have left such a memory in the store."""


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """Seconds unless said otherwise. None switches a rule off.

    Each user's memories are gone through every ``interval_s``, at most ``users_max`` users in a run, which ends when it
    failed with ``failures_max`` of them. ``retention_s``: memories that were not said again for so long go.
    ``never_used_s``: memories that never were in a prompt, of importance ``importance_max`` at most, go when they are
    so old. ``removed_max`` memories of one user go in a run at most. ``settle_s`` is how far a read of the store may
    lag behind another replica's write: what is kept about a memory is erased only when the memory is still not there
    after that time. ``consolidate_from`` is the number of active memories from which a user's are consolidated.
    ``passages_max`` passages of a user are kept, the newest."""

    interval_s: float = 86_400.0
    users_max: int = 100
    failures_max: int = 3
    lease_s: float = 120.0
    settle_s: float = 6.0
    expired_max: int = 1000
    removed_max: int = 100
    retention_s: float | None = None
    never_used_s: float | None = None
    importance_max: float = 0.5
    consolidate_from: int | None = None
    passages_max: int = 10_000


@dataclass(eq=False, repr=False)
class Maintenance:
    """One run after another; replicas may run it at the same time. MemoriesRemoved is announced for each reason."""

    store: Store
    sweepable: Sweepable
    records: MaintenanceRecords
    consolidator: Consolidator
    rules: MaintenanceRules
    _: KW_ONLY
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        self._passages = PassageQuota(self.store, self.records, self.rules.passages_max, self.announce)

    async def run(self, now: float) -> None:
        """One bounded run. Raises StoreError and JournalError; the next run goes on where this one broke off."""
        await self._clear_left_over()
        await self.sweepable.sweep(now, expired=False)  # else one of the lower versions would look expired
        await self._remove_expired(now)
        due = await self.records.users_due(maintained_before=now - self.rules.interval_s, limit=self.rules.users_max)
        await self._keep_all(due, now)

    async def _keep_all(self, users: list[str], now: float) -> None:
        """A user whose memories cannot be read costs the others nothing; a store that is down costs a few tries."""
        failures: list[SemmemError] = []
        for user in users:
            try:
                await self._keep(user, now)
            except SemmemError as error:
                failures.append(error)
            if len(failures) == self.rules.failures_max:
                break
        if failures:
            raise failures[0]

    async def _clear_left_over(self) -> None:
        """What was said again since under the same id, or imported, was not forgotten with what it was before."""
        for user, memory_id in await self.records.orphans(limit=self.rules.expired_max):
            left = await self.store.get(Scope(user), memory_id)
            if left is None or await self.records.is_erased(left):
                await self._forget(user, memory_id)
            await self.records.settle(user, memory_id)

    async def _remove_expired(self, now: float) -> None:
        removed = 0
        for user, memory_id in await self.sweepable.expired(now, limit=self.rules.expired_max):
            memory = await self.store.get(Scope(user), memory_id)
            if memory is not None and _is_expired(memory, now):
                await self._forget(user, memory_id)
                removed += 1
        self.announce(MemoriesRemoved(EXPIRED, removed))

    async def _keep(self, user: str, now: float) -> None:
        """One user, unless somebody is at work on their memories: then the next run comes back to them."""
        hold_id = await self.records.hold(user, now=now, lease_s=self.rules.lease_s)
        if hold_id is None:
            return
        try:
            await self._keep_held(user, now, hold_id)
            await self.records.mark_maintained(user, now=now)
        finally:
            await self.records.release(hold_id)

    async def _keep_held(self, user: str, now: float, hold_id: str) -> None:
        await self._passages.make_room(user)
        # Before the store is read: what that has no more was forgotten.
        recorded_ids = await self.records.recorded_ids(user)
        memories = await list_all(self.store, Scope(user))
        if recorded_ids - {memory.id for memory in memories}:
            await asyncio.sleep(self.rules.settle_s)
            memories = await list_all(self.store, Scope(user))
        if not memories:
            await self.records.forget_user(user)
            return
        orphans = recorded_ids - {memory.id for memory in memories}
        if orphans:
            await self.records.forget_memories(Scope(user), sorted(orphans), shuts_turns=False)
        removed = await self._remove_old(user, memories, now)
        left = [memory for memory in memories if memory.id not in removed]
        withdrawn = await withdraw(self.store, self.records, left, hold_id=hold_id, now=now)
        self.announce(MemoriesRemoved(UNFOUNDED, withdrawn))
        await self._consolidate(left, now, hold_id)

    async def _remove_old(self, user: str, memories: list[Memory], now: float) -> set[str]:
        uses, again = await self.records.uses(user), await self.records.said_again(user)
        said_at = {memory.id: max(memory.updated_at, again.get(memory.id, 0.0)) for memory in memories}
        doomed = [
            (memory, self._reason(memory, uses.get(memory.id, Uses()), said_at[memory.id], now)) for memory in memories
        ]
        going = [(memory.id, reason) for memory, reason in doomed if reason][: self.rules.removed_max]
        for memory_id, _ in going:
            await self._forget(user, memory_id)
        for reason, number in Counter(reason for _, reason in going).items():
            self.announce(MemoriesRemoved(reason, number))
        return {memory_id for memory_id, _ in going}

    def _reason(self, memory: Memory, uses: Uses, said_at: float, now: float) -> str:
        rules = self.rules
        age_s = now - said_at
        if _is_expired(memory, now):
            return EXPIRED
        if rules.retention_s is not None and age_s > rules.retention_s:
            return RETENTION
        never_used = memory.status is MemoryStatus.ACTIVE and not uses.count
        if rules.never_used_s is not None and never_used and memory.importance <= rules.importance_max:
            return NEVER_USED if age_s > rules.never_used_s else ""
        return ""

    async def _consolidate(self, memories: list[Memory], now: float, hold_id: str) -> None:
        active = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
        if self.rules.consolidate_from is None or len(active) < self.rules.consolidate_from:
            return
        groups = await self.consolidator.groups(active, now)
        superseded = await self.consolidator.merge(groups, hold_id=hold_id, now=now)
        self.announce(MemoriesRemoved(MERGED, superseded))

    async def _forget(self, user: str, memory_id: str) -> None:
        await remove(self.store, self.records, Scope(user), memory_id)


def _is_expired(memory: Memory, now: float) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now
