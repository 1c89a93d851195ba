"""mem0 beside semmem: from what was seen to figures, keys and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.figures import Json, grid, paired, percentile, spread

LIMIT = 5
KEYS = ("mem0_search_ratio", "mem0_total_ratio")
OURS, OURS_COLD, ON_MILVUS, ON_QDRANT, FLOOR = "semmem", "semmem_cold", "mem0_milvus", "mem0_qdrant", "numpy"


@dataclass(frozen=True, slots=True)
class Found:
    """One search: the numbers of what it found, best first; seconds in all, those of embedding, those of processors."""

    numbers: list[int]
    seconds: float
    embed_s: float
    cpu_s: float


@dataclass(slots=True)
class Tally:
    """Of one system: what was found, by round, and what was found where nothing is."""

    rounds: list[list[Found]] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    strangers: list[int] = field(default_factory=list)
    general: list[int] = field(default_factory=list)

    @property
    def found(self) -> list[Found]:
        return [found for round in self.rounds for found in round]


def figures(tallies: Mapping[str, Tally]) -> Json:
    """By system, and mem0's medians divided by semmem's, round by round."""
    ratios: Json = {}
    for name in (ON_MILVUS, ON_QDRANT):
        if name in tallies:
            mem0, ours, cold = tallies[name], tallies[OURS], tallies[OURS_COLD]
            ratios[f"{name}_search_ratio"] = _paired(mem0, ours, _search_s)
            ratios[f"{name}_total_ratio"] = _paired(mem0, ours, _total_s)
            ratios[f"{name}_search_ratio_cold"] = _paired(mem0, cold, _search_s)
            ratios[f"{name}_total_cpu_ratio"] = _paired(mem0, ours, lambda found: found.cpu_s)
    keys, reasons = {}, {}
    for key, of in zip(KEYS, ("search", "total"), strict=True):
        if ON_MILVUS in tallies:
            keys[key] = ratios[f"{ON_MILVUS}_{of}_ratio"]
        else:
            reasons[key] = "it is of mem0 on a Milvus server, and there is none: make .venv-milvus/.ready"
    return {
        "systems": {name: _row(tally) for name, tally in tallies.items()},
        "ratios": ratios,
        "keys": keys,
        "not_measured": reasons,
    }


def _row(tally: Tally) -> Json:
    """``returned``: memories for each question that has an answer, in the mean; ``noise_``: the share of those without
    one that were given something, None where that was not asked."""
    found = tally.found
    return {
        "total_ms": spread([[_total_s(one) for one in some] for some in tally.rounds]),
        "search_ms": spread([[_search_s(one) for one in some] for some in tally.rounds]),
        "embed_ms": spread([[one.embed_s for one in some] for some in tally.rounds]),
        "cpu_us": sum(one.cpu_s for one in found) / len(found) * 1e6,
        f"recall_at_{LIMIT}": sum(tally.recalls) / len(tally.recalls),
        "returned": sum(len(one.numbers) for one in found) / len(found),
        "noise_strangers": _share(tally.strangers),
        "noise_general": _share(tally.general),
    }


def _share(counts: Sequence[int]) -> float | None:
    return sum(count > 0 for count in counts) / len(counts) if counts else None


def _paired(mem0: Tally, ours: Tally, seconds: Callable[[Found], float]) -> Json:
    def median(tally: Tally, number: int) -> float:
        return percentile([seconds(found) for found in tally.rounds[number]], 0.5)

    return paired(len(ours.rounds), lambda number: median(mem0, number) / median(ours, number))


def _total_s(found: Found) -> float:
    return found.seconds


def _search_s(found: Found) -> float:
    """Without embedding."""
    return found.seconds - found.embed_s


def table(found: Json) -> str:
    """For people."""
    rows = [
        [
            name,
            *(f"{row[part]['p50']:.2f}" for part in ("total_ms", "embed_ms", "search_ms")),
            f"{row['search_ms']['p99']:.2f}",
            f"{row['cpu_us']:.0f}",
            f"{row['recall_at_5']:.1%}",
            f"{row['returned']:.1f}",
            *("" if row[noise] is None else f"{row[noise]:.0%}" for noise in ("noise_strangers", "noise_general")),
        ]
        for name, row in found["systems"].items()
    ]
    head = "system,p50 ms,embedding,without,p99 without,CPU us,recall@5,returned,noise: strangers,general"
    reasons = [f"{key} not measured: {why}" for key, why in found["not_measured"].items()]
    return "\n".join(["\nmem0 beside semmem", *(grid(head, rows) if rows else []), *reasons])
