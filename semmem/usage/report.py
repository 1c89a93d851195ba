"""What tokens cost, by the name of the model that answered; and what the statistics of use come to: by hour, day,
model, user and so on, and in twelve figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from semmem.ports.usage import DAY_S, Span, UsageRecords, UsageSum

MILLION = Decimal(1_000_000)
UNKNOWN = "unknown"
"""The provider of a model of which nothing is known."""
TOP = 10
"""Entries of a list of what is used most."""
TIMES = ("hour", "day")
_COUNTS = ("requests", "errors", "messages", "tool_calls", "tokens_in", "tokens_out", "estimated")
_SUMS = [field.name for field in fields(UsageSum)][1:]


@dataclass(frozen=True, slots=True)
class Price:
    """Of models whose name fits ``pattern`` (``*``: anything); in units of the currency for a million tokens."""

    pattern: str
    provider: str
    tokens_in: Decimal
    tokens_out: Decimal

    def of(self, used: UsageSum) -> Decimal:
        return (used.tokens_in * self.tokens_in + used.tokens_out * self.tokens_out) / MILLION


class Prices:
    """The first price whose pattern fits counts. ``compared_with``: the model whose price is used to say what was
    saved; empty for none."""

    def __init__(self, table: Iterable[Price] = (), *, compared_with: str = "", currency: str = "") -> None:
        self._table = tuple(table)
        self.compared_with = compared_with
        self.currency = currency
        self.reference = self.of(compared_with) if compared_with else None

    def of(self, model: str) -> Price | None:
        return next((price for price in self._table if fnmatchcase(model, price.pattern)), None)

    def provider(self, model: str) -> str:
        """As the price says; else what stands before a slash in the model's name."""
        price = self.of(model)
        if price is not None and price.provider:
            return price.provider
        before, slash, _ = model.partition("/")
        return before if slash and before else UNKNOWN

    def cost(self, sums: Iterable[UsageSum]) -> dict[str, Any]:
        """Of sums whose key ends with the model's name. ``cost``: of the requests whose model has a price; None where
        none has. ``unpriced``: how many have none."""
        told = [(self.of(str(used.key[-1])), used) for used in sums]
        spent = [price.of(used) for price, used in told if price is not None]
        unpriced = sum(used.requests for price, used in told if price is None)
        return {"cost": _money(spent), "unpriced": unpriced}

    def saved(self, sums: Iterable[UsageSum]) -> float | None:
        """What the priced ones would have cost more of the model compared with; None where that has no price, or none
        of them has."""
        if (reference := self.reference) is None:
            return None
        told = [(self.of(str(used.key[-1])), used) for used in sums]
        return _money([reference.of(used) - price.of(used) for price, used in told if price is not None])


@dataclass(frozen=True, slots=True)
class Days:
    """Both days included, in UTC; ``user``: a keyed digest, None for everybody."""

    first: date
    last: date
    user: str | None = None

    @property
    def span(self) -> Span:
        return Span(_seconds(self.first), _seconds(self.last) + DAY_S, self.user)


