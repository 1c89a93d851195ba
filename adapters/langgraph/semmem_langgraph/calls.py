"""A call of semmem's API and its answer, as plain values, and which answers are errors.

An operation is a generator that yields calls and is sent their answers. So it is written once, and driven by a client
that blocks or by one that awaits.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from semmem_langgraph.errors import Refused, SemmemStoreError, Unavailable

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """``path`` begins with a slash. ``params`` and ``body`` of None are not sent."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """``body``: empty where it is no JSON object. ``retry_after_s``: 0 where nothing is said."""

    status: int
    body: Json
    retry_after_s: float = 0.0

    @property
    def code(self) -> str:
        """The stable code of a problem; empty where it is none."""
        return str(self.body.get("code", ""))


Steps = Generator[Call, Answer, T]

OFTEN = frozenset({"RATE_LIMITED", "BUSY", "IDEMPOTENCY_IN_PROGRESS"})
"""Codes of what is worth another try within seconds."""


def ask(call: Call, place: str) -> Steps[Json]:
    """The answer's body. Raises what ``failure`` says, with ``place``, for an answer that is no success."""
    answer = yield call
    if 200 <= answer.status < 300:
        return answer.body
    raise failure(answer, place)


def failure(answer: Answer, place: str) -> SemmemStoreError:
    """A refusal of the API as the error that it means. The API's detail names the place and never what was sent."""
    detail = str(answer.body.get("detail") or f"semmem answered {answer.status}")
    if answer.status in (400, 413, 422):
        return Refused(place, detail, answer.code)
    return Unavailable(place, detail, answer.code)
