"""Memories that a new fact, or the batch of their turn, lets go, and those that come back since it did not.

Each write leaves the version before it in the journal. What went is returned as removals, each with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from semmem.extraction.candidate import PAIR_REPLACED, Action, Candidate, Placed, Removal, settled, updated
from semmem.extraction.comparing import with_vector
from semmem.lifecycle.spared import reinstated, superseded
from semmem.lifecycle.writes import Writes
from semmem.memory import (
    CONTRADICTED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNSETTLED,
    UPDATED,
    Hit,
    Memory,
    MemoryStatus,
    Scope,
)
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store, list_all


@dataclass(eq=False, repr=False)
class Retiring:
    """All of it is safe to repeat, and raises StoreError and JournalError."""

    store: Store
    records: WriteRecords

    async def update(self, new: Candidate, contradicted: list[Hit]) -> tuple[tuple[Removal, ...], bool]:
        """A new version of the nearest; what went, and whether it is written: else the nearest was forgotten meanwhile,
        and what is said now is a memory of its own.

        The others go first, because a second try finds the new version and stops. Of what is provisional there is no
        second try, and its batch compares it again: there they go afterwards.
        """
        nearest, *others = contradicted
        gone = () if new.provisional else await self.supersede(others, new, by=nearest.memory.id)
        if not await self._writes(new).replace(nearest.memory, updated(nearest.memory, new)):
            return gone, False
        if new.provisional:
            gone = await self.supersede(others, new, by=nearest.memory.id)
        return (*gone, Removal(UPDATED, nearest.memory.id, nearest.memory.id)), True

    async def supersede(self, hits: list[Hit], new: Candidate, *, by: str) -> tuple[Removal, ...]:
        """Retire what the fact makes untrue. Before the fact is written: a second try, finding the fact already
        there, would never come back to it."""
        gone: list[Removal] = []
        for hit in hits:
            old = await with_vector(self.store, hit.memory)
            if old is None or old.status is not MemoryStatus.ACTIVE:
                continue
            if await self._writes(new).replace(old, superseded(old, by, new.now)):
                gone.append(Removal(CONTRADICTED, old.id, by))
        return tuple(gone)

    async def settle(self, neighbours: Sequence[Hit], gone: tuple[Removal, ...], new: Candidate) -> tuple[str, ...]:
        """Let no neighbour stand against what went; a word for each pair that is settled by that."""
        ids = {removal.id for removal in gone}
        pairs: list[str] = []
        for hit in neighbours:
            others = hit.memory.metadata.get(UNSETTLED, ())
            if hit.memory.id in ids:
                pairs += [PAIR_REPLACED] * len(others)
                continue
            if ids.isdisjoint(others):
                continue
            old = await with_vector(self.store, hit.memory)
            if old is None or old.status is not MemoryStatus.ACTIVE:
                continue
            if await self._writes(new).replace(old, settled(old, ids, new.now)):
                pairs += [PAIR_REPLACED] * len(ids.intersection(others))
        return tuple(pairs)

    async def retire(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Let a memory be retrieved no more, for this reason, in favour of ``by``; the version before is history."""
        replaced = await self._writes(new).replace(held, superseded(held, by, new.now, why))
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if replaced else (), by)

    async def withdraw(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Remove a memory for this reason, in favour of ``by``; what it said is kept as a version."""
        withdrawn = await self._writes(new).withdraw(held)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if withdrawn else (), by)

    async def give_back(self, held: Memory, before: Memory, new: Candidate, why: str) -> Placed:
        """Let a memory say again what it said before (``before`` has its vector); what it said is kept as a version.
        One that was replaced since stays replaced."""
        replaced = {name: held.metadata[name] for name in (SUPERSEDED_BY, SUPERSEDED_WHY) if name in held.metadata}
        metadata = before.metadata | replaced
        restored = replace(before, version=held.version + 1, status=held.status, updated_at=new.now, metadata=metadata)
        put = await self._writes(new).replace(held, restored)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, held.id),) if put else (), held.id)

    async def unsay(self, held: Memory, before: Memory, new: Candidate) -> None:
        """Undo an update by ``new``: nothing is kept of what the memory says, which somebody had erased. ``before`` has
        its vector."""
        await self.reinstate(held.id, new, since=new.now)
        await self._writes(new).put(replace(before, version=held.version + 1, updated_at=new.now))

    async def reinstate(self, replaced: str, new: Candidate, *, since: float = 0.0) -> list[str]:
        """Let those memories be retrieved again that memory ``replaced`` has contradicted ``since`` then; their ids."""
        scope = Scope(new.turn.scope.user)
        memories = await list_all(self.store, scope)
        back = [memory for memory in memories if was_replaced(memory, replaced) and memory.updated_at >= since]
        return [old.id for old in back if await self._writes(new).replace(old, reinstated(old, new.now))]

    async def have_back(self, held: Memory, new: Candidate) -> bool:
        """Let a memory be retrieved again; whether it is."""
        return await self._writes(new).replace(held, reinstated(held, new.now))

    def _writes(self, new: Candidate) -> Writes:
        return Writes(self.store, self.records, new.batch)


def was_replaced(memory: Memory, by: str) -> bool:
    """Whether it is no longer retrieved since memory ``by`` says otherwise."""
    told = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return memory.status is MemoryStatus.SUPERSEDED and told == (by, CONTRADICTED)
