"""The life of memories under an operator's or a user's hand: history, release from quarantine, a change undone,
consolidation, summaries, reflections; and the routes for it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.extraction.dedup import Dedup
from semmem.extraction.placed import Action
from semmem.extraction.undoing import NothingToUndo, Undoing
from semmem.lifecycle.holds import Holds
from semmem.management.access import Act
from semmem.management.fields import (
    Body,
    MemoryId,
    NewUser,
    Number,
    ProjectId,
    ScopeName,
    Switch,
    UserId,
    existing,
    missing,
)
from semmem.management.problems import OF_USER, OF_WRITE, Denied
from semmem.management.routes import Owner, may, refuses, scope_in
from semmem.management.shown import MemoryShown, Time, as_shown, shown
from semmem.memory import (
    MERGED,
    RELEASED,
    SUMMARISED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNDONE,
    UNFOUNDED,
    UPDATED,
    Memory,
    MemoryStatus,
    Scope,
)
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import MemoryRecords, Uses
from semmem.ports.store import Store, list_all
from semmem.retrieval.context import estimate_tokens
from semmem.upkeep.consolidation import Consolidator, Group
from semmem.upkeep.model_writing import Written
from semmem.upkeep.reflections import Reflector, withdraw
from semmem.upkeep.summaries import Summariser

DAY_S = 86_400.0


class Consolidate(Body):
    """Which memories; without a project all of the user's."""

    user_id: NewUser = None
    project_id: ScopeName = None
    dry_run: Switch = Field(default=True, description="only say what would be done")


class Summarize(Consolidate):
    """As Consolidate, of memories that were last said so many days ago."""

    older_than_days: Number = Field(default=90, ge=0, le=36_500)


class Brief(TypedDict):
    """A memory, in short."""

    id: str
    version: int
    content: str


class GroupShown(TypedDict):
    """Memories that say the same."""

    kept: Brief
    merged: list[Brief]


class ConsolidatedShown(TypedDict):
    """``candidates``: memories in groups. ``superseded``: how many the kept ones took the place of; 0 in a dry run."""

    dry_run: bool
    candidates: int
    groups: list[GroupShown]
    superseded: int
    tokens_saved: int


class SummaryShown(TypedDict):
    """Memories and their summary; ``refused``: why it did not take their place. Both null in a dry run."""

    memories: list[Brief]
    summary: str | None
    refused: str | None


class SummarisedShown(TypedDict):
    """``created``: summaries that took the place of their memories."""

    dry_run: bool
    candidates: int
    groups: list[SummaryShown]
    created: list[MemoryShown]
    tokens_saved: int


class ReflectionShown(TypedDict):
    """A pattern and the memories it rests on; ``refused``: why it is not remembered."""

    content: str
    memories: list[Brief]
    refused: str | None


class ReflectedShown(TypedDict):
    """``candidates``: memories that were looked at. ``created``: what is remembered from now on. ``withdrawn``: earlier
    reflections that had lost what they rested on."""

    dry_run: bool
    candidates: int
    reflections: list[ReflectionShown]
    created: list[MemoryShown]
    withdrawn: int


class Version(MemoryShown):
    """A memory as it was, or is; of what took its place the id, and a word for why."""

    superseded_by: str | None
    superseded_why: str | None


class EarlierVersion(Version):
    """``replaced_why``: null where only its times or its worth changed."""

    replaced_why: str | None


class DroppedShown(TypedDict):
    """New facts that were not stored because a memory says the same."""

    reason: str
    times: int
    last_at: Time | None


class UsesShown(TypedDict):
    """How often a memory was put into a prompt."""

    count: int
    last_at: Time | None


class HistoryShown(TypedDict):
    """``versions``: the earlier ones, oldest first."""

    id: str
    versions: list[EarlierVersion]
    current: Version
    dropped: list[DroppedShown]
    uses: UsesShown


class Released(TypedDict):
    """``released``: false where another memory says the same already."""

    released: bool
    memory: MemoryShown


class UndoneShown(TypedDict):
    """``memory``: as it is now, which says again what it said before, or is superseded. ``restored``: how many other
    memories are retrieved again."""

    restored: int
    memory: MemoryShown


