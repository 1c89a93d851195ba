"""Routes for the life of memories: history, release from quarantine, a change undone, consolidation, summaries."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.extraction.placed import Action
from semmem.management.access import Act
from semmem.management.curation import Curation
from semmem.management.fields import Body, MemoryId, NewUser, Number, ProjectId, ScopeName, Switch, UserId, existing
from semmem.management.problems import OF_USER, OF_WRITE
from semmem.management.routes import Owner, may, refuses
from semmem.management.shown import MemoryShown, Time, as_shown, shown
from semmem.memory import SUPERSEDED_BY, SUPERSEDED_WHY, Memory, Scope


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


def curation_routes(life: Curation) -> APIRouter:
    """Everything under /v1/memory that is done with what is remembered already."""
    routes = APIRouter()

    @routes.post("/v1/memory/consolidate", **refuses(*OF_WRITE))
    async def consolidate(request: Request, which: Consolidate) -> ConsolidatedShown:
        """Merge what says the same."""
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        done = await life.consolidate(scope, dry_run=which.dry_run)
        groups: list[GroupShown] = [{"kept": _brief(each.kept), "merged": _briefs(each.merged)} for each in done.groups]
        return as_shown(ConsolidatedShown, done, dry_run=which.dry_run, groups=groups)

    @routes.post("/v1/memory/summarize", **refuses(*OF_WRITE, "NO_MODEL"))
    async def summarize(request: Request, which: Summarize) -> SummarisedShown:
        """Summarise what is old and related."""
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        done = await life.summarise(scope, older_than_days=which.older_than_days, dry_run=which.dry_run)
        groups: list[SummaryShown] = [
            {"memories": _briefs(each.of), "summary": each.content or None, "refused": each.reason or None}
            for each in done.summaries
        ]
        created = [shown(memory) for memory in done.created]
        return as_shown(SummarisedShown, done, dry_run=which.dry_run, groups=groups, created=created)

    @routes.post("/v1/memory/reflect", **refuses(*OF_WRITE, "NO_MODEL"))
    async def reflect(request: Request, which: Consolidate) -> ReflectedShown:
        """Find patterns over memories. A dry run asks the model, where there is one, and remembers nothing."""
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        done = await life.reflect(scope, dry_run=which.dry_run)
        found = [
            as_shown(ReflectionShown, each, memories=_briefs(each.of), refused=each.reason or None)
            for each in done.reflections
        ]
        created = [shown(memory) for memory in done.created]
        return as_shown(ReflectedShown, done, dry_run=which.dry_run, reflections=found, created=created)

    @routes.get("/v1/memory/{memory_id}/history", **refuses(*OF_USER))
    async def get_history(
        request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> HistoryShown:
        """Every version, what took its place and why, and how the memory was used."""
        scope = Scope(may(request, user_id, Act.READ), project=project_id)
        told = existing(await life.history(scope, memory_id), memory_id)
        return {
            "id": memory_id,
            "versions": [
                {**_version(version), "replaced_why": why}
                for version, why in zip(told.versions, told.replaced_why(), strict=True)
            ],
            "current": _version(told.current),
            "dropped": [as_shown(DroppedShown, row) for row in told.dropped],
            "uses": as_shown(UsesShown, told.uses, last_at=told.uses.last_at or None),
        }

    @routes.post("/v1/memory/{memory_id}/release", **refuses(*OF_WRITE, "NOT_QUARANTINED"))
    async def release(scope: Owner, memory_id: MemoryId) -> Released:
        """Let a quarantined memory be retrieved."""
        action, memory = existing(await life.release(scope, memory_id), memory_id)
        return {"released": action is not Action.UNCHANGED, "memory": shown(memory)}

    @routes.post("/v1/memory/{memory_id}/undo", **refuses(*OF_WRITE, "NOTHING_TO_UNDO"))
    async def undo(scope: Owner, memory_id: MemoryId) -> UndoneShown:
        """Take back that a standing memory ended or changed with this one, or that its user asked to forget it: what
        was known before is known again."""
        undone = existing(await life.undo(scope, memory_id), memory_id)
        return {"restored": undone.restored, "memory": shown(undone.memory)}

    return routes


def _briefs(memories: Sequence[Memory]) -> list[Brief]:
    return [_brief(memory) for memory in memories]


def _brief(memory: Memory) -> Brief:
    return as_shown(Brief, memory)


def _version(memory: Memory) -> Version:
    by, why = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return {
        **shown(memory),
        "superseded_by": str(by) if by else None,
        "superseded_why": None if why is None else str(why),
    }
