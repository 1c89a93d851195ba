"""The life of memories under an operator's or a user's hand: history, quarantine, consolidation, summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

from semmem.extraction.dedup import Dedup
from semmem.extraction.placed import Action
from semmem.extraction.undoing import Undoing, Undone
from semmem.lifecycle.holds import Holds
from semmem.memory import (
    MERGED,
    RELEASED,
    SUMMARISED,
    SUPERSEDED_WHY,
    UNDONE,
    UNFOUNDED,
    UPDATED,
    Memory,
    MemoryStatus,
    Scope,
)
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import Dropped, MemoryRecords, Uses
from semmem.ports.store import Store
from semmem.retrieval.context import estimate_tokens
from semmem.upkeep.consolidation import Consolidator, Group
from semmem.upkeep.reflections import Reflection, Reflector
from semmem.upkeep.summaries import Summariser, Summary

DAY_S = 86_400.0


class NotQuarantined(Exception):
    """Only a quarantined memory can be released."""


class NoModel(Exception):
    """There is no language model with the role memory_extraction."""


@dataclass(frozen=True, slots=True)
class Story:
    """A memory, its earlier versions (oldest first), how it was used, and new facts that were dropped because of it."""

    current: Memory
    versions: Sequence[Memory]
    uses: Uses
    dropped: Sequence[Dropped] = ()

    def replaced_why(self) -> list[str | None]:
        """For each earlier version a word for why it was replaced; None where only its times or its worth changed."""
        return [_why(old, new) for old, new in pairwise((*self.versions, self.current))]


@dataclass(frozen=True, slots=True)
class Consolidated:
    """``superseded`` is 0 for a dry run, and less than what the groups hold when memories changed meanwhile."""

    candidates: int
    groups: Sequence[Group]
    tokens_saved: int
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class Summarised:
    """``summaries`` without a content and a reason: a dry run, the model was not asked. ``created`` are those that took
    the place of their memories; the others' reason says why not."""

    candidates: int
    summaries: Sequence[Summary]
    created: Sequence[Memory]
    tokens_saved: int


@dataclass(frozen=True, slots=True)
class Reflected:
    """``candidates``: memories that were looked at. ``created``: reflections that are remembered from now on; the
    others' reason says why not. ``withdrawn``: earlier ones that had lost what they rested on."""

    candidates: int
    reflections: Sequence[Reflection]
    created: Sequence[Memory] = ()
    withdrawn: int = 0