@dataclass(eq=False, repr=False)
class UsageReport:
    """Adds up what ``records`` keep. All methods raise JournalError."""

    records: UsageRecords
    prices: Prices

    async def groups(self, days: Days, by: str, *, limit: int) -> dict[str, Any]:
        """One entry for each value of ``by``: times in their order, else those with the most requests first. Of more
        than ``limit`` the latest, or those with the most; ``more`` says that there are others."""
        span = days.span
        found = await self.records.usage_sums(span, (by,), limit=limit + 1)
        kept = found[:limit]
        within = [used.key[0] for used in kept]
        models = await self.records.usage_sums(span, (by, "model"), within=within) if kept else []
        of_group = _by_first(models)
        entries = [
            {by: _told_key(by, used.key[0])} | _figures(used) | self.prices.cost(of_group[used.key[0]]) for used in kept
        ]
        if by in TIMES:
            entries.reverse()
        return {**_told_days(days), "by": by, "groups": entries, "more": len(found) > limit} | await self._total(span)

    async def summary(self, days: Days) -> dict[str, Any]:
        """The twelve figures, each as docs/usage.md defines it."""
        span, sums = days.span, self.records.usage_sums
        active = list(reversed(await sums(span, ("day",))))
        models, providers = await sums(span, ("model",)), await sums(span, ("provider", "model"))
        projects = [used for used in await sums(span, ("project",)) if used.key[0]]
        total = await self._total(span)
        busiest = max(active, key=lambda used: (used.requests, -int(used.key[0])), default=None)
        told_days = [{"day": _told_key("day", used.key[0]), **_activity(used)} for used in active]
        return {
            **_told_days(days),
            "started": told_days[0]["day"] if told_days else None,
            "days_active": len(active),
            "most_active_day": None
            if busiest is None
            else {"day": _told_key("day", busiest.key[0]), "requests": busiest.requests},
            "activity": told_days,
            "models": [{"model": used.key[0], **_figures(used), **self.prices.cost([used])} for used in models[:TOP]],
            "providers": _providers(providers, self.prices),
            "sessions": await self.records.usage_sessions(span),
            "messages": sum(used.messages for used in active),
            "tokens": sum(used.tokens_in + used.tokens_out for used in active),
            "projects": len(projects),
            "longest_streak": longest_streak([int(used.key[0]) // DAY_S for used in active]),
            "cost_saved": self.prices.saved(models),
            "top_projects": [{"project": used.key[0], **_figures(used)} for used in projects[:TOP]],
            "compared_with": self.prices.compared_with or None,
        } | total

    async def _total(self, span: Span) -> dict[str, Any]:
        whole = await self.records.usage_sums(span, ())
        models = await self.records.usage_sums(span, ("model",))
        figures = _figures(whole[0] if whole else UsageSum((), *[0] * len(_SUMS)))
        return {"total": figures | self.prices.cost(models), "currency": self.prices.currency, "time_zone": "UTC"}


def longest_streak(days: Sequence[int]) -> int:
    """The most days one after another, of numbers of days in rising order."""
    longest = now = 0
    before: int | None = None
    for day in days:
        now = now + 1 if before is not None and day == before + 1 else 1
        longest, before = max(longest, now), day
    return longest


def _providers(sums: Iterable[UsageSum], prices: Prices) -> list[dict[str, Any]]:
    told = [
        {"provider": str(provider), **_figures(_added(used)), **prices.cost(used)}
        for provider, used in _by_first(sums).items()
    ]
    return sorted(told, key=lambda each: (-each["requests"], each["provider"]))[:TOP]


def _by_first(sums: Iterable[UsageSum]) -> dict[str | int, list[UsageSum]]:
    """By what their keys begin with."""
    found: dict[str | int, list[UsageSum]] = {}
    for used in sums:
        found.setdefault(used.key[0], []).append(used)
    return found


def _added(sums: Sequence[UsageSum]) -> UsageSum:
    return UsageSum((), *(sum(getattr(used, name) for used in sums) for name in _SUMS))


def _figures(used: UsageSum) -> dict[str, Any]:
    """As ``management.usage_api.FiguresShown`` says."""
    return {
        **{name: getattr(used, name) for name in _COUNTS},
        "mean_duration_ms": round(used.duration_ms / used.requests, 1) if used.requests else None,
        "cache_reported": used.cache_reported,
        **_cached(used),
        "cached_share": round(used.cached_tokens / used.prompt_tokens, 4) if used.prompt_tokens else None,
    }


def _cached(used: UsageSum) -> dict[str, int]:
    return {"prompt_tokens": used.prompt_tokens, "cached_tokens": used.cached_tokens}


def _activity(used: UsageSum) -> dict[str, int]:
    return {"requests": used.requests, "tokens": used.tokens_in + used.tokens_out, **_cached(used)}


def _money(values: Sequence[Decimal]) -> float | None:
    """What they come to; None where there are none."""
    return float(round(sum(values, Decimal(0)), 6)) if values else None


def _told_key(by: str, key: str | int) -> str | bool:
    if by == "streamed":
        return bool(key)
    if by not in TIMES:
        return str(key)
    moment = datetime.fromtimestamp(int(key), UTC)
    return moment.date().isoformat() if by == "day" else moment.isoformat().replace("+00:00", "Z")


def _told_days(days: Days) -> dict[str, str]:
    return {"from": days.first.isoformat(), "to": days.last.isoformat()}


def _seconds(day: date) -> int:
    return int((day - date(1970, 1, 1)) / timedelta(days=1)) * DAY_S
