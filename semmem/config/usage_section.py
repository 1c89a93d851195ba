"""The ``usage:`` section: whether it is recorded how much is asked of which models, and what that costs."""

from __future__ import annotations

from typing import ClassVar

from semmem.config.values import Days, Line, ListOf, NonEmptyLine, Seconds, Section, key


class PriceSection(Section):
    """``usage.prices.N``: what tokens of some models cost, in units of usage.currency per million."""

    model: NonEmptyLine = key(..., "name of the models, * for anything; the first row that fits counts")
    provider: Line = key("", "who serves them; empty: what stands before a slash in the name")
    input_per_million: float = key(..., "of tokens that are sent", ge=0, le=1_000_000)
    output_per_million: float = key(..., "of tokens that are answered", ge=0, le=1_000_000)


class UsageSection(Section):
    """``usage``: statistics of answered requests, in figures and with digests in the place of users; off unless
    enabled."""

    restart: ClassVar = {
        "enabled flush_rows flush_s queue_max names_max requests_days hours_days days_days": "what waits to be written"
        " is kept by it"
    }

    enabled: bool = key(False, "record endpoint, models, tokens, duration and outcome of each")
    flush_rows: int = key(100, "requests that are written together", ge=1, le=10_000)
    flush_s: Seconds = key(3600.0, "longest wait before they are written; a crash loses them")
    queue_max: int = key(10_000, "requests that wait; more are dropped and counted", ge=1, le=1_000_000)
    names_max: int = key(
        1000, "different models, and different projects, told apart on one day; others are (other)", ge=1, le=100_000
    )
    requests_days: Days = key(30, "how long single requests are kept")
    hours_days: Days = key(90, "how long sums by hour are kept")
    days_days: Days = key(1100, "how long sums by day are kept")
    prices: ListOf[PriceSection] = key((), "what tokens cost, by model", max_length=1000)
    currency: Line = key("USD", "of the prices: a label")
    compared_with: Line = key("", "model whose price says what the others saved; empty: nothing is compared")