@dataclass(eq=False)
class Curation:
    """Raises StoreError, JournalError, EmbedderError, ModelUnavailable, Busy, and Denied.

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

    async def history(self, scope: Scope, memory_id: str) -> HistoryShown:
        """Raises Denied when the scope has no such memory."""
        current = existing(await self.store.get(scope, memory_id), missing(memory_id))
        versions = await self.records.versions(Scope(scope.user), memory_id)
        uses = (await self.records.uses(scope.user)).get(memory_id, Uses())
        dropped = await self.records.dropped(Scope(scope.user), memory_id)
        return {
            "id": memory_id,
            "versions": [
                {**_version(old), "replaced_why": _why(old, new)} for old, new in pairwise((*versions, current))
            ],
            "current": _version(current),
            "dropped": [as_shown(DroppedShown, row) for row in dropped],
            "uses": as_shown(UsesShown, uses, last_at=uses.last_at or None),
        }

    async def release(self, scope: Scope, memory_id: str) -> Released:
        """Let a quarantined memory be retrieved."""
        async with self._held(scope.user) as hold_id:
            memory = existing(await self.store.get(scope, memory_id), missing(memory_id))
            if memory.status is not MemoryStatus.QUARANTINED or memory.embedding is None:
                raise Denied("NOT_QUARANTINED", "only a quarantined memory can be released")
            action, released = await self.dedup.release(memory, batch=hold_id, now=self.clock())
        if action is Action.FORGOTTEN:
            raise missing(memory_id)
        return {"released": action is not Action.UNCHANGED, "memory": shown(released)}

    async def undo(self, scope: Scope, memory_id: str) -> UndoneShown:
        """Take back that a standing memory ended or changed with this one."""
        async with self._held(scope.user) as hold_id:
            memory = await self.store.get(scope, memory_id)
            try:
                undone = None if memory is None else await self.undoing.undo(memory, hold=hold_id, now=self.clock())
            except NothingToUndo:
                reason = "no standing memory ended or changed with this one, or it was changed or replaced since"
                raise Denied("NOTHING_TO_UNDO", reason) from None
        self.announce(MemoriesRemoved(UNDONE, int(undone is not None)))
        return as_shown(UndoneShown, existing(undone, missing(memory_id)))

    async def consolidate(self, scope: Scope, *, dry_run: bool) -> ConsolidatedShown:
        """Merge the scope's near-duplicates; a dry run only says which."""
        if dry_run:
            return _consolidated(await self._duplicates(scope), None)
        async with self._held(scope.user) as hold_id:
            groups = await self._duplicates(scope)
            superseded = await self.consolidator.merge(groups, hold_id=hold_id, now=self.clock())
        self.announce(MemoriesRemoved(MERGED, superseded))
        return _consolidated(groups, superseded)

    async def summarise(self, scope: Scope, *, older_than_days: float, dry_run: bool) -> SummarisedShown:
        """Summarise the scope's old related memories; a dry run only says which, and asks no model.

        The model is asked before the user is held: its time is nobody else's.
        """
        now = self.clock()
        memories = await self._everything(scope)
        groups = await self.summariser.related(memories, older_than=now - older_than_days * DAY_S, now=now)
        candidates = sum(map(len, groups))
        if dry_run:
            return _summarised(candidates, [Written(group) for group in groups], None)
        if self.summariser.model is None:
            raise _no_model(f"{candidates} memories in {len(groups)} groups could be summarised")
        summaries = [await self.summariser.summarise(group) for group in groups]
        created = await self._replace([summary for summary in summaries if not summary.reason], scope.user)
        return _summarised(candidates, summaries, created)

    async def reflect(self, scope: Scope, *, dry_run: bool) -> ReflectedShown:
        """Find patterns in the scope's memories and remember them; a dry run remembers nothing. As in ``summarise`` the
        model is asked before the user is held; a dry run without one only counts."""
        now = self.clock()
        groups = self.reflector.material(await self._everything(scope), now)
        candidates = sum(map(len, groups))
        if self.reflector.model is None:
            if dry_run:
                return _reflected(candidates, ())
            raise _no_model(f"{candidates} memories could be reflected on")
        found = [each for group in groups for each in await self.reflector.reflect(group)]
        if dry_run:
            return _reflected(candidates, found)
        async with self._held(scope.user) as hold_id:
            everything = await self._everything(Scope(scope.user))
            withdrawn = await withdraw(self.store, self.records, everything, hold_id=hold_id, now=now)
            kept = [await self.reflector.keep(each, hold_id=hold_id, now=now) for each in found if not each.reason]
        self.announce(MemoriesRemoved(UNFOUNDED, withdrawn))
        return _reflected(candidates, found, [memory for memory in kept if memory is not None], withdrawn)

    async def _replace(self, summaries: Sequence[Written], user: str) -> list[tuple[Memory, int]]:
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

    async def _duplicates(self, scope: Scope) -> Sequence[Group]:
        return await self.consolidator.groups(await self._everything(scope), self.clock())

    async def _everything(self, scope: Scope) -> list[Memory]:
        return await list_all(self.store, scope)

    def _held(self, user: str) -> AbstractAsyncContextManager[str]:
        """Nobody else learns or changes the user's memories inside. Raises Busy."""
        return self.holds.held(user, wait_s=self.hold_wait_s)


