"""The life of memories under an operator's or a user's hand: history, release from quarantine, a change undone,
consolidation, summaries, reflections; and the routes for it."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.extraction.candidate import Action
from semmem.extraction.dedup import Dedup
from semmem.extraction.unlearning import NothingToUndo, Undoing
from semmem.lifecycle.holds import Holds
from semmem.management.access import Act
from semmem.management.problems import OF_USER, OF_WRITE, Denied
from semmem.management.routes import (
    Body,
    MemoryId,
    NewUser,
    Number,
    Owner,
    ProjectId,
    ScopeName,
    Switch,
    UserId,
    existing,
    may,
    missing,
    refuses,
    scope_in,
)
from semmem.management.shown import MemoryShown, NullIfEmpty, Time, as_shown, shown
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
from semmem.upkeep.consolidation import Consolidator
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
    summary: NullIfEmpty
    refused: NullIfEmpty


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
    refused: NullIfEmpty


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
    """Raises StoreError, JournalError, EmbedderError, ModelUnavailable, Busy, and Denied. MemoriesRemoved is announced.
    ``hold_wait_s``: how long a call waits for a batch or another call that is at work on the same user's memories.
    ``holds``: shared with whoever else changes memories in this process."""

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

    async def get_history(
        self, request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> HistoryShown:
        """Every version, what took its place and why, and how the memory was used."""
        scope = Scope(may(request, user_id, Act.READ), project=project_id)
        current = existing(await self.store.get(scope, memory_id), missing(memory_id))
        versions = await self.records.versions(Scope(scope.user), memory_id)
        uses = (await self.records.uses(scope.user)).get(memory_id, Uses())
        dropped = await self.records.dropped(Scope(scope.user), memory_id)
        return as_shown(
            HistoryShown,
            current,
            versions=[{**_version(old), "replaced_why": _why(old, new)} for old, new in pairwise((*versions, current))],
            current=_version(current),
            dropped=dropped,
            uses=as_shown(UsesShown, uses, last_at=uses.last_at or None),
        )

    async def release(self, scope: Owner, memory_id: MemoryId) -> Released:
        """Let a quarantined memory be retrieved."""
        async with self.holds.held(scope.user, wait_s=self.hold_wait_s) as hold_id:
            memory = existing(await self.store.get(scope, memory_id), missing(memory_id))
            if memory.status is not MemoryStatus.QUARANTINED or memory.embedding is None:
                raise Denied("NOT_QUARANTINED", "only a quarantined memory can be released")
            action, released = await self.dedup.release(memory, batch=hold_id, now=self.clock())
        if action is Action.FORGOTTEN:
            raise missing(memory_id)
        return {"released": action is not Action.UNCHANGED, "memory": shown(released)}

    async def undo(self, scope: Owner, memory_id: MemoryId) -> UndoneShown:
        """Take back that a standing memory ended or changed with this one, or that its user asked to forget it: what
        was known before is known again."""
        async with self.holds.held(scope.user, wait_s=self.hold_wait_s) as hold_id:
            memory = await self.store.get(scope, memory_id)
            try:
                undone = None if memory is None else await self.undoing.undo(memory, hold=hold_id, now=self.clock())
            except NothingToUndo:
                reason = "no standing memory ended or changed with this one, or it was changed or replaced since"
                raise Denied("NOTHING_TO_UNDO", reason) from None
        self.announce(MemoriesRemoved(UNDONE, int(undone is not None)))
        return as_shown(UndoneShown, existing(undone, missing(memory_id)))

    async def consolidate(self, request: Request, which: Consolidate) -> ConsolidatedShown:
        """Merge what says the same."""
        scope, superseded = scope_in(which, request, Act.WRITE), 0
        if which.dry_run:
            groups = await self.consolidator.groups(await list_all(self.store, scope), self.clock())
        else:
            async with self.holds.held(scope.user, wait_s=self.hold_wait_s) as hold_id:
                groups = await self.consolidator.groups(await list_all(self.store, scope), self.clock())
                superseded = await self.consolidator.merge(groups, hold_id=hold_id, now=self.clock())
            self.announce(MemoriesRemoved(MERGED, superseded))
        return as_shown(
            ConsolidatedShown,
            which,
            candidates=sum(1 + len(group.merged) for group in groups),
            groups=groups,
            superseded=superseded,  # less than what the groups hold when memories changed meanwhile
            tokens_saved=sum(_tokens(group.merged) for group in groups),
        )

    async def summarize(self, request: Request, which: Summarize) -> SummarisedShown:
        """Summarise what is old and related."""
        scope, now = scope_in(which, request, Act.WRITE), self.clock()
        memories = await list_all(self.store, scope)
        groups = await self.summariser.related(memories, older_than=now - which.older_than_days * DAY_S, now=now)
        candidates = sum(map(len, groups))
        summaries, created = [Written(group) for group in groups], list[tuple[Memory, int]]()
        if not which.dry_run:
            if self.summariser.model is None:
                raise _no_model(f"{candidates} memories in {len(groups)} groups could be summarised")
            # The model is asked before the user is held: its time is nobody else's.
            summaries = [await self.summariser.summarise(group) for group in groups]
            created = await self._replace([summary for summary in summaries if not summary.reason], scope.user)
        return as_shown(
            SummarisedShown,
            which,
            candidates=candidates,
            groups=summaries,
            created=[memory for memory, _ in created],
            tokens_saved=sum(saved for _, saved in created),
        )

    async def reflect(self, request: Request, which: Consolidate) -> ReflectedShown:
        """Find patterns over memories. A dry run asks the model, where there is one, and remembers nothing."""
        scope, now = scope_in(which, request, Act.WRITE), self.clock()
        groups = self.reflector.material(await list_all(self.store, scope), now)
        candidates, withdrawn = sum(map(len, groups)), 0
        found, created = list[Written](), list[Memory | None]()
        if self.reflector.model is not None:
            found = [each for group in groups for each in await self.reflector.reflect(group)]
        elif not which.dry_run:
            raise _no_model(f"{candidates} memories could be reflected on")
        if not which.dry_run:
            async with self.holds.held(scope.user, wait_s=self.hold_wait_s) as hold_id:
                everything = await list_all(self.store, Scope(scope.user))
                withdrawn = await withdraw(self.store, self.records, everything, hold_id=hold_id, now=now)
                created = [
                    await self.reflector.keep(each, hold_id=hold_id, now=now) for each in found if not each.reason
                ]
            self.announce(MemoriesRemoved(UNFOUNDED, withdrawn))
        kept = [memory for memory in created if memory is not None]
        return as_shown(
            ReflectedShown, which, candidates=candidates, reflections=found, created=kept, withdrawn=withdrawn
        )

    async def _replace(self, summaries: Sequence[Written], user: str) -> list[tuple[Memory, int]]:
        if not summaries:
            return []
        created: list[tuple[Memory, int]] = []
        async with self.holds.held(user, wait_s=self.hold_wait_s) as hold_id:
            for summary in summaries:
                memory = await self.summariser.replace(summary, hold_id=hold_id, now=self.clock())
                if memory is not None:
                    self.announce(MemoriesRemoved(SUMMARISED, len(summary.of)))
                    created.append((memory, _tokens(summary.of) - _tokens([memory])))
        return created


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


def _version(memory: Memory) -> Version:
    by, why = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return {
        **shown(memory),
        "superseded_by": str(by) if by else None,
        "superseded_why": None if why is None else str(why),
    }


def curation_routes(life: Curation) -> APIRouter:
    """Everything under /v1/memory that is done with what is remembered already."""
    routes = APIRouter()
    routes.post("/v1/memory/consolidate", **refuses(*OF_WRITE))(life.consolidate)
    routes.post("/v1/memory/summarize", **refuses(*OF_WRITE, "NO_MODEL"))(life.summarize)
    routes.post("/v1/memory/reflect", **refuses(*OF_WRITE, "NO_MODEL"))(life.reflect)
    routes.get("/v1/memory/{memory_id}/history", **refuses(*OF_USER))(life.get_history)
    routes.post("/v1/memory/{memory_id}/release", **refuses(*OF_WRITE, "NOT_QUARANTINED"))(life.release)
    routes.post("/v1/memory/{memory_id}/undo", **refuses(*OF_WRITE, "NOTHING_TO_UNDO"))(life.undo)
    return routes
