"""Every refusal of the API: its stable code, the status it comes with, what it means, and the answer made of it.

The one table of codes. Answers are made from it, the description of the API lists it, and docs/operations.md says when
each of them is met. A refusal is a problem as of RFC 9457 with two members more: ``code``, and ``error`` with code and
message, the shape that clients of other memory systems read. Its detail names the place, never content.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict  # pydantic does not read the standard library's before Python 3.12

from semmem.lifecycle.erasure import ErasurePending, Receipt
from semmem.lifecycle.holds import Busy
from semmem.ports import errors

PROBLEM_TYPE = "application/problem+json"
TABLE = "x-problems"
"""The member of the description that holds the table, and of each operation that holds its codes."""
RETRY_AFTER = "retry-after"
"""The header that says in how many seconds the same call may be tried again."""
TYPE_PREFIX = f"/openapi.json#/{TABLE}/"
"""``type`` of a problem before its code: a place that whoever was refused can read, whatever host this runs on."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``title``: the same sentence whenever it is met; what is special to one call is in its ``detail``.
    ``retry_after_s``: when the same call may be tried again, said in ``Retry-After`` with every answer that has the
    code; 0: there is no use in that, or nobody knows."""

    status: int
    title: str
    retry_after_s: int = 0


PROBLEMS: Mapping[str, Problem] = {
    "INVALID_REQUEST": Problem(400, "The request cannot be taken as it is"),
    "INVALID_LIMIT": Problem(400, "The limit is no positive number"),
    "INVALID_TYPE": Problem(400, "There is no such type of memory"),
    "INVALID_USER_ID": Problem(400, "The user's name is too long or is no text"),
    "INVALID_ID": Problem(400, "No memory has such an id"),
    "INVALID_CURSOR": Problem(400, "The cursor was not made here"),
    "INVALID_IDEMPOTENCY_KEY": Problem(400, "The Idempotency-Key is none"),
    "UNAUTHENTICATED": Problem(401, "Nobody is known by this token or header"),
    "MISSING_USER_ID": Problem(401, "The call must name a user"),
    "FORBIDDEN": Problem(403, "The caller's role does not allow this"),
    "ORIGIN_NOT_ALLOWED": Problem(403, "Pages of this origin may not call"),
    "NOT_FOUND": Problem(404, "There is no such thing, or it is somebody else's"),
    "METHOD_NOT_ALLOWED": Problem(405, "The route does not have this method"),
    "REQUEST_TIMEOUT": Problem(408, "The body did not come in time"),
    "BUSY": Problem(409, "Somebody else is changing the same", retry_after_s=2),
    "BACKUP_RUNNING": Problem(409, "A backup is being taken"),
    "CONFIG_REFUSED": Problem(409, "The configuration cannot be taken up"),
    "IDEMPOTENCY_ANSWER_GONE": Problem(409, "The call with this Idempotency-Key was done; its answer is not kept"),
    "IDEMPOTENCY_IN_PROGRESS": Problem(409, "The first call with this Idempotency-Key is under way", retry_after_s=2),
    "KEY_IN_USE": Problem(409, "Another memory of the user has this key"),
    "NO_MODEL": Problem(409, "No language model is configured for this"),
    "NOTHING_TO_UNDO": Problem(409, "No standing memory ended or changed with this one, or it was changed since"),
    "NOT_QUARANTINED": Problem(409, "The memory is not quarantined"),
    "TOO_MANY_SWITCHES": Problem(409, "There are as many switches as there may be"),
    "BODY_TOO_LARGE": Problem(413, "The body is larger than it may be"),
    "HOST_NOT_ALLOWED": Problem(421, "This host name is not served here"),
    "IDEMPOTENCY_KEY_REUSED": Problem(422, "This Idempotency-Key was used for another request"),
    "SCREENED": Problem(422, "The write screen does not let this be stored"),
    "RATE_LIMITED": Problem(429, "Too many calls", retry_after_s=1),
    "INTERNAL": Problem(500, "Something failed that nobody expected"),
    "ERASURE_PENDING": Problem(503, "Hidden at once; not everything is erased yet, and it will be", retry_after_s=5),
    "IDEMPOTENCY_NOT_AVAILABLE": Problem(503, "Calls under a key cannot be looked up now", retry_after_s=2),
    "IDENTITY_NOT_AVAILABLE": Problem(503, "Who calls cannot be found out now", retry_after_s=2),
    "MEMORY_NOT_AVAILABLE": Problem(503, "A part that this needs does not answer now", retry_after_s=2),
    "STORE_FULL": Problem(507, "The store has no room for a write"),
}

EVERY_CALL = (
    "INVALID_REQUEST",
    "UNAUTHENTICATED",
    "ORIGIN_NOT_ALLOWED",
    "REQUEST_TIMEOUT",
    "BODY_TOO_LARGE",
    "HOST_NOT_ALLOWED",
    "RATE_LIMITED",
    "INTERNAL",
    "IDENTITY_NOT_AVAILABLE",
)
"""What the door in front of all routes may answer. A route names the others that it may: ``refuses``."""
OF_KEY = (
    "IDEMPOTENCY_ANSWER_GONE",
    "IDEMPOTENCY_IN_PROGRESS",
    "IDEMPOTENCY_KEY_REUSED",
    "IDEMPOTENCY_NOT_AVAILABLE",
    "INVALID_IDEMPOTENCY_KEY",
)
"""What the door may answer to a call that changes something and carries an Idempotency-Key."""
OF_ROLE = ("FORBIDDEN", "MEMORY_NOT_AVAILABLE")
"""Of a route that asks for an act of the caller's role, and then a store or a journal."""
OF_USER = (*OF_ROLE, "MISSING_USER_ID", "NOT_FOUND")
"""Of a route about one user's memories."""
OF_WRITE = (*OF_USER, "BUSY", "STORE_FULL")
"""Of a route that changes them."""
OF_ERASURE = (*OF_USER, "ERASURE_PENDING", "STORE_FULL")


