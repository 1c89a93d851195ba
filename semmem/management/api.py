"""The REST API under /v1: HTTP and JSON in, operations of Memories, JSON out."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.lifecycle.everybody import ErasureOfAll
from semmem.management.access import CALLER, AccessRules, Act
from semmem.management.description import Described
from semmem.management.door import Door, DoorRules, Guards
from semmem.management.erasing_api import Purging, add_erasing_routes
from semmem.management.fields import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    TOPIC_CHARS_MAX,
    Body,
    Kind,
    Limit,
    MemoryId,
    MetadataLimits,
    Moment,
    NewUser,
    Number,
    ScopeName,
    SessionId,
    Switch,
    Types,
    existing,
    metadata_problem,
    missing,
)
from semmem.management.listing import CURSOR_CHARS_MAX, Stats, Wanted
from semmem.management.memories import Memories
from semmem.management.problems import OF_USER, OF_WRITE, Denied, describe_errors
from semmem.management.retrieval import add_retrieval_routes
from semmem.management.routes import Owner, Reader, may, refuses, scope_in
from semmem.management.shown import MemoryShown, as_shown, shown
from semmem.management.states_api import States
from semmem.management.writing import ChangedMemory, WriteScreen
from semmem.memory import MemoryStatus, MemoryType
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.memory_records import Uses
from semmem.ports.names import bounded
from semmem.ports.spans import NO_TRACER, Tracer

Topic = Annotated[str | None, Query(min_length=1, max_length=TOPIC_CHARS_MAX)]
Text = Annotated[str | None, Query(alias="q", min_length=1, max_length=500, description="what a content contains")]
Offset = Annotated[int, Query(ge=0)]
PageNumber = Annotated[int | None, Query(ge=1, description="beats offset")]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor; beats page and offset")]


class NewMemory(Body):
    """``override_screen``: store what the write screen would not; an administrator's word."""

    content: str = Field(min_length=3, max_length=500)
    type: Kind = MemoryType.SEMANTIC
    user_id: NewUser = None
    project_id: ScopeName = None
    agent_id: ScopeName = None
    session_id: ScopeName = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] = Field(default_factory=dict)
    importance: Number = Field(default=0.5, ge=0, le=1)
    expires_at: Moment | None = None
    override_screen: Switch = False
    merge_metadata: Switch = Field(default=False, description="with a key that is known: over the metadata it has")


class EndSession(Body):
    user_id: NewUser = None


class MemoriesShown(TypedDict):
    """A page of memories, newest first. ``page``: its number, from 1, by limit and offset; null after a cursor.
    ``next_cursor``: where the next one begins; null where this is the last."""

    memories: list[MemoryShown]
    total: int
    limit: int
    offset: int
    page: int | None
    next_cursor: str | None
    stats: NotRequired[Stats]


class SessionEnded(TypedDict):
    """``turns``: how many wait to be learnt from."""

    success: Literal[True]
    turns: int


def create_api(
    memories: Memories,
    access: AccessRules,
    *,
    announce: Announce = nobody_listens,
    door: DoorRules | None = None,
    metadata: MetadataLimits | None = None,
    screening: WriteScreen | None = None,
    more: Sequence[APIRouter] = (),
    purging: Purging | None = None,
    everybody: ErasureOfAll | None = None,
    guards: Guards | None = None,
    tracer: Tracer = NO_TRACER,
    states: States | None = None,
) -> FastAPI:
    """The application; its OpenAPI description is at /openapi.json. ``more``: routes of other files. Without
    ``purging`` there is nothing on disk to purge, without ``everybody`` nobody is forgotten but by name, and without
    ``states`` a preview shows none."""
    screening, limits, rules = screening or WriteScreen(), metadata or MetadataLimits(), door or DoorRules()
    api = Described(access=access, door=rules, metadata=limits)
    describe_errors(api, api.methods_at)
    api.add_middleware(Door, rules=rules, access=access, announce=announce, guards=guards or Guards(), tracer=tracer)

    @api.get("/v1/memory", **refuses(*OF_USER, "INVALID_CURSOR"))
    async def list_memories(
        scope: Reader,
        session_id: SessionId = None,
        types: Types = None,
        limit: Limit = LIMIT_DEFAULT,
        offset: Offset = 0,
        page: PageNumber = None,
        cursor: Cursor = None,
        status: MemoryStatus | None = None,
        topic: Topic = None,
        text: Text = None,
        with_stats: Annotated[bool, Query(alias="stats")] = False,
    ) -> MemoriesShown:
        """Newest first: a page, an offset, or what follows a cursor."""
        scope = msgspec.structs.replace(scope, session=session_id)
        number = min(limit, LIMIT_MAX)
        wanted = Wanted(number, offset if page is None else (page - 1) * number, status, topic, text, cursor)
        uses = await memories.records.uses(scope.user) if with_stats else None
        found, figures = await memories.page(scope, types or [], wanted, uses=uses)
        page = None if cursor is not None else wanted.offset // number + 1
        told = as_shown(MemoriesShown, found, limit=number, offset=wanted.offset, page=page)
        if uses is not None and figures is not None:
            told["stats"] = figures
            for each in told["memories"]:
                each["access_count"] = uses.get(each["id"], Uses()).count
        return told

    @api.post("/v1/memory", status_code=201, **refuses(*OF_WRITE, "SCREENED"))
    async def create_memory(request: Request, new: NewMemory) -> MemoryShown:
        """Told, screened and stored; with a key that is known, a new version of that memory."""
        scope = scope_in(new, request, Act.WRITE)
        if problem := metadata_problem(new.metadata, limits):
            raise Denied("INVALID_REQUEST", f"body.metadata: {problem}")
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
            merge_metadata=new.merge_metadata,
            within=limits,
        )
        return shown(memory)

    @api.put("/v1/memory/{memory_id}", **refuses(*OF_WRITE, "SCREENED", "KEY_IN_USE"))
    async def update_memory(request: Request, scope: Owner, memory_id: MemoryId, new: ChangedMemory) -> MemoryShown:
        """A new version; what is not named stays. A content passes the write screen."""
        if new.metadata is not None and (problem := metadata_problem(new.metadata, limits)):
            raise Denied("INVALID_REQUEST", f"body.metadata: {problem}")
        if new.override_screen:
            request.scope[CALLER].must(Act.ADMINISTER)
        told = (
            None if new.content is None else screening.judge(new.content, key=memory_id, override=new.override_screen)
        )
        memory = await memories.update(scope, memory_id, new, told, within=limits)
        return shown(existing(memory, missing(memory_id)))

    add_retrieval_routes(api, memories, states)
    for routes in more:  # before what takes any name for a memory's id
        api.include_router(routes)

    @api.get("/v1/memory/{memory_id}", **refuses(*OF_USER))
    async def get_memory(scope: Reader, memory_id: MemoryId) -> MemoryShown:
        """One memory, whatever its status."""
        return shown(existing(await memories.store.get(scope, memory_id), missing(memory_id)))

    add_erasing_routes(api, memories, purging, everybody)

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202, **refuses(*OF_USER))
    async def end_session(request: Request, session_id: str, end: EndSession | None = None) -> SessionEnded:
        """Learn from what was said in it now, rather than when it has been quiet for long enough."""
        user = may(request, end.user_id if end else None, Act.WRITE)
        session = bounded(session_id) or ""
        return {"success": True, "turns": await memories.records.end_session(user, session, now=memories.clock())}

    return api
