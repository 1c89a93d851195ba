"""Statistics of use: by hour, day, model and so on, and in twelve figures (docs/usage.md defines each). An operator
sees everybody's, with digests in the place of users; whoever is bound to a user sees that user's."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator
from typing_extensions import TypedDict

from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import UserId, one_or_everybody, refuses
from semmem.usage.report import Days, UsageReport

DaysShown = TypedDict("DaysShown", {"from": str, "to": str})
"""Both days included, in UTC."""


class FiguresShown(TypedDict):
    """``estimated``: requests of which a token count is not the provider's. ``cache_reported``: requests of which the
    provider reported how much of the prompt was cached; the last three members are of these alone, and ``cached_share``
    is null where there is none."""

    requests: int
    errors: int
    messages: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    estimated: int
    mean_duration_ms: float | None
    cache_reported: int
    prompt_tokens: int
    cached_tokens: int
    cached_share: float | None


class CostShown(FiguresShown):
    """``cost``: null where no model has a price. ``unpriced``: requests of models without one."""

    cost: float | None
    unpriced: int


class GroupOfUse(CostShown):
    """With the one member that the groups were asked by."""

    hour: NotRequired[str]
    day: NotRequired[str]
    model: NotRequired[str]
    model_asked: NotRequired[str]
    provider: NotRequired[str]
    endpoint: NotRequired[str]
    project: NotRequired[str]
    user: NotRequired[str]
    streamed: NotRequired[bool]


class UsageShown(DaysShown):
    """``more``: there are other groups. ``recording``: whether anything is added."""

    by: str
    groups: list[GroupOfUse]
    more: bool
    total: CostShown
    currency: str
    time_zone: str
    recording: bool


class BusiestDay(TypedDict):
    day: str
    requests: int


class ActiveDay(BusiestDay):
    """``prompt_tokens`` and ``cached_tokens`` are of the requests whose provider reported both."""

    tokens: int
    prompt_tokens: int
    cached_tokens: int


class ModelOfUse(CostShown):
    model: str


class ProviderOfUse(CostShown):
    provider: str


class ProjectOfUse(FiguresShown):
    project: str


class UsageSummaryShown(DaysShown):
    """Twelve figures, and what they are made of."""

    started: str | None
    days_active: int
    most_active_day: BusiestDay | None
    activity: list[ActiveDay]
    models: list[ModelOfUse]
    providers: list[ProviderOfUse]
    sessions: int
    messages: int
    tokens: int
    projects: int
    longest_streak: int
    cost_saved: float | None
    top_projects: list[ProjectOfUse]
    compared_with: str | None
    total: CostShown
    currency: str
    time_zone: str
    recording: bool


DAYS_SHOWN = 30
GROUPS_MAX = 1000
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIRST_DAY = date(1970, 1, 1)


def _day(given: object) -> object:
    """As it is written, so that no number is taken for seconds."""
    if isinstance(given, str) and not _DAY.fullmatch(given):
        raise ValueError("is no day like 2026-11-23")
    return given


Day = Annotated[date, BeforeValidator(_day)]
From = Annotated[Day | None, Query(alias="from", ge=FIRST_DAY, description="first day, in UTC")]
To = Annotated[Day | None, Query(ge=FIRST_DAY, le=date(9000, 1, 1), description="last day, in UTC")]
By = Literal["hour", "day", "model", "model_asked", "provider", "endpoint", "project", "user", "streamed"]
Limit = Annotated[int, Query(ge=1, le=GROUPS_MAX)]


@dataclass(frozen=True, slots=True)
class Usage:
    """``name`` gives the digest of a user; ``settle`` writes what waits in this process. ``recording``: whether
    anything is added."""

    report: UsageReport
    name: Callable[[str], Awaitable[str]]
    settle: Callable[[], Awaitable[object]]
    clock: Callable[[], float]
    recording: bool

    async def get_usage(
        self,
        request: Request,
        user_id: UserId = None,
        by: By = "day",
        first: From = None,
        to: To = None,
        limit: Limit = 100,
    ) -> dict[str, Any]:
        """What requests of the last 30 days, or of other days, come to."""
        days = await self._asked(request, user_id, first, to)
        return await self.report.groups(days, by, limit=limit) | {"recording": self.recording}

    async def get_summary(
        self, request: Request, user_id: UserId = None, first: From = None, to: To = None
    ) -> dict[str, Any]:
        """Twelve figures of all days that are kept, or of some."""
        days = await self._asked(request, user_id, first or FIRST_DAY, to)
        return await self.report.summary(days) | {"recording": self.recording}

    async def _asked(self, request: Request, user_id: str | None, first: date | None, last: date | None) -> Days:
        """Raises Denied."""
        whose = one_or_everybody(request, user_id)
        user = None if whose is None else await self.name(whose)
        last = last or datetime.fromtimestamp(self.clock(), UTC).date()
        first = first or max(FIRST_DAY, last - timedelta(days=DAYS_SHOWN - 1))
        if first > last:
            raise Denied("INVALID_REQUEST", "query.from: is later than to")
        await self.settle()
        return Days(first, last, user)


def usage_routes(usage: Usage) -> APIRouter:
    routes = APIRouter()
    routes.get("/v1/usage", response_model=UsageShown, **refuses(*OF_USER))(usage.get_usage)
    routes.get("/v1/usage/summary", response_model=UsageSummaryShown, **refuses(*OF_USER))(usage.get_summary)
    return routes
