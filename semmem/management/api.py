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
from semmem.lifecycle.erasure import ErasurePending, Receipt
from semmem.lifecycle.holds import Busy
from semmem.management.access import AccessRules, Denied, user_for
from semmem.management.memories import Memories
from semmem.management.retrieval import add_retrieval_routes
from semmem.management.shown import shown
from semmem.memory import OWN_METADATA, Memory, MemoryStatus, MemoryType, Scope
from semmem.metrics import Metrics
from semmem.ports import SemmemError

PENDING_MESSAGE = "not everything is erased yet; nothing of it is shown or learnt any more, and it will be finished"

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
    memories: Memories, access: AccessRules, metrics: Metrics, *, more: Sequence[Callable[[May], APIRouter]] = ()
) -> FastAPI:
    """The application; its OpenAPI description is at /openapi.json. ``more`` makes routes of other files."""
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
    async def delete_memories(scope: Owner, types: Types = None) -> dict[str, Any]:
        return _deleted(await memories.forget_scope(scope, types or []))

    add_retrieval_routes(api, memories, may)

    @api.get("/v1/memory/{memory_id}")
    async def get_memory(scope: Owner, memory_id: str) -> dict[str, Any]:
        return shown(_found(await memories.get(scope, memory_id)))

    @api.delete("/v1/memory/{memory_id}")
    async def delete_memory(scope: Owner, memory_id: str) -> dict[str, Any]:
        receipt = await memories.forget(scope, memory_id)
        if receipt is None:
            raise Denied(404, "NOT_FOUND", "no such memory")
        return _deleted(receipt)

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202)
    async def end_session(request: Request, session_id: str, end: EndSession | None = None) -> dict[str, Any]:
        user = may(request, end.user_id if end else None)
        return {"success": True, "turns": await memories.end_session(user, session_id)}

    for routes in more:
        api.include_router(routes(may))
    return api


def _deleted(receipt: Receipt) -> dict[str, Any]:
    number = receipt.memories
    message = "1 memory deleted" if number == 1 else f"{number} memories deleted"
    return {"success": True, "message": message, "deleted": number, "receipt": receipt.shown()}


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

    @api.exception_handler(Busy)
    async def busy(_request: Request, _failure: Busy) -> Response:
        return error(409, "BUSY", "this user's memories are being changed; try again in a few seconds")

    @api.exception_handler(ErasurePending)
    async def pending(_request: Request, unfinished: ErasurePending) -> Response:
        """What is erased already, and that the rest is hidden and will be: never success for what was not done."""
        failure = {"code": "ERASURE_PENDING", "message": PENDING_MESSAGE}
        state = {"pending": True, "outlives_restart": unfinished.remembered}
        return JSONResponse(
            {"success": False, "error": failure, **state, "receipt": unfinished.receipt.shown()}, status_code=503
        )

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
