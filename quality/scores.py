"""Recall, hits and shares: pure arithmetic. Every result is in percent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


def recall_at(found: Sequence[Collection[object]], gold: Collection[object], k: int) -> float:
    """The share of ``gold`` that the first ``k`` of ``found`` hold; each result may hold several ids.

    Raises ValueError without gold: a question that nothing answers has no recall.
    """
    if not gold:
        raise ValueError("recall needs at least one gold id")
    seen = {name for ids in found[:k] for name in ids}
    return 100.0 * len(seen & set(gold)) / len(set(gold))


def hit_at(found: Sequence[Collection[object]], gold: Collection[object], k: int) -> float:
    """100 when any of the first ``k`` results holds a gold id, else 0."""
    return 100.0 * any(set(ids) & set(gold) for ids in found[:k])


def mean(values: Iterable[float]) -> float | None:
    """The plain mean, None of nothing."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``total``."""

    count: int
    total: int

    @classmethod
    def of(cls, flags: Iterable[bool]) -> Share:
        marks = list(flags)
        return cls(sum(marks), len(marks))

    @property
    def percent(self) -> float | None:
        return 100.0 * self.count / self.total if self.total else None

    def __add__(self, other: Share) -> Share:
        return Share(self.count + other.count, self.total + other.total)

    def json(self) -> Json:
        return {"percent": self.percent, "count": self.count, "total": self.total}


def pooled(shares: Iterable[Share]) -> float | None:
    """The share over everything: larger sets weigh more."""
    return sum(shares, Share(0, 0)).percent


def highest(shares: Mapping[str, Share]) -> float | None:
    return max((share.percent for share in shares.values() if share.percent is not None), default=None)


def lowest(shares: Mapping[str, Share]) -> float | None:
    return min((share.percent for share in shares.values() if share.percent is not None), default=None)


def each(shares: Mapping[str, Share]) -> Json:
    return {name: share.json() for name, share in sorted(shares.items())}
