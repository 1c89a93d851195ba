"""Routes for the life of memories: history, release from quarantine, consolidation, summaries.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from semmem.extraction.placed import Action
from semmem.management.access import Act, Denied
from semmem.management.api import May
from semmem.management.curation import Curation, NoModel, NotQuarantined
from semmem.management.fields import MemoryId, NewUser, ProjectId, ScopeName, UserId, missing
from semmem.management.shown import shown, time_shown
from semmem.memory import SUPERSEDED_BY, SUPERSEDED_WHY, Memory, Scope
from semmem.upkeep.consolidation import Group
from semmem.upkeep.summaries import Summary


class Consolidate(BaseModel):
    """Which memories; without a project all of the user's."""

    model_config = ConfigDict(extra="forbid")

    user_id: NewUser = None
    project_id: ScopeName = None
    dry_run: bool = Field(default=True, description="only say what would be done")


class Summarize(Consolidate):
    """As Consolidate, of memories that were last said so many days ago."""

    older_than_days: float = Field(default=90, ge=0, le=36_500)


def curation_routes(life: Curation, may: May) -> APIRouter:
    """Everything under /v1/memory that is done with what is remembered already."""
    routes = APIRouter()

    @routes.post("/v1/memory/consolidate")
    async def consolidate(request: Request, which: Consolidate) -> dict[str, Any]:
        scope = Scope(may(request, which.user_id, Act.WRITE), project=which.project_id)
        done = await life.consolidate(scope, dry_run=which.dry_run)
        return {
            "dry_run": which.dry_run,
            "candidates": done.candidates,
            "groups": [_group(group) for group in done.groups],
            "superseded": done.superseded,
            "tokens_saved": done.tokens_saved,
        }

    @routes.post("/v1/memory/summarize")
    async def summarize(request: Request, which: Summarize) -> dict[str, Any]:
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

    @routes.get("/v1/memory/{memory_id}/history")
    async def get_history(
        request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> dict[str, Any]:
        told = await life.history(Scope(may(request, user_id, Act.READ), project=project_id), memory_id)
        if told is None:
            raise missing(memory_id)
        return {
            "id": memory_id,
            "versions": [
                _version(version) | {"replaced_why": why}
                for version, why in zip(told.versions, told.replaced_why(), strict=True)
            ],
            "current": _version(told.current),
            "dropped": [
                {"reason": row.reason, "times": row.times, "last_at": time_shown(row.last_at)} for row in told.dropped
            ],
            "uses": {"count": told.uses.count, "last_at": time_shown(told.uses.last_at or None)},
        }

    @routes.post("/v1/memory/{memory_id}/release")
    async def release(
        request: Request, memory_id: MemoryId, user_id: UserId = None, project_id: ProjectId = None
    ) -> dict[str, Any]:
        try:
            found = await life.release(Scope(may(request, user_id, Act.WRITE), project=project_id), memory_id)
        except NotQuarantined:
            raise Denied(409, "NOT_QUARANTINED", "only a quarantined memory can be released") from None
        if found is None:
            raise missing(memory_id)
        action, memory = found
        return {"released": action is not Action.UNCHANGED, "memory": shown(memory)}

    return routes


def _group(group: Group) -> dict[str, Any]:
    return {"kept": _brief(group.kept), "merged": [_brief(memory) for memory in group.merged]}


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "memories": [_brief(memory) for memory in summary.of],
        "summary": summary.content or None,
        "refused": summary.reason or None,
    }


def _brief(memory: Memory) -> dict[str, Any]:
    return {"id": memory.id, "version": memory.version, "content": memory.content}


def _version(memory: Memory) -> dict[str, Any]:
    metadata = memory.metadata
    return shown(memory) | {
        "superseded_by": metadata.get(SUPERSEDED_BY),
        "superseded_why": metadata.get(SUPERSEDED_WHY),
    }
