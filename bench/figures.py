"""Samples -> figures: percentiles, spreads over rounds, ratios of one round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

Json = dict[str, Any]


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the least sample that at least ``share`` (0 to 1) of all do not exceed."""
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def spread(rounds: Sequence[Sequence[float]]) -> Json:
    """Of seconds, in milliseconds: p50 and p99 of all samples, the p50 of each round, and the quartiles of these."""
    by_round = [percentile(samples, 0.5) * 1000 for samples in rounds if samples]
    everything = [sample * 1000 for samples in rounds for sample in samples]
    return {
        "p50": percentile(everything, 0.5),
        "p99": percentile(everything, 0.99),
        "p50_by_round": by_round,
        "p50_quartiles": quartiles(by_round),
        "samples": len(everything),
    }


def quartiles(values: Sequence[float]) -> list[float]:
    return [percentile(values, 0.25), percentile(values, 0.75)]


def over_rounds(values: Sequence[float]) -> Json:
    """A figure that each round gave: its median, which ignores drift, the quartiles, and all of them."""
    return {"value": median(values), "quartiles": quartiles(values), "by_round": list(values)}


def once(value: float) -> Json:
    """A figure that the whole run gave."""
    return {"value": value, "quartiles": None, "by_round": None}


def paired(rounds: int, ratio: Callable[[int], float]) -> Json:
    """A ratio whose both sides are of the same round."""
    return over_rounds([ratio(number) for number in range(rounds)])


def added_ratio(mine: float, none: float, floor: float, *more: float) -> float:
    """What one p50 adds to that of no sidecar, divided by what the floor adds and ``more`` besides."""
    return (mine - none) / max(floor - none + sum(more), 1e-9)


def lag_percentile(lags: Mapping[float, float], share: float) -> float | None:
    """Of a histogram's cumulative counts by upper bound; within a bucket all lags lie evenly. None without any."""
    bounds = sorted(lags)
    wanted = share * lags[bounds[-1]] if bounds else 0.0
    if not wanted:
        return None
    below_bound, below = 0.0, 0.0
    for bound in bounds:
        if lags[bound] >= wanted:
            if math.isinf(bound):
                return below_bound
            return below_bound + (bound - below_bound) * (wanted - below) / (lags[bound] - below)
        below_bound, below = bound, lags[bound]
    return None


def grid(head: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table; ``head`` with commas. The first column and one named ``what`` are text, the others numbers."""
    names = head.split(",")
    cells = [names, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 or names[index] == "what" else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
