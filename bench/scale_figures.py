"""Searches among more and more memories: from what was seen to figures, keys and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.figures import Json, grid, over_rounds, paired, percentile, spread
from semmem.request.outcome import Outcome

SMALLEST, LARGEST = (1_000, 10), (100_000, 10_000)
ALIKE = (100_000, 1_000)
"""Memories and users. The target compares the first two, where a user of the larger has a tenth of the memories; the
third has as many for each user as the smallest."""
KEYS = ("scale_hot_ratio", "scale_cold_ratio")
FLOORS = {"hot": "numpy", "cold": "bare_query", "dense": "bare_search"}
PATHS = tuple(path for pair in FLOORS.items() for path in pair)
MEANT = {"hot": Outcome.INJECTED, "cold": Outcome.INJECTED, "dense": Outcome.COLD_DENSE}
"""Outcome words of semmem's own paths."""


@dataclass(slots=True)
class Tally:
    """Of one size and path, by round. ``cpu_us``: of this process, for each search; ``words``: outcomes."""

    seconds: list[list[float]] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)

    @property
    def p50s(self) -> list[float]:
        return [percentile(samples, 0.5) for samples in self.seconds]


def figures(tallies: Mapping[tuple[str, str], Tally], *, is_server: bool) -> Json:
    """``sizes``: by size and path. ``ratios``: over the rounds, each of the medians of one round. ``keys``: those of
    the targets, where these sizes and a server were measured; ``not_measured``: why not, by key."""
    by_size: Json = {}
    for (size, path), tally in sorted(tallies.items(), key=lambda item: _by_size(item[0][0])):
        by_size.setdefault(size, {})[path] = _row(path, tally)
    ratios: Json = {}
    for name, large in (("scale", LARGEST), ("alike", ALIKE)):
        for path in ("hot", "cold", "dense"):
            of, to = tallies.get((size_name(*large), path)), tallies.get((size_name(*SMALLEST), path))
            if of is not None and to is not None:
                ratios[f"{name}_{path}_ratio"] = _paired(of.p50s, to.p50s)
                ratios[f"{name}_{path}_cpu_ratio"] = _paired(of.cpu_us, to.cpu_us)
    for size in by_size:
        for path, floor in FLOORS.items():
            ratios[f"{size}_{path}_to_{floor}"] = _paired(tallies[size, path].p50s, tallies[size, floor].p50s)
    reasons = {name: "it is of other sizes" for name in KEYS if name not in ratios}
    if not is_server:
        reasons["scale_cold_ratio"] = "it is of a Milvus server, and there is none: make .venv-milvus/.ready"
    keys = {name: ratios[name] for name in KEYS if name not in reasons}
    return {"sizes": by_size, "ratios": ratios, "keys": keys, "not_measured": reasons}


def _row(path: str, tally: Tally) -> Json:
    row: Json = {"latency_ms": spread(tally.seconds), "cpu_us": over_rounds(tally.cpu_us)}
    if path in MEANT:
        row |= {"as_meant": tally.words[MEANT[path]] / tally.words.total(), "outcomes": dict(tally.words)}
    return row


def _paired(of: Sequence[float], to: Sequence[float]) -> Json:
    return paired(len(of), lambda number: of[number] / to[number])


def table(found: Json) -> str:
    """For people."""
    rows = [
        [
            *size.split("x"),
            *(f"{row[path]['latency_ms']['p50']:.2f}" if path in row else "" for path in PATHS),
            *(f"{row[path]['cpu_us']['value']:.0f}" for path in FLOORS),
        ]
        for size, row in found["sizes"].items()
    ]
    heads = [path.replace("_", " ") for path in PATHS] + [f"{path} CPU us" for path in FLOORS]
    ratios = [f"{name} {one['value']:.2f}" for name, one in found["ratios"].items() if "_to_" not in name]
    return "\n".join(
        [
            f"\nSearches among more and more memories, {found['milvus']}, p50 in ms",
            *grid(",".join(["memories", "users", *heads]), rows),
            *([", ".join(ratios)] if ratios else []),
            *(f"{key} not measured: {why}" for key, why in found["not_measured"].items()),
        ]
    )


def _by_size(name: str) -> list[int]:
    return [int(number) for number in name.split("x")]


def size_name(memories: int, users: int) -> str:
    return f"{memories}x{users}"
