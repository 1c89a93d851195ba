"""Requests through Envoy: every case beside its floors, in turns of short blocks, at one connection and at many."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import uvloop

from bench.blocks import Block, ending, run_block
from bench.cases import REQUEST_CASES, Case
from bench.client import Connection, connect
from bench.figures import added_ratio, grid, lag_percentile, once, over_rounds, paired, percentile, quartiles, spread
from bench.plan import Place, Plan, Say
from bench.road import Road, road

Json = dict[str, Any]

BARE_WORKS = ("forward", "list", "search")
"""What is done without Envoy and semmem: a text to its vector, all rows of a user, the nearest rows."""
CPU_LEVEL_WANTED = 8
"""Processor time is judged at this many connections: at one, most of a no-op's is spent on going to sleep and waking
up."""


@dataclass
class Seen:
    """One run. ``blocks`` by case and connections, ``bare`` by work and how many at a time: seconds of each round."""

    blocks: dict[tuple[str, int], list[Block]] = field(default_factory=lambda: defaultdict(list))
    bare: dict[tuple[str, int], list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    loads: list[float] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0.0
    grown_bytes: int = 0


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """Raises Failed, TimeoutError and OSError."""
    with road(place, REQUEST_CASES, plan, bare=True) as here:
        return figures(uvloop.run(_run(here, plan, say)), plan)


# --- what is sent ----------------------------------------------------------------------------------------------------


async def _run(here: Road, plan: Plan, say: Say) -> Seen:
    """Warm up, then rounds until all are done or the next one would end too late; at least one."""
    connections, numbers = await connect(here.port, plan.connections), itertools.count()
    seen = Seen(grown_bytes=here.grown_bytes)
    try:
        for case in REQUEST_CASES:
            requests = [case.request(number) for number in itertools.islice(numbers, plan.warm_up)]
            await run_block(here, case, connections[: plan.levels[0]], requests)
        began = time.monotonic()
        while seen.rounds < plan.rounds and seen.seconds * (1 + 1 / max(1, seen.rounds)) <= plan.seconds_max:
            for level in plan.levels:
                await _round(here, plan, connections[:level], numbers, seen)
            seen.rounds, seen.seconds = seen.rounds + 1, time.monotonic() - began
            seen.loads.append(os.getloadavg()[0])
            say(f"requests: round {seen.rounds} of {plan.rounds}, {seen.seconds:.0f} s, load {seen.loads[-1]:.1f}")
    finally:
        for connection in connections:
            connection.close()
    return seen


async def _round(here: Road, plan: Plan, connections: Sequence[Connection], numbers: Iterator[int], seen: Seen) -> None:
    """Each case and each bare work, once."""
    level = len(connections)
    for case in REQUEST_CASES:
        count = plan.requests_in(level, cheap=not case.embeds)
        requests = [case.request(number) for number in itertools.islice(numbers, count)]
        seen.blocks[case.name, level].append(await run_block(here, case, connections, requests))
    count = plan.requests_in(level, cheap=False)
    texts = [REQUEST_CASES[-1].question(number) for number in itertools.islice(numbers, count)]
    for work in BARE_WORKS:
        asked = {"texts": texts} if work == "forward" else {"count": count}
        answer = await here.bare(work, at_once=level, **asked)
        seen.bare[work, level].append(answer["seconds"])


# --- what it says ----------------------------------------------------------------------------------------------------


def figures(seen: Seen, plan: Plan) -> Json:
    """Every case at every level, the bare works, the keys (see docs/benchmarks.md), and the ratios at each level."""
    cases: Json = {case.name: {} for case in REQUEST_CASES}
    for case, level in itertools.product(REQUEST_CASES, plan.levels):
        cases[case.name][f"c{level}"] = _row(case, seen.blocks[case.name, level])
    bare: Json = {work: {f"c{level}": spread(seen.bare[work, level]) for level in plan.levels} for work in BARE_WORKS}
    by_level = {f"c{level}": _ratios(seen, level) for level in plan.levels}
    one = f"c{plan.levels[0]}"
    busy = f"c{CPU_LEVEL_WANTED if CPU_LEVEL_WANTED in plan.levels else plan.levels[-1]}"
    keys = {name: by_level[busy if name.endswith("cpu_ratio") else one][name] for name in by_level[one]}
    return {
        "rounds": seen.rounds,
        "seconds": seen.seconds,
        "load_by_round": seen.loads,
        "rewrite_grows_bytes": seen.grown_bytes,
        "cases": cases,
        "bare": bare,
        "ratios": by_level,
        "added_to_embed": {f"c{level}": _added_to_embed(seen, level) for level in plan.levels},
        "keys": keys | _tails(seen, plan),
    }


def _row(case: Case, blocks: Sequence[Block]) -> Json:
    replies = [reply for block in blocks for reply in block.replies]
    row: Json = {
        "requests": len(replies),
        **ending(case, replies),
        "prompt_bytes": int(median(reply.prompt_bytes for reply in replies)),
        "latency_ms": spread([block.seconds for block in blocks]),
        "cpu_us_per_request": {
            process: sum(block.cpu_s[process] for block in blocks) / len(replies) * 1e6 for process in blocks[0].cpu_s
        },
        "cpu_us_quartiles": quartiles([block.cpu_us(case.sidecar) for block in blocks]),
    }
    if case.is_of_semmem:
        row["stage_mean_ms"] = _stages(blocks)
        row["loop_lag_p99_ms"] = _lag_p99_ms(blocks)
    return row


def _stages(blocks: Sequence[Block]) -> Json:
    """Mean milliseconds per request by semmem's own timers; ``outside`` is Envoy, gRPC, upstream and client.

    Requests that Envoy gave up on are in ``whole`` and in no other.
    """
    whole = sum(sum(block.seconds) for block in blocks) / sum(len(block.replies) for block in blocks) * 1000
    timers = [block.counts.timers for block in blocks]
    asked = sum(timer["request"][1] for timer in timers) or 1.0
    parts = {name: sum(timer[name][0] for timer in timers) / asked * 1000 for name in timers[0]}
    calls = {f"{name}_calls": sum(timer[name][1] for timer in timers) / asked for name in ("list", "search")}
    return {"whole": whole, "outside": whole - parts["request"], **parts, **calls}


def _lag_p99_ms(blocks: Sequence[Block]) -> float | None:
    bounds = blocks[0].counts.lags
    lag = lag_percentile({bound: sum(block.counts.lags[bound] for block in blocks) for bound in bounds}, 0.99)
    return None if lag is None else lag * 1000


def _ratios(seen: Seen, level: int) -> Json:
    """The keys that are ratios, at one level. Both sides of each are of the same round."""

    def p50(case: str, number: int) -> float:
        return percentile(seen.blocks[case, level][number].seconds, 0.5)

    def bare(work: str, number: int) -> float:
        return percentile(seen.bare[work, level][number], 0.5)

    def cpu(case: str, process: str, number: int) -> float:
        return seen.blocks[case, level][number].cpu_us(process)

    def added(case: str, floor: str, number: int, *works: str) -> float:
        more = [bare(work, number) for work in works]
        return added_ratio(p50(case, number), p50("none", number), p50(floor, number), *more)

    call = _call_of(seen.blocks["cold", level])
    rounds = seen.rounds
    return {
        "skip_cpu_ratio": paired(rounds, lambda n: cpu("skip", "semmem", n) / cpu("noop", "noop", n)),
        "known_cpu_ratio": paired(rounds, lambda n: cpu("known", "semmem", n) / cpu("rewrite", "rewrite", n)),
        "gate_skip_p50_ratio": paired(rounds, lambda n: added("nothing", "noop", n, "forward")),
        "hot_p50_ratio": paired(rounds, lambda n: added("search", "rewrite", n, "forward")),
        "cold_p50_ratio": paired(rounds, lambda n: added("cold", "rewrite", n, "forward", call)),
    }


def _added_to_embed(seen: Seen, level: int) -> Json:
    """By case: what it adds to the p50 of no sidecar / what a no-op adds that embeds and rewrites. No key: beside
    those of ``_ratios`` it shows how much of them is that a forward pass is followed by something."""

    def ratio(case: str, number: int) -> float:
        mine, none, floor = (
            percentile(seen.blocks[name, level][number].seconds, 0.5) for name in (case, "none", "embed")
        )
        return added_ratio(mine, none, floor)

    return {
        case.name: paired(seen.rounds, partial(ratio, case.name)) for case in REQUEST_CASES if case.floor == "embed"
    }


def _call_of(blocks: Sequence[Block]) -> str:
    """The call that a cold search makes of the store: reading all of the user's rows, or the nearest."""
    calls = {name: sum(block.counts.timers[name][1] for block in blocks) for name in ("list", "search")}
    return max(calls, key=lambda name: calls[name])


