"""The ``usage:`` section: whether it is recorded how much is asked of which models, and what that costs."""

from __future__ import annotations

from pydantic import Field

from semmem.config.values import Days, Line, ListOf, NonEmptyLine, Seconds, Section


class PriceSection(Section):
    """``usage.prices.N``: what tokens of some models cost, in units of usage.currency per million."""

    model: NonEmptyLine = Field(description="name of the models, * for anything; the first row that fits counts")
    provider: Line = Field(default="", description="who serves them; empty: what stands before a slash in the name")
    input_per_million: float = Field(ge=0, le=1_000_000, description="of tokens that are sent")
    output_per_million: float = Field(ge=0, le=1_000_000, description="of tokens that are answered")


class UsageSection(Section):
    """``usage``: statistics of answered requests, in figures and with digests in the place of users; off unless
    enabled."""

    enabled: bool = Field(default=False, description="record endpoint, models, tokens, duration and outcome of each")
    flush_rows: int = Field(default=100, ge=1, le=10_000, description="requests that are written together")
    flush_s: Seconds = Field(default=3600.0, description="longest wait before they are written; a crash loses them")
    queue_max: int = Field(
        default=10_000, ge=1, le=1_000_000, description="requests that wait; more are dropped and counted"
    )
    names_max: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="different models, and different projects, told apart on one day; others are (other)",
    )
    requests_days: Days = Field(default=30, description="how long single requests are kept")
    hours_days: Days = Field(default=90, description="how long sums by hour are kept")
    days_days: Days = Field(default=1100, description="how long sums by day are kept")
    prices: ListOf[PriceSection] = Field(default=(), max_length=1000, description="what tokens cost, by model")
    currency: Line = Field(default="USD", description="of the prices: a label")
    compared_with: Line = Field(
        default="", description="model whose price says what the others saved; empty: nothing is compared"
    )
