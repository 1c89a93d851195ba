"""What tokens cost, by the name of the model that answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from semmem.ports.usage import UsageSum

MILLION = Decimal(1_000_000)
UNKNOWN = "unknown"
"""The provider of a model of which nothing is known."""


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


@dataclass(frozen=True, slots=True)
class Cost:
    """``spent``: of the requests whose model has a price; None where none has. ``unpriced``: how many have none.
    ``saved``: what the priced ones would have cost more of the model compared with; None where that has no price."""

    spent: Decimal | None
    unpriced: int
    saved: Decimal | None


def cost(prices: Prices, sums: Iterable[UsageSum]) -> Cost:
    """Of sums whose key ends with the model's name."""
    spent, saved, unpriced, priced = Decimal(0), Decimal(0), 0, False
    for used in sums:
        price = prices.of(str(used.key[-1]))
        if price is None:
            unpriced += used.requests
            continue
        priced = True
        spent += price.of(used)
        if prices.reference is not None:
            saved += prices.reference.of(used) - price.of(used)
    return Cost(spent if priced else None, unpriced, saved if priced and prices.reference is not None else None)