def _tails(seen: Seen, plan: Plan) -> Json:
    """The keys that are times. Of the whole run: a round alone is too short for a p99."""
    one, most = plan.levels[0], plan.levels[-1]
    skips = [block.seconds for block in seen.blocks["skip", one]]
    none = percentile([second for block in seen.blocks["none", one] for second in block.seconds], 0.5)
    everything = [second for seconds in skips for second in seconds]
    found = {
        "skip_p99_ms": once((percentile(everything, 0.99) - none) * 1000)
        | {"quartiles": quartiles([(percentile(seconds, 0.99) - none) * 1000 for seconds in skips])}
    }
    of_rounds = [
        [seen.blocks[case.name, most][number] for case in REQUEST_CASES if case.sidecar == "semmem"]
        for number in range(seen.rounds)
    ]
    if (lag := _lag_p99_ms([block for blocks in of_rounds for block in blocks])) is not None:
        by_round = [p99 for blocks in of_rounds if (p99 := _lag_p99_ms(blocks)) is not None]
        found["loop_lag_p99_ms"] = over_rounds(by_round) | {"value": lag}
    return found


# --- for people ------------------------------------------------------------------------------------------------------


def table(found: Json) -> str:
    """Times in ms, processor time in microseconds per request."""
    lines: list[str] = []
    for level in found["ratios"]:
        lines += [f"\nRequests, {level.removeprefix('c')} at a time", *grid(_HEAD, _rows(found, level))]
        lines.append(_beside_embed(found, level))
    return "\n".join([*lines, "\nWhere the time goes, means in ms", *grid(_STAGE_HEAD, _stage_rows(found))])


