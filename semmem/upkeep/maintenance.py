"""Going through memories when nobody asks: what is over its time goes, with everything that is kept beside it.

Every step is bounded, safe to repeat, and leaves what it did not get to for the next run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from semmem.lifecycle.passages import PassageQuota
from semmem.lifecycle.removal import remove
from semmem.memory import MERGED, UNFOUNDED, Memory, MemoryStatus, Scope
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import HoldRecords, MemoryRecords, Uses
from semmem.ports.store import Store, Sweepable
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.reflections import withdraw

EXPIRED, RETENTION, NEVER_USED = "expired", "retention", "never_used"
"""Reasons under which memories are counted that went in a run, as MERGED is for those that stay in history."""


class MaintenanceRecords(HoldRecords, MemoryRecords, Protocol):
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
        """(user, memory id) of what was forgotten under batches and holds that have ended.

        A worker that died between its write and its second question may have left such a memory in the store.
        """


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """Seconds unless said otherwise. None switches a rule off.

    Each user's memories are gone through every ``interval_s``, at most ``users_max`` users in a run, which ends when it
    failed with ``failures_max`` of them. ``retention_s``:
    memories that were not said again for so long go. ``never_used_s``: memories that never were in a prompt, of
    importance ``importance_max`` at most, go when they are so old. ``removed_max`` memories of one user go in a run at
    most. ``settle_s`` is how far a read of the store may lag behind another replica's write: what is kept about a
    memory is erased only when the memory is still not there after that time. ``consolidate_from`` is the number of
    active memories from which a user's are consolidated. ``passages_max`` passages of a user are kept, the newest.
    """

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


class Maintenance:
    """One run after another; replicas may run it at the same time. MemoriesRemoved is announced for each reason."""

    def __init__(
        self,
        store: Store,
        sweepable: Sweepable,
        records: MaintenanceRecords,
        consolidator: Consolidator,
        rules: MaintenanceRules,
        *,
        announce: Announce = nobody_listens,
    ) -> None:
        self._store = store
        self._sweepable = sweepable
        self._records = records
        self._consolidator = consolidator
        self._rules = rules
        self._announce = announce
        self._passages = PassageQuota(store, records, rules.passages_max, announce)

    async def run(self, now: float) -> None:
        """One bounded run. Raises StoreError and JournalError; the next run goes on where this one broke off."""
        await self._clear_left_over()
        await self._sweepable.sweep(now, expired=False)  # else one of the lower versions would look expired
        await self._remove_expired(now)
        due = await self._records.users_due(maintained_before=now - self._rules.interval_s, limit=self._rules.users_max)
        await self._keep_all(due, now)

    async def _keep_all(self, users: list[str], now: float) -> None:
        """A user whose memories cannot be read costs the others nothing; a store that is down costs a few tries."""
        failures: list[SemmemError] = []
        for user in users:
            try:
                await self._keep(user, now)
            except SemmemError as error:
                failures.append(error)
            if len(failures) == self._rules.failures_max:
                break
        if failures:
            raise failures[0]

    async def _clear_left_over(self) -> None:
        """What was said again since under the same id, or imported, was not forgotten with what it was before."""
        for user, memory_id in await self._records.orphans(limit=self._rules.expired_max):
            left = await self._store.get(Scope(user), memory_id)
            if left is None or await self._records.is_erased(left):
                await self._forget(user, memory_id)
            await self._records.settle(user, memory_id)

    async def _remove_expired(self, now: float) -> None:
        removed = 0
        for user, memory_id in await self._sweepable.expired(now, limit=self._rules.expired_max):
            memory = await self._store.get(Scope(user), memory_id)
            if memory is not None and _is_expired(memory, now):
                await self._forget(user, memory_id)
                removed += 1
        self._announce(MemoriesRemoved(EXPIRED, removed))

    async def _keep(self, user: str, now: float) -> None:
        """One user, unless somebody is at work on their memories: then the next run comes back to them."""
        hold_id = await self._records.hold(user, now=now, lease_s=self._rules.lease_s)
        if hold_id is None:
            return
        try:
            await self._keep_held(user, now, hold_id)
            await self._records.mark_maintained(user, now=now)
        finally:
            await self._records.release(hold_id)

    async def _keep_held(self, user: str, now: float, hold_id: str) -> None:
        await self._passages.make_room(user)
        # Before the store is read: what that has no more was forgotten.
        recorded_ids = await self._records.recorded_ids(user)
        memories = await self._list(user)
        if recorded_ids - {memory.id for memory in memories}:
            await asyncio.sleep(self._rules.settle_s)
            memories = await self._list(user)
        if not memories:
            await self._records.forget_user(user)
            return
        orphans = recorded_ids - {memory.id for memory in memories}
        if orphans:
            await self._records.forget_memories(Scope(user), sorted(orphans), shuts_turns=False)
        removed = await self._remove_old(user, memories, now)
        left = [memory for memory in memories if memory.id not in removed]
        withdrawn = await withdraw(self._store, self._records, left, hold_id=hold_id, now=now)
        self._announce(MemoriesRemoved(UNFOUNDED, withdrawn))
        await self._consolidate(left, now, hold_id)

    async def _list(self, user: str) -> list[Memory]:
        return await self._store.list(Scope(user), limit=max(1, await self._store.count(Scope(user))))

    async def _remove_old(self, user: str, memories: list[Memory], now: float) -> set[str]:
        uses, again = await self._records.uses(user), await self._records.said_again(user)
        said_at = {memory.id: max(memory.updated_at, again.get(memory.id, 0.0)) for memory in memories}
        doomed = [
            (memory, self._reason(memory, uses.get(memory.id, Uses()), said_at[memory.id], now)) for memory in memories
        ]
        going = [(memory.id, reason) for memory, reason in doomed if reason][: self._rules.removed_max]
        for memory_id, _ in going:
            await self._forget(user, memory_id)
        for reason, number in Counter(reason for _, reason in going).items():
            self._announce(MemoriesRemoved(reason, number))
        return {memory_id for memory_id, _ in going}

    def _reason(self, memory: Memory, uses: Uses, said_at: float, now: float) -> str:
        rules = self._rules
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
        if self._rules.consolidate_from is None or len(active) < self._rules.consolidate_from:
            return
        groups = await self._consolidator.groups(active, now)
        superseded = await self._consolidator.merge(groups, hold_id=hold_id, now=now)
        self._announce(MemoriesRemoved(MERGED, superseded))

    async def _forget(self, user: str, memory_id: str) -> None:
        await remove(self._store, self._records, Scope(user), memory_id)


def _is_expired(memory: Memory, now: float) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now
