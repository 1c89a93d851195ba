"""Every refusal of the API: its stable code, the status it comes with, and what it means.

The one table of codes. Answers are made from it, the description of the API lists it, and docs/operations.md says when
each of them is met. A refusal is a problem as of RFC 9457 with two members more: ``code``, and ``error`` with code and
message, the shape that clients of other memory systems read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict  # pydantic does not read the standard library's before Python 3.12

from semmem.lifecycle.erasure import Receipt

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


def refuses(*codes: str) -> dict[str, Any]:
    """What a route's decorator is given: the codes it may answer with, beside those of EVERY_CALL and those of its
    parameters. Raises KeyError for a code that the table has not."""
    return {"openapi_extra": {TABLE: sorted({code for code in codes if PROBLEMS[code]})}}


def by_status(codes: Sequence[str]) -> dict[int, list[str]]:
    """Codes under their statuses, both in order."""
    found: dict[int, list[str]] = {}
    for code in sorted(set(codes), key=lambda each: (PROBLEMS[each].status, each)):
        found.setdefault(PROBLEMS[code].status, []).append(code)
    return found
