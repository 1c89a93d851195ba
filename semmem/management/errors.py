"""Every error of the API is one problem of the table; its detail names the place, never content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from semmem.lifecycle.erasure import ErasurePending
from semmem.lifecycle.holds import Busy
from semmem.management.access import Denied
from semmem.management.problems import PROBLEM_TYPE, PROBLEMS, RETRY_AFTER, ErasurePendingShown, problem
from semmem.ports.errors import (
    EmbedderBusy,
    EmbedderError,
    JournalError,
    JournalFull,
    JournalUnavailable,
    ModelError,
    SemmemError,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreTimeout,
    StoreUnavailable,
    WorkError,
)

PLACES_MAX = 5
"""Wrong fields named in one answer; a body may have as many as it has bytes."""
PLACE_CHARS_MAX = 80
MESSAGE_CHARS_MAX = 600

PENDING_MESSAGE = "not everything is erased yet; nothing of it is shown or learnt any more, and it will be finished"

TROUBLES: Sequence[tuple[type[SemmemError], str]] = (
    (StoreTimeout, "the store did not answer in time"),
    (StoreDamaged, "a file of the store cannot be read"),
    (StoreUnavailable, "the store cannot be reached"),
    (StoreError, "the store failed"),
    (JournalFull, "the journal cannot write to its disk"),
    (JournalUnavailable, "the journal's server cannot be reached"),
    (JournalError, "the journal failed"),
    (EmbedderBusy, "the embedder has too much to do"),
    (EmbedderError, "the embedder made no vector"),
    (ModelError, "the language model failed"),
    (WorkError, "the text was not read to its end"),
)
"""Which part a call needs that does not answer, in words; the first that fits."""

FIELD_CODES = {
    "limit": "INVALID_LIMIT",
    "type": "INVALID_TYPE",
    "user_id": "INVALID_USER_ID",
    "memory_id": "INVALID_ID",
}
"""What is wrong with a query or a path, where it is this alone."""

CODES = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
"""What the framework itself refuses."""


class ProblemAnswer(JSONResponse):
    """Called ``application/json``, which is what clients of other memory systems expect of a refusal, and what strict
    ones insist on; called ``application/problem+json`` for a caller who says that they know it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = [value for name, value in scope["headers"] if name == b"accept"]
        if any(PROBLEM_TYPE.encode() in value.lower() for value in accepted):
            self.headers["content-type"] = PROBLEM_TYPE
        self.headers["vary"] = "accept"
        await super().__call__(scope, receive, send)


def error(code: str, detail: str, headers: Mapping[str, str] | None = None) -> ProblemAnswer:
    """An answer that says what is wrong; of a caller's own words in it, only what is text and short."""
    text = detail.encode("utf-8", "replace").decode()[:MESSAGE_CHARS_MAX]
    told = problem(code, text)
    return ProblemAnswer(told, status_code=told["status"], headers=headers_of(code, headers))


def headers_of(code: str, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those that belong to the code; where ``headers`` say one of them, as they do."""
    after_s = PROBLEMS[code].retry_after_s
    return ({RETRY_AFTER: str(after_s)} if after_s else {}) | dict(headers or {})


def denial(denied: Denied, headers: Mapping[str, str] | None = None) -> ProblemAnswer:
    return error(denied.code, str(denied), {**denied.headers, **(headers or {})})


def describe_errors(api: FastAPI, methods_at: Callable[[str], Sequence[str]]) -> None:
    """Answer every failure of a route in the one shape. ``methods_at`` gives the methods that a path has: the framework
    itself names those of the first route alone."""

    @api.exception_handler(Denied)
    async def denied(_request: Request, refusal: Denied) -> Response:
        return denial(refusal)

    @api.exception_handler(RequestValidationError)
    async def invalid(_request: Request, failure: RequestValidationError) -> Response:
        found = failure.errors()
        places = [f"{_place(one['loc'])}: {one['msg']}" for one in found[:PLACES_MAX]]
        more = [f"{len(found) - PLACES_MAX} more"] if len(found) > PLACES_MAX else []
        return error(_code(found[0]["loc"]) if len(found) == 1 else "INVALID_REQUEST", "; ".join(places + more))

    @api.exception_handler(HTTPException)
    async def refused(request: Request, refusal: HTTPException) -> Response:
        """What the framework itself refuses: no such route or method, a body that cannot be read."""
        code = CODES.get(refusal.status_code, "INVALID_REQUEST")
        is_method = refusal.status_code == 405
        headers = {"allow": ", ".join(methods_at(request.url.path))} if is_method else refusal.headers
        return error(code, str(refusal.detail), headers)

    @api.exception_handler(StoreRefused)
    async def unstorable(_request: Request, failure: StoreRefused) -> Response:
        return error("INVALID_REQUEST", str(failure))

    @api.exception_handler(Busy)
    async def busy(_request: Request, _failure: Busy) -> Response:
        return error("BUSY", "this user's memories are being changed; try again in a few seconds")

    @api.exception_handler(ErasurePending)
    async def pending(_request: Request, unfinished: ErasurePending) -> Response:
        """What is erased already, and that the rest is hidden and will be: never success for what was not done."""
        told: ErasurePendingShown = {
            **problem("ERASURE_PENDING", PENDING_MESSAGE),
            "success": False,
            "pending": True,
            "outlives_restart": unfinished.remembered,
            "receipt": unfinished.receipt,
        }
        headers = headers_of(told["code"])
        return ProblemAnswer(jsonable_encoder(told), status_code=told["status"], headers=headers)

    @api.exception_handler(StoreFull)
    async def full(_request: Request, _failure: StoreFull) -> Response:
        return error("STORE_FULL", "the store cannot write to its disk; nothing was changed")

    @api.exception_handler(SemmemError)
    async def unavailable(_request: Request, failure: SemmemError) -> Response:
        return error("MEMORY_NOT_AVAILABLE", f"{trouble(failure)} ({type(failure).__name__}): try again later")


def trouble(failure: SemmemError) -> str:
    """Which part failed, and how. The failure's own message may name an address or a file."""
    return next((words for kind, words in TROUBLES if isinstance(failure, kind)), "a part failed")


def _code(place: tuple[str | int, ...]) -> str:
    """Clients of other systems look for these."""
    at = [str(part) for part in place[:2]]
    return FIELD_CODES.get(at[-1], "INVALID_REQUEST") if at[0] != "body" else "INVALID_REQUEST"


def _place(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)[:PLACE_CHARS_MAX]
