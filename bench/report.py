"""Samples -> figures -> ratios -> a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from bench.cases import CASES, Case
from bench.plan import Plan
from bench.run import Result, Series, Tally

Json = dict[str, Any]


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the least sample that at least ``share`` (0 to 1) of all do not exceed."""
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def figures(result: Result, plan: Plan) -> Json:
    """Every case at every concurrency: raw figures, and ratios to its floors at the same concurrency."""
    by_name = {case.name: case for case in CASES}
    found: Json = {}
    for (name, concurrency), tally in result.tallies.items():
        found.setdefault(name, {})[f"c{concurrency}"] = _case(by_name[name], tally, plan)
    for name, by_concurrency in found.items():
        for level, mine in by_concurrency.items():
            floors = {floor: found[floor][level] for floor in by_name[name].floors}
            mine["ratios"] = {floor: ratios(mine, its) for floor, its in floors.items()}
    return found


def _case(case: Case, tally: Tally, plan: Plan) -> Json:
    count = sum(tally.statuses.values())
    row: Json = {
        "requests": count,
        "sidecar": case.sidecar,
        "as_meant": sum(n for word, n in tally.outcomes.items() if word == case.outcome) / count,
        "outcomes": dict(tally.outcomes),
        "statuses": {str(status): n for status, n in tally.statuses.items()},
        "prompt_bytes": int(median(tally.prompt_bytes)),
        "cpu_us_per_request": {name: seconds / count * 1e6 for name, seconds in tally.cpu_s.items()},
    }
    if case.stream:
        tokens = count * plan.tokens
        row["first_token_ms"] = spread(tally.first_token_s)
        row["token_transit_ms"] = spread(tally.transit_s)
        row["cpu_us_per_token"] = {name: seconds / tokens * 1e6 for name, seconds in tally.cpu_s.items()}
    else:
        row["latency_ms"] = spread(tally.seconds)
    if tally.stages:
        row["stage_mean_ms"] = _stages(tally, count)
    return row


def spread(series: Series) -> Json:
    """In milliseconds: p50 and p99 of all samples, the p50 of each round, and the least of these."""
    rounds = [percentile(samples, 0.5) * 1000 for samples in series if samples]
    everything = [sample * 1000 for samples in series for sample in samples]
    return {
        "p50": percentile(everything, 0.5),
        "p99": percentile(everything, 0.99),
        "p50_best_round": min(rounds),
        "p50_by_round": rounds,
        "samples": len(everything),
    }


def _stages(tally: Tally, count: int) -> Json:
    """Mean milliseconds per request by semmem's own timers; ``outside`` is Envoy, gRPC, upstream and client.

    Requests that Envoy gave up on are in ``whole`` and in no other.
    """
    whole = sum(map(sum, tally.seconds)) / count * 1000
    asked = tally.stages["request"][1] or 1.0
    parts = {stage: seconds / asked * 1000 for stage, (seconds, _) in tally.stages.items()}
    rest = parts["request"] - parts["embed"] - parts["store"]
    return {"whole": whole, "outside": whole - parts["request"], **parts, "rest_of_semmem": rest}


def ratios(mine: Json, floor: Json) -> Json:
    """Each figure divided by the floor's. ``paired``: the median of the ratios of the rounds, which ignores drift."""
    found: Json = {}
    for name in ("latency_ms", "first_token_ms", "token_transit_ms"):
        if name in mine:
            pairs = zip(mine[name]["p50_by_round"], floor[name]["p50_by_round"], strict=True)
            found[name] = {
                "p50": mine[name]["p50"] / floor[name]["p50"],
                "p99": mine[name]["p99"] / floor[name]["p99"],
                "p50_paired": median(a / b for a, b in pairs),
                "p50_added_ms": mine[name]["p50"] - floor[name]["p50"],
            }
    found["cpu_sidecar"] = _quotient(sidecar_us(mine), sidecar_us(floor))
    found["cpu_envoy"] = mine["cpu_us_per_request"]["envoy"] / floor["cpu_us_per_request"]["envoy"]
    return found