class Refusal(TypedDict):
    """The shape of other systems."""

    code: str
    message: str


class ProblemShown(TypedDict):
    """A refusal: a problem as of RFC 9457, whose ``detail`` names the place and never what was sent. ``error`` says
    ``code`` and ``detail`` again, in the shape that clients of other memory systems read."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    error: Refusal


class ErasurePendingShown(ProblemShown):
    """What is not shown any more, and not erased yet. ``outlives_restart``: the journal knows of it."""

    success: Literal[False]
    pending: Literal[True]
    outlives_restart: bool
    receipt: Receipt


SHAPES: Mapping[str, type] = {"ERASURE_PENDING": ErasurePendingShown}
"""Of those that say more than a problem."""


class Denied(Exception):
    """A refusal: a code of the table and a sentence, with headers that belong to it."""

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return PROBLEMS[self.code].status


def problem(code: str, detail: str) -> ProblemShown:
    """Raises KeyError for a code that the table has not."""
    known = PROBLEMS[code]
    return {
        "type": TYPE_PREFIX + code,
        "title": known.title,
        "status": known.status,
        "detail": detail,
        "code": code,
        "error": {"code": code, "message": detail},
    }


def by_status(codes: Sequence[str]) -> dict[int, list[str]]:
    """Codes under their statuses, both in order."""
    found: dict[int, list[str]] = {}
    for code in sorted(set(codes), key=lambda each: (PROBLEMS[each].status, each)):
        found.setdefault(PROBLEMS[code].status, []).append(code)
    return found


# --- answers ---------------------------------------------------------------------------------------------------------

PLACES_MAX = 5
"""Wrong fields named in one answer; a body may have as many as it has bytes."""
PLACE_CHARS_MAX = 80
MESSAGE_CHARS_MAX = 600

PENDING_MESSAGE = "not everything is erased yet; nothing of it is shown or learnt any more, and it will be finished"

TROUBLES: Sequence[tuple[type[errors.SemmemError], str]] = (
    (errors.StoreTimeout, "the store did not answer in time"),
    (errors.StoreDamaged, "a file of the store cannot be read"),
    (errors.StoreUnavailable, "the store cannot be reached"),
    (errors.StoreError, "the store failed"),
    (errors.JournalFull, "the journal cannot write to its disk"),
    (errors.JournalUnavailable, "the journal's server cannot be reached"),
    (errors.JournalError, "the journal failed"),
    (errors.EmbedderBusy, "the embedder has too much to do"),
    (errors.EmbedderError, "the embedder made no vector"),
    (errors.ModelError, "the language model failed"),
    (errors.WorkError, "the text was not read to its end"),
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
    for kind, answer in ANSWERS.items():
        api.add_exception_handler(kind, _answering(answer))

    @api.exception_handler(HTTPException)
    async def refused(request: Request, refusal: HTTPException) -> Response:
        """What the framework itself refuses: no such route or method, a body that cannot be read."""
        code = CODES.get(refusal.status_code, "INVALID_REQUEST")
        is_method = refusal.status_code == 405
        headers = {"allow": ", ".join(methods_at(request.url.path))} if is_method else refusal.headers
        return error(code, str(refusal.detail), headers)


def _answering(answer: Callable[[Any], Response]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(_request: Request, failure: Exception) -> Response:
        return answer(failure)

    return handle


def _invalid(failure: RequestValidationError) -> Response:
    found = failure.errors()
    places = [f"{'.'.join(map(str, one['loc']))[:PLACE_CHARS_MAX]}: {one['msg']}" for one in found[:PLACES_MAX]]
    more = [f"{len(found) - PLACES_MAX} more"] if len(found) > PLACES_MAX else []
    return error(_code(found[0]["loc"]) if len(found) == 1 else "INVALID_REQUEST", "; ".join(places + more))


def _pending(unfinished: ErasurePending) -> Response:
    """What is erased already, and that the rest is hidden and will be: never success for what was not done."""
    told: ErasurePendingShown = {
        **problem("ERASURE_PENDING", PENDING_MESSAGE),
        "success": False,
        "pending": True,
        "outlives_restart": unfinished.remembered,
        "receipt": unfinished.receipt,
    }
    return ProblemAnswer(jsonable_encoder(told), status_code=told["status"], headers=headers_of(told["code"]))


def _unavailable(failure: errors.SemmemError) -> Response:
    """Which part failed, and how. The failure's own message may name an address or a file."""
    trouble = next((words for kind, words in TROUBLES if isinstance(failure, kind)), "a part failed")
    return error("MEMORY_NOT_AVAILABLE", f"{trouble} ({type(failure).__name__}): try again later")


ANSWERS: Mapping[type[Exception], Callable[[Any], Response]] = {
    Denied: denial,
    RequestValidationError: _invalid,
    errors.StoreRefused: lambda failure: error("INVALID_REQUEST", str(failure)),
    Busy: lambda _: error("BUSY", "this user's memories are being changed; try again in a few seconds"),
    ErasurePending: _pending,
    errors.StoreFull: lambda _: error("STORE_FULL", "the store cannot write to its disk; nothing was changed"),
    errors.SemmemError: _unavailable,
}
"""What each failure of a route is answered with, by the nearest kind of it that stands here."""


def _code(place: tuple[str | int, ...]) -> str:
    """Clients of other systems look for these."""
    at = [str(part) for part in place[:2]]
    return "INVALID_REQUEST" if at[0] == "body" else FIELD_CODES.get(at[-1], "INVALID_REQUEST")
