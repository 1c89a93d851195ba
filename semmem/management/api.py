"""The REST API under /v1: HTTP and JSON in, operations of Memories, JSON out.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator
from starlette.exceptions import HTTPException

from semmem import __version__
from semmem.management.access import AccessRules, Denied, user_for
from semmem.management.memories import Memories
from semmem.management.purging import Purged, Purging
from semmem.management.retrieval import add_retrieval_routes
from semmem.management.shown import shown
from semmem.memory import OWN_METADATA, Memory, MemoryStatus, MemoryType, Scope
from semmem.metrics import Metrics
from semmem.ports import SemmemError, StoreFull

UserId = Annotated[str | None, Query(max_length=256)]
ProjectId = Annotated[str | None, Query(max_length=256)]
Types = Annotated[list[MemoryType] | None, Query(alias="type")]


class NewMemory(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: str = Field(min_length=3, max_length=500)
    type: MemoryType = MemoryType.SEMANTIC
    user_id: str | None = Field(default=None, max_length=256)
    project_id: str | None = Field(default=None, max_length=256)
    agent_id: str | None = Field(default=None, max_length=256)
    session_id: str | None = Field(default=None, max_length=256)
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] = Field(default_factory=dict)
    importance: float = Field(default=0.5, ge=0, le=1)
    expires_at: AwareDatetime | None = None

    @field_validator("metadata")
    @classmethod
    def _is_storable(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OWN_METADATA & metadata.keys()):
            raise ValueError(f"{', '.join(taken)}: only semmem itself writes this")
        try:
            json.dumps(metadata, allow_nan=False).encode()
        except (ValueError, RecursionError):
            raise ValueError("holds NaN or Infinity, which are no JSON, or is nested too deep") from None
        return metadata


class EndSession(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user_id: str | None = Field(default=None, max_length=256)


May = Callable[[Request, str | None], str]
"""Whose memories a call may touch, given the user it names. Raises Denied."""


def create_api(
    memories: Memories,
    access: AccessRules,
    metrics: Metrics,
    *,
    more: Sequence[Callable[[May], APIRouter]] = (),
    purging: Purging | None = None,
) -> FastAPI:
    """The application; its OpenAPI description is at /openapi.json. ``more`` makes routes of other files. Without
    ``purging`` there is nothing on disk to purge."""
    api = FastAPI(title="semmem", version=__version__, docs_url=None, redoc_url=None)
    _describe_errors(api)
    _count_calls(api, metrics)

    def may(request: Request, asked_for: str | None) -> str:
        return user_for(access, request.headers, asked_for)

    def owner(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
        return Scope(may(request, user_id), project=project_id)

    Owner = Annotated[Scope, Depends(owner)]

    @api.get("/v1/memory")
    async def list_memories(
        scope: Owner,
        types: Types = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
        offset: Annotated[int, Query(ge=0)] = 0,
        status: MemoryStatus | None = None,
    ) -> dict[str, Any]:
        found, total = await memories.page(scope, types or [], limit, offset, status)
        return {"memories": [shown(memory) for memory in found], "total": total, "limit": limit, "offset": offset}

    @api.post("/v1/memory", status_code=201)
    async def create_memory(request: Request, new: NewMemory) -> dict[str, Any]:
        scope = Scope(may(request, new.user_id), new.project_id, new.agent_id, new.session_id)
        memory = await memories.create(
            scope,
            type=new.type,
            content=new.content,
            key=new.key,
            metadata=new.metadata,
            importance=new.importance,
            expires_at=new.expires_at.timestamp() if new.expires_at else None,
        )
        return shown(memory)

    @api.delete("/v1/memory")
    async def delete_memories(scope: Owner, types: Types = None, purge: bool = False) -> dict[str, Any]:
        deleted = await memories.forget_scope(scope, types or [])
        receipt = {"success": True, "message": f"{deleted} memories deleted", "deleted": deleted}
        return receipt | (await _purged(purging) if purge else {})

    add_retrieval_routes(api, memories, may)

    @api.get("/v1/memory/{memory_id}")
    async def get_memory(scope: Owner, memory_id: str) -> dict[str, Any]:
        return shown(_found(await memories.get(scope, memory_id)))

    @api.delete("/v1/memory/{memory_id}")
    async def delete_memory(scope: Owner, memory_id: str, purge: bool = False) -> dict[str, Any]:
        if not await memories.forget(scope, memory_id):
            raise Denied(404, "NOT_FOUND", "no such memory")
        receipt = {"success": True, "message": "1 memory deleted", "deleted": 1}
        return receipt | (await _purged(purging) if purge else {})

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202)
    async def end_session(request: Request, session_id: str, end: EndSession | None = None) -> dict[str, Any]:
        user = may(request, end.user_id if end else None)
        return {"success": True, "turns": await memories.end_session(user, session_id)}

    for routes in more:
        api.include_router(routes(may))
    return api


async def _purged(purging: Purging | None) -> dict[str, Any]:
    """What a receipt says of the files. Raises SemmemError when they could not be purged: never 200 for that."""
    done = Purged(True, 0.0) if purging is None else await purging.run()
    return {"purged": done.purged, "purge_seconds": round(done.seconds, 3)}


def _found(memory: Memory | None) -> Memory:
    if memory is None:
        raise Denied(404, "NOT_FOUND", "no such memory")
    return memory


def _describe_errors(api: FastAPI) -> None:
    """Every error is {"error": {"code", "message"}}; a message names the place, never content."""

    def error(status: int, code: str, message: str) -> JSONResponse:
        return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)

    @api.exception_handler(Denied)
    async def denied(_request: Request, denial: Denied) -> Response:
        return error(denial.status, denial.code, str(denial))

    @api.exception_handler(RequestValidationError)
    async def invalid(_request: Request, failure: RequestValidationError) -> Response:
        places = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in failure.errors()]
        return error(400, "INVALID_REQUEST", "; ".join(places))

    @api.exception_handler(HTTPException)
    async def refused(_request: Request, refusal: HTTPException) -> Response:
        """What the framework itself refuses: no such route or method, a body that cannot be read."""
        code = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(refusal.status_code, "REFUSED")
        response = error(refusal.status_code, code, str(refusal.detail))
        response.headers.update(refusal.headers or {})
        return response

    @api.exception_handler(StoreFull)
    async def full(_request: Request, _failure: StoreFull) -> Response:
        return error(507, "STORE_FULL", "the store cannot write to its disk; nothing was changed")

    @api.exception_handler(SemmemError)
    async def unavailable(_request: Request, failure: SemmemError) -> Response:
        return error(503, "MEMORY_NOT_AVAILABLE", f"{type(failure).__name__}: try again later")


def _count_calls(api: FastAPI, metrics: Metrics) -> None:
    @api.middleware("http")
    async def count(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        route = request.scope.get("route")
        metrics.api_requests.labels(getattr(route, "path", "none"), str(response.status_code)).inc()
        return response
