"""What the statistics of use look like in answers; docs/usage.md defines each figure."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

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