def sidecar_us(row: Json) -> float:
    """CPU of the sidecar that the case asks, microseconds per request; the Milvus Lite child is not in it."""
    return float(row["cpu_us_per_request"].get(row["sidecar"], 0.0))


def _quotient(one: float, other: float) -> float | None:
    return one / other if other > 0 else None


# --- the table -------------------------------------------------------------------------------------------------------


def table(found: Json, plan: Plan) -> str:
    """What people read. All times in ms but CPU in microseconds per request (per token for streams)."""
    lines: list[str] = []
    for concurrency in dict.fromkeys((1, plan.concurrency)):
        lines += [f"\nJSON requests, {concurrency} at a time", *_grid(_JSON_HEAD, _json_rows(found, concurrency))]
    lines += [f"\nStreams, {plan.streams} x {plan.tokens} tokens", *_grid(_STREAM_HEAD, _stream_rows(found, plan))]
    lines += ["\nWhere the time goes (means, ms)", *_grid(_STAGE_HEAD, _stage_rows(found))]
    return "\n".join(lines)


_JSON_HEAD = "case,p50,p99,best p50,to floor,CPU sidecar,to floor,CPU Milvus,CPU Envoy,as meant"
_STREAM_HEAD = "case,first token p50,p99,token transit p50,p99,transit to none,to no-op x2,CPU sidecar,CPU Envoy"
_STAGE_HEAD = "case,whole,outside semmem,embed,store,rest of semmem"


def _json_rows(found: Json, concurrency: int) -> Iterable[list[str]]:
    for case in (case for case in CASES if not case.stream):
        row = found[case.name][f"c{concurrency}"]
        latency, cpu = row["latency_ms"], row["cpu_us_per_request"]
        ratio = row["ratios"][case.floors[0]] if case.floors else None
        yield [
            case.title,
            *(f"{latency[key]:.2f}" for key in ("p50", "p99", "p50_best_round")),
            f"{ratio['latency_ms']['p50']:.2f}x {case.floors[0]}" if ratio else "",
            f"{sidecar_us(row):.0f}" if case.sidecar else "",
            _times(ratio["cpu_sidecar"]) if ratio else "",
            f"{cpu['milvus_lite']:.0f}" if case.outcome == "injected" else "",
            f"{cpu['envoy']:.0f}",
            f"{row['as_meant']:.1%}",
        ]


def _stream_rows(found: Json, plan: Plan) -> Iterable[list[str]]:
    for case in (case for case in CASES if case.stream):
        row = found[case.name][f"c{plan.streams}"]
        first, transit = row["first_token_ms"], row["token_transit_ms"]
        both = row["ratios"].get("stream_noop_both")
        none = row["ratios"].get("stream_none")
        cpu = row["cpu_us_per_token"]
        yield [
            case.title,
            *(f"{part[key]:.2f}" for part in (first, transit) for key in ("p50", "p99")),
            _times(none["token_transit_ms"]["p50"]) if none else "",
            _times(both["token_transit_ms"]["p50"]) if both else "",
            f"{cpu[case.sidecar]:.0f}" if case.sidecar else "",
            f"{cpu['envoy']:.0f}",
        ]


def _stage_rows(found: Json) -> Iterable[list[str]]:
    for case in CASES:
        for level, row in found[case.name].items():
            if stages := row.get("stage_mean_ms"):
                keys = ("whole", "outside", "embed", "store", "rest_of_semmem")
                whole = "" if case.stream else f"{stages['whole']:.2f}"
                outside = "" if case.stream else f"{stages['outside']:.2f}"
                yield [f"{case.title} {level}", whole, outside, *(f"{stages[key]:.2f}" for key in keys[2:])]


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _grid(head: str, rows: Iterable[list[str]]) -> list[str]:
    cells = [head.split(","), *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
