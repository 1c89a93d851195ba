"""One step back, for the user: a standing memory that ended or changed is again as it was, and what they asked to
forget is known again.

A memory that had another value says that one again. One that took the place of others is superseded, and those are
retrieved again. Nothing is lost: what was undone stays in the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from semmem.extraction.candidate import reconsidered
from semmem.extraction.dedup import was_replaced
from semmem.extraction.settling import rewritten_by
from semmem.extraction.storing import Storing
from semmem.lifecycle.spared import as_settled, without
from semmem.memory import ASKED_TO_FORGET, CHANGES_STANDING, SUPERSEDED_WHY, UNDONE, Memory, MemoryStatus, Scope
from semmem.ports.learning import ProvisionalRecords
from semmem.ports.store import Store, list_all


class NothingToUndo(Exception):
    """No standing memory ended or changed with this one, or it was changed, replaced or undone since."""


@dataclass(frozen=True, slots=True)
class Undone:
    """``memory``: as it is now. ``restored``: how many other memories are retrieved again."""

    memory: Memory
    restored: int


@dataclass(eq=False, repr=False)
class Undoing:
    """Raises StoreError, JournalError and EmbedderError. Whoever calls it holds the user."""

    store: Store
    records: ProvisionalRecords
    storing: Storing

    def __post_init__(self) -> None:
        self._retiring = self.storing.dedup.retiring

    async def undo(self, held: Memory, *, hold: str, now: float) -> Undone | None:
        """None where the memory was erased meanwhile. Safe to repeat after a crash anywhere in it.

        Raises NothingToUndo, before anything is written.
        """
        if held.metadata.get(SUPERSEDED_WHY) == ASKED_TO_FORGET:
            return await self._have_back(held, hold, now)
        if held.status is not MemoryStatus.ACTIVE or not held.changes_standing:
            raise NothingToUndo
        user = Scope(held.user)
        versions = await self.records.versions(user, held.id)
        before = await asyncio.to_thread(_before, held, versions)
        if before is None and not await self._replaces(held):
            raise NothingToUndo
        # As it is known again, not as a change that could be undone in its turn: this was the one step.
        known = None if before is None else as_settled(without(before, CHANGES_STANDING))
        said = None if known is None else await self.storing.embedded(known)
        changed = [each for each in versions if before is None or each.version > before.version] + [held]
        new = reconsidered(held if held.embedding is not None else await self.storing.embedded(held), hold, now)
        for turn in sorted({each.source.turn for each in changed}):  # first: its batch must not learn it once more
            await self.records.shut(turn, held.id)
        # What was replaced by what it said before stays so.
        since = 0.0 if before is None else min(each.updated_at for each in changed)
        restored = await self._retiring.reinstate(held.id, new, since=since)
        if said is None:  # nothing stands for it: whoever erases what is back must not bring this back
            placed = await self._retiring.retire(as_settled(held), new, UNDONE)
        else:
            placed = await self._retiring.give_back(held, said, new, UNDONE)
        memory = await self.store.get(user, held.id) if placed.removals else None
        return None if memory is None else Undone(memory, len(restored))

    async def _have_back(self, held: Memory, hold: str, now: float) -> Undone | None:
        with_vector = held if held.embedding is not None else await self.storing.embedded(held)
        is_back = await self._retiring.have_back(held, reconsidered(with_vector, hold, now))
        memory = await self.store.get(Scope(held.user), held.id) if is_back else None
        return None if memory is None else Undone(memory, 0)

    async def _replaces(self, held: Memory) -> bool:
        """Whether there is something that it took the place of, or did until an earlier try was cut off."""
        user = Scope(held.user)
        memories = await list_all(self.store, user, vectors=False)
        if any(was_replaced(memory, held.id) for memory in memories):
            return True
        later = [each for each in memories if each.status is MemoryStatus.ACTIVE and each.updated_at >= held.updated_at]
        pasts = [await self.records.versions(user, each.id) for each in later if each.version > 1]
        return any(past and was_replaced(past[-1], held.id) for past in pasts)


def _before(held: Memory, versions: Sequence[Memory]) -> Memory | None:
    """What the memory said before the change; None where it began with it. A batch may have put the change in other
    words since, by another turn that says it as well."""
    for old in reversed(versions):
        is_rewritten = old.changes_standing and rewritten_by(old.content, {held.id: held.content}) is not None
        if old.source.turn != held.source.turn and not is_rewritten:
            return old
    return None