_HEAD = "case,p50,of rounds,p99,CPU sidecar,to floor,CPU Milvus,CPU Envoy,as meant"
_STAGE_HEAD = "case,whole,outside semmem,embed,list,search,rest of semmem,loop lag p99"


def _rows(found: Json, level: str) -> list[list[str]]:
    rows = []
    for case in REQUEST_CASES:
        row = found["cases"][case.name][level]
        cpu = row["cpu_us_per_request"]
        rows.append(
            [
                case.title,
                *_times(row["latency_ms"]),
                f"{cpu[case.sidecar]:.0f}" if case.sidecar else "",
                _to_floor(found, case, level),
                f"{cpu[lite]:.0f}" if (lite := f"lite of {case.sidecar}") in cpu else "",
                f"{cpu['envoy']:.0f}",
                f"{row['as_meant']:.1%}",
            ]
        )
    return rows + [[f"bare {work}", *_times(by[level]), *[""] * 5] for work, by in found["bare"].items()]


def _beside_embed(found: Json, level: str) -> str:
    ratios = found["added_to_embed"][level].items()
    said = ", ".join(
        "{} {:.2f} ({:.2f} - {:.2f})".format(case, ratio["value"], *ratio["quartiles"]) for case, ratio in ratios
    )
    return f"added p50 / of the no-op that embeds and rewrites: {said}"


def _times(latency: Json) -> list[str]:
    return [f"{latency['p50']:.2f}", "{:.2f} - {:.2f}".format(*latency["p50_quartiles"]), f"{latency['p99']:.2f}"]


def _to_floor(found: Json, case: Case, level: str) -> str:
    if not case.floor:
        return ""
    floor = next(other for other in REQUEST_CASES if other.name == case.floor)
    its, mine = (found["cases"][one.name][level]["cpu_us_per_request"][one.sidecar] for one in (floor, case))
    return f"{mine / its:.2f}x {floor.name}" if its else ""


def _stage_rows(found: Json) -> list[list[str]]:
    rows = []
    for case, level in itertools.product(REQUEST_CASES, found["ratios"]):
        row = found["cases"][case.name][level]
        if stages := row.get("stage_mean_ms"):
            rest = stages["request"] - stages["embed"] - stages["list"] - stages["search"]
            shown = [stages[name] for name in ("whole", "outside", "embed", "list", "search")]
            lag = row["loop_lag_p99_ms"] or math.nan
            rows.append([f"{case.title} {level}", *(f"{value:.2f}" for value in (*shown, rest, lag))])
    return rows