@dataclass(eq=False)
class Curation:
    """Raises StoreError, JournalError, EmbedderError, ModelUnavailable, Busy, NothingToUndo, and the exceptions above.

    MemoriesRemoved is announced. ``hold_wait_s``: how long a call waits for a batch or another call that is at work on
    the same user's memories. ``holds``: shared with whoever else changes memories in this process.
    """

    store: Store
    records: MemoryRecords
    dedup: Dedup
    undoing: Undoing
    consolidator: Consolidator
    summariser: Summariser
    reflector: Reflector
    _: KW_ONLY
    clock: Callable[[], float]
    holds: Holds
    hold_wait_s: float = 5.0
    announce: Announce = nobody_listens

    async def history(self, scope: Scope, memory_id: str) -> Story | None:
        """None when the scope has no such memory."""
        current = await self.store.get(scope, memory_id)
        if current is None:
            return None
        versions = await self.records.versions(Scope(scope.user), memory_id)
        uses = await self.records.uses(scope.user)
        dropped = await self.records.dropped(Scope(scope.user), memory_id)
        return Story(current, versions, uses.get(memory_id, Uses()), dropped)

    async def release(self, scope: Scope, memory_id: str) -> tuple[Action, Memory] | None:
        """Let a quarantined memory be retrieved; the action taken. None when there is no such memory."""
        async with self._held(scope.user) as hold_id:
            memory = await self.store.get(scope, memory_id)
            if memory is None:
                return None
            if memory.status is not MemoryStatus.QUARANTINED or memory.embedding is None:
                raise NotQuarantined
            action, released = await self.dedup.release(memory, batch=hold_id, now=self.clock())
        return None if action is Action.FORGOTTEN else (action, released)

    async def undo(self, scope: Scope, memory_id: str) -> Undone | None:
        """Take back that a standing memory ended or changed with this one. None when there is no such memory."""
        async with self._held(scope.user) as hold_id:
            memory = await self.store.get(scope, memory_id)
            undone = None if memory is None else await self.undoing.undo(memory, hold=hold_id, now=self.clock())
        self.announce(MemoriesRemoved(UNDONE, int(undone is not None)))
        return undone

    async def consolidate(self, scope: Scope, *, dry_run: bool) -> Consolidated:
        """Merge the scope's near-duplicates; a dry run only says which."""
        if dry_run:
            return await self._duplicates(scope)
        async with self._held(scope.user) as hold_id:
            found = await self._duplicates(scope)
            superseded = await self.consolidator.merge(found.groups, hold_id=hold_id, now=self.clock())
        self.announce(MemoriesRemoved(MERGED, superseded))
        return Consolidated(found.candidates, found.groups, found.tokens_saved, superseded)

    async def summarise(self, scope: Scope, *, older_than_days: float, dry_run: bool) -> Summarised:
        """Summarise the scope's old related memories; a dry run only says which, and asks no model.

        The model is asked before the user is held: its time is nobody else's.
        """
        now = self.clock()
        memories = await self._everything(scope)
        groups = await self.summariser.related(memories, older_than=now - older_than_days * DAY_S, now=now)
        candidates = sum(map(len, groups))
        if dry_run:
            return Summarised(candidates, [Summary(group) for group in groups], [], 0)
        if not self.summariser.has_model:
            raise NoModel(f"{candidates} memories in {len(groups)} groups could be summarised")
        summaries = [await self.summariser.summarise(group) for group in groups]
        created = await self._replace([summary for summary in summaries if not summary.reason], scope.user)
        return Summarised(candidates, summaries, [memory for memory, _ in created], sum(saved for _, saved in created))

    async def reflect(self, scope: Scope, *, dry_run: bool) -> Reflected:
        """Find patterns in the scope's memories and remember them; a dry run remembers nothing. As in ``summarise`` the
        model is asked before the user is held; a dry run without one only counts."""
        now = self.clock()
        groups = self.reflector.material(await self._everything(scope), now)
        candidates = sum(map(len, groups))
        if not self.reflector.has_model:
            if dry_run:
                return Reflected(candidates, [])
            raise NoModel(f"{candidates} memories could be reflected on")
        found = [each for group in groups for each in await self.reflector.reflect(group)]
        if dry_run:
            return Reflected(candidates, found)
        async with self._held(scope.user) as hold_id:
            everything = await self._everything(Scope(scope.user))
            withdrawn = await self.reflector.withdraw(everything, hold_id=hold_id, now=now)
            kept = [await self.reflector.keep(each, hold_id=hold_id, now=now) for each in found if not each.reason]
        self.announce(MemoriesRemoved(UNFOUNDED, withdrawn))
        return Reflected(candidates, found, [memory for memory in kept if memory is not None], withdrawn)

    async def _replace(self, summaries: Sequence[Summary], user: str) -> list[tuple[Memory, int]]:
        if not summaries:
            return []
        created: list[tuple[Memory, int]] = []
        async with self._held(user) as hold_id:
            for summary in summaries:
                memory = await self.summariser.replace(summary, hold_id=hold_id, now=self.clock())
                if memory is not None:
                    self.announce(MemoriesRemoved(SUMMARISED, len(summary.of)))
                    created.append((memory, _tokens(summary.of) - _tokens([memory])))
        return created

    async def _duplicates(self, scope: Scope) -> Consolidated:
        memories = await self._everything(scope)
        groups = await self.consolidator.groups(memories, self.clock())
        saved = sum(_tokens(group.merged) for group in groups)
        return Consolidated(sum(1 + len(group.merged) for group in groups), groups, saved)

    async def _everything(self, scope: Scope) -> list[Memory]:
        return await self.store.list(scope, limit=max(1, await self.store.count(scope)))

    def _held(self, user: str) -> AbstractAsyncContextManager[str]:
        """Nobody else learns or changes the user's memories inside. Raises Busy."""
        return self.holds.held(user, wait_s=self.hold_wait_s)


def _why(old: Memory, new: Memory) -> str | None:
    if new.status is MemoryStatus.SUPERSEDED and old.status is not MemoryStatus.SUPERSEDED:
        return str(new.metadata.get(SUPERSEDED_WHY, MemoryStatus.SUPERSEDED))
    if new.content != old.content:
        return UPDATED
    if old.status is MemoryStatus.QUARANTINED and new.status is MemoryStatus.ACTIVE:
        return RELEASED
    return MERGED if new.metadata.get(MERGED) != old.metadata.get(MERGED) else None


def _tokens(memories: Sequence[Memory]) -> int:
    return sum(estimate_tokens(memory.content) for memory in memories)
