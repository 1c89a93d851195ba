"""Routes for the life of memories: history, release from quarantine, a change undone, consolidation, summaries."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.extraction.placed import Action
from semmem.extraction.undoing import NothingToUndo
from semmem.management.access import Act, Denied
from semmem.management.asked import Owner, may
from semmem.management.curation import Curation, NoModel, NotQuarantined
from semmem.management.fields import Body, MemoryId, NewUser, Number, ProjectId, ScopeName, Switch, UserId, missing
from semmem.management.problems import OF_USER, OF_WRITE, refuses
from semmem.management.shown import MemoryShown, Time, shown, time_shown
from semmem.memory import SUPERSEDED_BY, SUPERSEDED_WHY, Memory, Scope
from semmem.upkeep.consolidation import Group
from semmem.upkeep.summaries import Summary


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
        return {
            "dry_run": which.dry_run,
            "candidates": done.candidates,
            "groups": [_group(group) for group in done.groups],
            "superseded": done.superseded,
            "tokens_saved": done.tokens_saved,
        }

    @routes.post("/v1/memory/summarize", **refuses(*OF_WRITE, "NO_MODEL"))
    async def summarize(request: Request, which: Summarize) -> SummarisedShown:
        """Summarise what is old and related."""
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        try:
            done = await life.summarise(scope, older_than_days=which.older_than_days, dry_run=which.dry_run)
        except NoModel as missing:
            reason = f"{missing}, but external_models has no model with the role memory_extraction"
            raise Denied(409, "NO_MODEL", reason) from None
        return {
            "dry_run": which.dry_run,
            "candidates": done.candidates,
            "groups": [_summary(summary) for summary in done.summaries],
            "created": [shown(memory) for memory in done.created],
            "tokens_saved": done.tokens_saved,
        }

    @routes.post("/v1/memory/reflect", **refuses(*OF_WRITE, "NO_MODEL"))
    async def reflect(request: Request, which: Consolidate) -> ReflectedShown:
        """Find patterns over memories. A dry run asks the model, where there is one, and remembers nothing."""
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        try:
            done = await life.reflect(scope, dry_run=which.dry_run)
        except NoModel as missing:
            reason = f"{missing}, but external_models has no model with the role memory_extraction"
            raise Denied(409, "NO_MODEL", reason) from None
        return {
            "dry_run": which.dry_run,
            "candidates": done.candidates,
            "reflections": [
                {"content": each.content, "memories": [_brief(one) for one in each.of], "refused": each.reason or None}
                for each in done.reflections
            ],
            "created": [shown(memory) for memory in done.created],
            "withdrawn": done.withdrawn,
        }

    @routes.get("/v1/memory/{memory_id}/history", **refuses(*OF_USER))
    async def get_history(
        request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> HistoryShown:
        """Every version, what took its place and why, and how the memory was used."""
        told = await life.history(Scope(may(request, user_id, Act.READ), project=project_id), memory_id)
        if told is None:
            raise missing(memory_id)
        return {
            "id": memory_id,
            "versions": [
                {**_version(version), "replaced_why": why}
                for version, why in zip(told.versions, told.replaced_why(), strict=True)
            ],
            "current": _version(told.current),
            "dropped": [
                {"reason": row.reason, "times": row.times, "last_at": time_shown(row.last_at)} for row in told.dropped
            ],
            "uses": {"count": told.uses.count, "last_at": time_shown(told.uses.last_at or None)},
        }

    @routes.post("/v1/memory/{memory_id}/release", **refuses(*OF_WRITE, "NOT_QUARANTINED"))
    async def release(scope: Owner, memory_id: MemoryId) -> Released:
        """Let a quarantined memory be retrieved."""
        try:
            found = await life.release(scope, memory_id)
        except NotQuarantined:
            raise Denied(409, "NOT_QUARANTINED", "only a quarantined memory can be released") from None
        if found is None:
            raise missing(memory_id)
        action, memory = found
        return {"released": action is not Action.UNCHANGED, "memory": shown(memory)}

    @routes.post("/v1/memory/{memory_id}/undo", **refuses(*OF_WRITE, "NOTHING_TO_UNDO"))
    async def undo(scope: Owner, memory_id: MemoryId) -> UndoneShown:
        """Take back that a standing memory ended or changed with this one, or that its user asked to forget it: what
        was known before is known again."""
        try:
            undone = await life.undo(scope, memory_id)
        except NothingToUndo:
            reason = "no standing memory ended or changed with this one, or it was changed or replaced since"
            raise Denied(409, "NOTHING_TO_UNDO", reason) from None
        if undone is None:
            raise missing(memory_id)
        return {"restored": undone.restored, "memory": shown(undone.memory)}

    return routes


def _group(group: Group) -> GroupShown:
    return {"kept": _brief(group.kept), "merged": _briefs(group.merged)}


def _summary(summary: Summary) -> SummaryShown:
    return {
        "memories": _briefs(summary.of),
        "summary": summary.content or None,
        "refused": summary.reason or None,
    }


def _briefs(memories: Sequence[Memory]) -> list[Brief]:
    return [_brief(memory) for memory in memories]


def _brief(memory: Memory) -> Brief:
    return {"id": memory.id, "version": memory.version, "content": memory.content}


def _version(memory: Memory) -> Version:
    by, why = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return {
        **shown(memory),
        "superseded_by": str(by) if by else None,
        "superseded_why": None if why is None else str(why),
    }