def _no_model(found: str) -> Denied:
    return Denied("NO_MODEL", f"{found}, but external_models has no model with the role memory_extraction")


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


def _consolidated(groups: Sequence[Group], superseded: int | None) -> ConsolidatedShown:
    """``superseded``: None in a dry run; less than what the groups hold when memories changed meanwhile."""
    return {
        "dry_run": superseded is None,
        "candidates": sum(1 + len(group.merged) for group in groups),
        "groups": [as_shown(GroupShown, group) for group in groups],
        "superseded": superseded or 0,
        "tokens_saved": sum(_tokens(group.merged) for group in groups),
    }


def _summarised(
    candidates: int, summaries: Sequence[Written], created: Sequence[tuple[Memory, int]] | None
) -> SummarisedShown:
    """``created``: memories, and the tokens that each saves; None in a dry run, which asked no model."""
    return {
        "dry_run": created is None,
        "candidates": candidates,
        "groups": [
            as_shown(SummaryShown, each, memories=each.of, summary=each.content or None, refused=each.reason or None)
            for each in summaries
        ],
        "created": [shown(memory) for memory, _ in created or ()],
        "tokens_saved": sum(saved for _, saved in created or ()),
    }


def _reflected(
    candidates: int, found: Sequence[Written], created: Sequence[Memory] | None = None, withdrawn: int = 0
) -> ReflectedShown:
    """``created``: None in a dry run."""
    return {
        "dry_run": created is None,
        "candidates": candidates,
        "reflections": [
            as_shown(ReflectionShown, each, memories=each.of, refused=each.reason or None) for each in found
        ],
        "created": [shown(memory) for memory in created or ()],
        "withdrawn": withdrawn,
    }


def _version(memory: Memory) -> Version:
    by, why = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return {
        **shown(memory),
        "superseded_by": str(by) if by else None,
        "superseded_why": None if why is None else str(why),
    }


# --- routes ----------------------------------------------------------------------------------------------------------


def curation_routes(life: Curation) -> APIRouter:
    """Everything under /v1/memory that is done with what is remembered already."""
    routes = APIRouter()

    @routes.post("/v1/memory/consolidate", **refuses(*OF_WRITE))
    async def consolidate(request: Request, which: Consolidate) -> ConsolidatedShown:
        """Merge what says the same."""
        return await life.consolidate(scope_in(which, request, Act.WRITE), dry_run=which.dry_run)

    @routes.post("/v1/memory/summarize", **refuses(*OF_WRITE, "NO_MODEL"))
    async def summarize(request: Request, which: Summarize) -> SummarisedShown:
        """Summarise what is old and related."""
        scope = scope_in(which, request, Act.WRITE)
        return await life.summarise(scope, older_than_days=which.older_than_days, dry_run=which.dry_run)

    @routes.post("/v1/memory/reflect", **refuses(*OF_WRITE, "NO_MODEL"))
    async def reflect(request: Request, which: Consolidate) -> ReflectedShown:
        """Find patterns over memories. A dry run asks the model, where there is one, and remembers nothing."""
        return await life.reflect(scope_in(which, request, Act.WRITE), dry_run=which.dry_run)

    @routes.get("/v1/memory/{memory_id}/history", **refuses(*OF_USER))
    async def get_history(
        request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> HistoryShown:
        """Every version, what took its place and why, and how the memory was used."""
        return await life.history(Scope(may(request, user_id, Act.READ), project=project_id), memory_id)

    @routes.post("/v1/memory/{memory_id}/release", **refuses(*OF_WRITE, "NOT_QUARANTINED"))
    async def release(scope: Owner, memory_id: MemoryId) -> Released:
        """Let a quarantined memory be retrieved."""
        return await life.release(scope, memory_id)

    @routes.post("/v1/memory/{memory_id}/undo", **refuses(*OF_WRITE, "NOTHING_TO_UNDO"))
    async def undo(scope: Owner, memory_id: MemoryId) -> UndoneShown:
        """Take back that a standing memory ended or changed with this one, or that its user asked to forget it: what
        was known before is known again."""
        return await life.undo(scope, memory_id)

    return routes
