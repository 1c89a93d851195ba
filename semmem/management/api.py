"""The REST API under /v1: HTTP and JSON in, operations of Memories, JSON out."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NotRequired

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request
from typing_extensions import TypedDict

from semmem.lifecycle.erasure import Receipt
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.management.access import CALLER, AccessRules, Act
from semmem.management.description import Described
from semmem.management.door import Door, DoorRules, Guards
from semmem.management.memories import Admitted, ChangedMemory, Memories, NewMemory, WriteScreen
from semmem.management.problems import OF_ERASURE, OF_USER, OF_WRITE, Denied, describe_errors
from semmem.management.retrieval import States, add_retrieval_routes
from semmem.management.routes import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    TOPIC_CHARS_MAX,
    Body,
    Limit,
    MemoryId,
    NewUser,
    Owner,
    ProjectId,
    Reader,
    SessionId,
    Types,
    UserId,
    existing,
    may,
    metadata_problem,
    missing,
    refuses,
    scope_in,
)
from semmem.management.shown import (
    CURSOR_CHARS_MAX,
    ROWS_MAX,
    DeletedShown,
    MemoryShown,
    Stats,
    Wanted,
    as_shown,
    cut,
    shown,
    stats,
)
from semmem.memory import PASSAGES, MemoryStatus, Scope
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.memory_records import Uses
from semmem.ports.names import bounded
from semmem.ports.spans import NO_TRACER, Tracer
from semmem.ports.store import Purgeable

Topic = Annotated[str | None, Query(min_length=1, max_length=TOPIC_CHARS_MAX)]
Text = Annotated[str | None, Query(alias="q", min_length=1, max_length=500, description="what a content contains")]
Offset = Annotated[int, Query(ge=0)]
PageNumber = Annotated[int | None, Query(ge=1, description="beats offset")]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARS_MAX, description="a next_cursor; beats page and offset")]


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


@dataclass(eq=False)
class Purging:
    """Purges ``parts``, one purge at a time. Those who ask while one runs share the next."""

    parts: Sequence[Purgeable]
    _begun: int = field(init=False, default=0)
    _last: tuple[int, bool] = field(init=False, default=(0, False))
    _turn: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    async def run(self) -> bool:
        """Everything removed before this call has left the files when it returns; False when some removed rows stay
        until a server compacts. Raises the first error of a part (StoreError, JournalError) when all have been tried:
        nothing is promised then."""
        before = self._begun
        async with self._turn:
            if self._last[0] <= before:  # no purge that began after this call has ended
                self._begun += 1
                results = await asyncio.gather(*(part.purge() for part in self.parts), return_exceptions=True)
                for result in results:
                    if isinstance(result, BaseException):
                        raise result
                self._last = (self._begun, all(results))
            return self._last[1]


def create_api(
    memories: Memories,
    access: AccessRules,
    *,
    announce: Announce = nobody_listens,
    door: DoorRules | None = None,
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
    screening, rules = screening or WriteScreen(), door or DoorRules()
    api = Described(access=access, door=rules, metadata=memories.limits)
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
        # All of it is read, once: stores have no order of their own, and do so for any page.
        everything = await memories.store.list(scope, types=types or [], limit=ROWS_MAX, vectors=False)
        page = None if cursor is not None else wanted.offset // number + 1
        found, total, behind = cut(everything, wanted)
        told = as_shown(MemoriesShown, wanted, memories=found, total=total, page=page, next_cursor=behind)
        if uses is not None:
            told["stats"] = stats(everything, uses)
            for each in told["memories"]:
                each["access_count"] = uses.get(each["id"], Uses()).count
        return told

    def admitted(request: Request, new: NewMemory | ChangedMemory, key: str | None) -> Admitted | None:
        """What may be stored of a content, if there is one. Raises Denied."""
        if new.metadata is not None and (problem := metadata_problem(new.metadata, memories.limits)):
            raise Denied("INVALID_REQUEST", f"body.metadata: {problem}")
        if new.override_screen:
            request.scope[CALLER].must(Act.ADMINISTER)
        return None if new.content is None else screening.judge(new.content, key=key, override=new.override_screen)

    @api.post("/v1/memory", status_code=201, **refuses(*OF_WRITE, "SCREENED"))
    async def create_memory(request: Request, new: NewMemory) -> MemoryShown:
        """Told, screened and stored; with a key that is known, a new version of that memory."""
        scope = scope_in(new, request, Act.WRITE)
        return shown(await memories.create(scope, new, admitted(request, new, new.key)))

    @api.put("/v1/memory/{memory_id}", **refuses(*OF_WRITE, "SCREENED", "KEY_IN_USE"))
    async def update_memory(request: Request, scope: Owner, memory_id: MemoryId, new: ChangedMemory) -> MemoryShown:
        """A new version; what is not named stays. A content passes the write screen."""
        memory = await memories.update(scope, memory_id, new, admitted(request, new, memory_id))
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
        user = may(request, end.user_id if end else None, Act.WRITE, place="body")
        session = bounded(session_id) or ""
        return {"success": True, "turns": await memories.records.end_session(user, session, now=memories.clock())}

    return api


# --- what forgets ----------------------------------------------------------------------------------------------------

DAY_S = 86_400.0

OlderThan = Annotated[float | None, Query(ge=0, le=36_500, description="only what was said so many days ago")]
Purge = Annotated[bool, Query(description="rewrite the embedded store's files too")]
Everybody = Annotated[
    bool, Query(alias="all", description="everybody's: an administrator's word, in the place of a user")
]

OF_ONE: Final = frozenset({"user_id", "project_id", "purge"})
OF_SCOPE: Final = OF_ONE | {"session_id", "type", "older_than_days", "all"}
"""What the query of each of the two calls may say."""
NAME_CHARS_MAX = 60


def add_erasing_routes(api: FastAPI, memories: Memories, purging: Purging | None, of_all: ErasureOfAll | None) -> None:
    @api.delete("/v1/memory", **refuses(*OF_ERASURE))
    async def delete_memories(
        request: Request,
        user_id: UserId = None,
        project_id: ProjectId = None,
        session_id: SessionId = None,
        types: Types = None,
        older_than_days: OlderThan = None,
        everybody: Everybody = False,
        purge: Purge = False,
    ) -> DeletedShown:
        """A scope of one user, or of everybody; without a filter on types or age also what was said and waits."""
        older_than_s = None if older_than_days is None else older_than_days * DAY_S
        if set(types or ()) & set(PASSAGES):
            raise Denied("INVALID_REQUEST", "query.type: passages go with the memories of their scope, or by id")
        if everybody:
            request.scope[CALLER].must(Act.ADMINISTER)
            _narrows_as_meant(request, OF_SCOPE)
            if session_id is not None:
                raise Denied("INVALID_REQUEST", "query.session_id: is of one user, and not beside all")
            if user_id or of_all is None:
                raise Denied("INVALID_REQUEST", "query.all: is for everybody, and not beside a user")
            gone = await of_all.forget(project=project_id, types=types or [], older_than_s=older_than_s)
            return {**await _deleted(gone.receipt, purge, purging), "users": gone.users}
        scope = Scope(may(request, user_id, Act.WRITE), project=project_id, session=session_id)
        _narrows_as_meant(request, OF_SCOPE)
        receipt = await memories.forget_scope(scope, types or [], older_than_s=older_than_s)
        return await _deleted(receipt, purge, purging)

    @api.delete("/v1/memory/{memory_id}", **refuses(*OF_ERASURE))
    async def delete_memory(
        request: Request,
        memory_id: MemoryId,
        user_id: UserId = None,
        project_id: ProjectId = None,
        purge: Purge = False,
    ) -> DeletedShown:
        """With its versions and statistics."""
        scope = Scope(may(request, user_id, Act.WRITE), project=project_id)
        _narrows_as_meant(request, OF_ONE)
        receipt = await memories.forget(scope, memory_id)
        if receipt is None and not purge:  # with it: perhaps only the purge is left of an earlier call
            raise missing(memory_id)
        return await _deleted(receipt or Receipt(), purge, purging)


def _narrows_as_meant(request: Request, known: frozenset[str]) -> None:
    """What is not understood may have been meant to narrow the call: it must not forget more instead. Raises Denied."""
    for name in request.query_params:
        if name not in known:
            raise Denied("INVALID_REQUEST", f"query.{name[:NAME_CHARS_MAX]}: is nothing that this call knows")
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise Denied("INVALID_REQUEST", "body: this call takes none; what narrows it stands in the query")


async def _deleted(receipt: Receipt, purge: bool, purging: Purging | None) -> DeletedShown:
    """Raises SemmemError when the files could not be purged: never 200 for that."""
    number = receipt.memories
    message = "1 memory deleted" if number == 1 else f"{number} memories deleted"
    told: DeletedShown = {"success": True, "message": message, "deleted": number, "receipt": receipt}
    if purge:
        began = time.monotonic()
        told["purged"] = purging is None or await purging.run()
        told["purge_seconds"] = round(time.monotonic() - began, 3)
    return told
