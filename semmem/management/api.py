"""The REST API under /v1: HTTP and JSON in, operations of Memories, JSON out.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from semmem import __version__
from semmem.lifecycle.erasure import Receipt
from semmem.management.access import AccessRules, Act, Denied, user_for
from semmem.management.door import CALLER, Door, DoorRules
from semmem.management.errors import describe_errors
from semmem.management.fields import (
    TOPIC_CHARS_MAX,
    TYPES_MAX,
    MemoryId,
    MetadataLimits,
    NewUser,
    ProjectId,
    ScopeName,
    UserId,
    metadata_problem,
)
from semmem.management.memories import Memories
from semmem.management.purging import Purged, Purging
from semmem.management.retrieval import add_retrieval_routes
from semmem.management.shown import shown
from semmem.management.write_screen import WriteScreen
from semmem.memory import Memory, MemoryStatus, MemoryType, Scope
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.names import bounded

Topic = Annotated[str | None, Query(min_length=1, max_length=TOPIC_CHARS_MAX)]
Types = Annotated[list[MemoryType] | None, Query(alias="type", max_length=TYPES_MAX)]


class NewMemory(BaseModel):
    """``override_screen``: store what the write screen would not; an administrator's word."""

    model_config = ConfigDict(extra="forbid")

    content: str = Field(min_length=3, max_length=500)
    type: MemoryType = MemoryType.SEMANTIC
    user_id: NewUser = None
    project_id: ScopeName = None
    agent_id: ScopeName = None
    session_id: ScopeName = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] = Field(default_factory=dict)
    importance: float = Field(default=0.5, ge=0, le=1)
    expires_at: AwareDatetime | None = None
    override_screen: bool = False


class EndSession(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user_id: NewUser = None


May = Callable[[Request, str | None, Act], str]
"""Whose memories a call may touch in this way, given the user it names. Raises Denied."""


def create_api(
    memories: Memories,
    access: AccessRules,
    *,
    announce: Announce = nobody_listens,
    door: DoorRules | None = None,
    metadata: MetadataLimits | None = None,
    screening: WriteScreen | None = None,
    more: Sequence[Callable[[May], APIRouter]] = (),
    purging: Purging | None = None,
) -> FastAPI:
    """The application; its OpenAPI description is at /openapi.json. ``more`` makes routes of other files. Without
    ``purging`` there is nothing on disk to purge."""
    api = FastAPI(title="semmem", version=__version__, docs_url=None, redoc_url=None)
    describe_errors(api)
    api.add_middleware(
        Door,
        rules=door or DoorRules(),
        access=access,
        announce=announce,
    )
    screening, limits = screening or WriteScreen(), metadata or MetadataLimits()

    def may(request: Request, asked_for: str | None, act: Act) -> str:
        return user_for(request.scope[CALLER], asked_for, act)

    def reader(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
        return Scope(may(request, user_id, Act.READ), project=project_id)

    def owner(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
        return Scope(may(request, user_id, Act.WRITE), project=project_id)

    Reader = Annotated[Scope, Depends(reader)]
    Owner = Annotated[Scope, Depends(owner)]

    @api.get("/v1/memory")
    async def list_memories(
        scope: Reader,
        types: Types = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
        offset: Annotated[int, Query(ge=0)] = 0,
        status: MemoryStatus | None = None,
        topic: Topic = None,
    ) -> dict[str, Any]:
        found, total = await memories.page(scope, types or [], limit, offset, status=status, topic=topic)
        return {"memories": [shown(memory) for memory in found], "total": total, "limit": limit, "offset": offset}

    @api.post("/v1/memory", status_code=201)
    async def create_memory(request: Request, new: NewMemory) -> dict[str, Any]:
        scope = Scope(may(request, new.user_id, Act.WRITE), new.project_id, new.agent_id, new.session_id)
        if problem := metadata_problem(new.metadata, limits):
            raise Denied(400, "INVALID_REQUEST", f"body.metadata: {problem}")
        if new.override_screen:
            request.scope[CALLER].must(Act.ADMINISTER)
        told = screening.judge(new.content, key=new.key, override=new.override_screen)
        memory = await memories.create(
            scope,
            type=new.type,
            content=told.content,
            status=told.status,
            key=new.key,
            metadata=new.metadata | told.metadata,
            importance=new.importance,
            expires_at=new.expires_at.timestamp() if new.expires_at else None,
        )
        return shown(memory)

    @api.delete("/v1/memory")
    async def delete_memories(scope: Owner, types: Types = None, purge: bool = False) -> dict[str, Any]:
        receipt = await memories.forget_scope(scope, types or [])
        return _deleted(receipt) | (await _purged(purging) if purge else {})

    add_retrieval_routes(api, memories, may)

    @api.get("/v1/memory/{memory_id}")
    async def get_memory(scope: Reader, memory_id: MemoryId) -> dict[str, Any]:
        return shown(_found(await memories.get(scope, memory_id)))

    @api.delete("/v1/memory/{memory_id}")
    async def delete_memory(scope: Owner, memory_id: MemoryId, purge: bool = False) -> dict[str, Any]:
        receipt = await memories.forget(scope, memory_id)
        if receipt is None and not purge:  # with it: perhaps only the purge is left of an earlier call
            raise Denied(404, "NOT_FOUND", "no such memory")
        return _deleted(receipt or Receipt()) | (await _purged(purging) if purge else {})

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202)
    async def end_session(request: Request, session_id: str, end: EndSession | None = None) -> dict[str, Any]:
        user = may(request, end.user_id if end else None, Act.WRITE)
        return {"success": True, "turns": await memories.end_session(user, bounded(session_id) or "")}

    for routes in more:
        api.include_router(routes(may))
    return api


def _deleted(receipt: Receipt) -> dict[str, Any]:
    number = receipt.memories
    message = "1 memory deleted" if number == 1 else f"{number} memories deleted"
    return {"success": True, "message": message, "deleted": number, "receipt": receipt.shown()}


async def _purged(purging: Purging | None) -> dict[str, Any]:
    """What a receipt says of the files. Raises SemmemError when they could not be purged: never 200 for that."""
    done = Purged(True, 0.0) if purging is None else await purging.run()
    return {"purged": done.purged, "purge_seconds": round(done.seconds, 3)}


def _found(memory: Memory | None) -> Memory:
    if memory is None:
        raise Denied(404, "NOT_FOUND", "no such memory")
    return memory
