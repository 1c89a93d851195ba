"""Streams through Envoy: first token, transit and processor time of each token, and what happens when a sidecar hangs.

Compared are tokens that pass while all streams of a block run: what the requests before them cost is not theirs. The
starts are spread, so that tokens of different streams do not come at once.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from bench.blocks import REQUEST_TIMEOUT_S, ending, run_block, spent_since
from bench.cases import KNOWN_QUESTIONS, STREAM_CASES, Case
from bench.client import Connection, Reply, connect
from bench.figures import grid, once, paired, percentile, spread
from bench.plan import Place, Plan, Say
from bench.road import Road, road
from demo.processes import Failed

Json = dict[str, Any]
Token = tuple[float, float]
"""When it was read, and how long after it was written; seconds."""

LEVEL_WANTED = 32
"""Streams at which transit is judged."""
STAGGER = 0.309
"""Between two starts, of the tokens' interval: multiples of the golden ratio's square fill an interval evenly."""
TRIES = 5
HUNG_STREAMS = 8
HUNG_LATE_S = 1.0
"""A token that takes longer while the sidecar is stopped has not gone on."""


@dataclass(frozen=True, slots=True)
class Streams:
    """One block. ``tokens`` passed while all streams ran, in which time ``cpu_s`` was spent by each process."""

    replies: Sequence[Reply]
    tokens: Sequence[Token]
    cpu_s: dict[str, float]

    @property
    def transits(self) -> list[float]:
        return [transit for _, transit in self.tokens]

    @property
    def first_tokens(self) -> list[float]:
        return [reply.first_token_s for reply in self.replies if reply.first_token_s is not None]


Seen = dict[tuple[str, int], list[Streams]]


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """Raises Failed, TimeoutError and OSError."""
    with road(place, STREAM_CASES, plan) as here:
        seen, hung = uvloop.run(_run(here, plan, say))
    return figures(seen, plan) | {"hung": hung, "keys": _keys(seen, plan) | {"hung_tokens": once(hung["passed"])}}


# --- what is sent ----------------------------------------------------------------------------------------------------


async def _run(here: Road, plan: Plan, say: Say) -> tuple[Seen, Json]:
    connections = await connect(here.port, max(*plan.stream_levels, HUNG_STREAMS))
    numbers, seen = itertools.count(), defaultdict[tuple[str, int], list[Streams]](list)
    try:
        await _warm_up(here, connections, numbers)
        for number in range(plan.stream_rounds):
            for level, case in itertools.product(plan.stream_levels, STREAM_CASES):
                seen[case.name, level].append(await _block(here, case, connections[:level], numbers, plan))
            say(f"streams: round {number + 1} of {plan.stream_rounds}, load {os.getloadavg()[0]:.1f}")
        hung = await _hung(here, STREAM_CASES[-1], connections[:HUNG_STREAMS], numbers, plan)
    finally:
        for connection in connections:
            connection.close()
    return seen, hung


async def _warm_up(here: Road, connections: Sequence[Connection], numbers: Iterator[int]) -> None:
    """Every path and every question that is to be known, once."""
    for case in STREAM_CASES:
        requests = [case.request(number) for number in itertools.islice(numbers, KNOWN_QUESTIONS)]
        await run_block(here, case, connections, requests)


async def _block(
    here: Road, case: Case, connections: Sequence[Connection], numbers: Iterator[int], plan: Plan
) -> Streams:
    """On a busy machine no token may have passed meanwhile: then it is tried again."""
    for _ in range(TRIES):
        tasks = await _started(case, connections, numbers, plan)
        began, before = time.monotonic(), here.cpu_s()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended, spent = time.monotonic(), spent_since(before, here.cpu_s())
        replies = await asyncio.gather(*tasks)
        tokens = [token for reply in replies for token in reply.tokens if began <= token[0] <= ended]
        if tokens:
            return Streams(replies, tokens, spent)
    raise Failed("streams: no token passed while all of them ran, this machine is too busy to measure")


async def _started(
    case: Case, connections: Sequence[Connection], numbers: Iterator[int], plan: Plan
) -> list[asyncio.Task[Reply]]:
    """Streams that all have had a token. The tasks are the caller's."""
    pause_s = STAGGER * plan.token_interval_ms / 1000
    timeout_s = REQUEST_TIMEOUT_S + plan.tokens * plan.token_interval_ms / 1000
    loop = asyncio.get_running_loop()
    tasks = []
    for connection in connections:
        tasks.append(loop.create_task(connection.ask(case.request(next(numbers)), timeout_s)))
        await asyncio.sleep(pause_s)
    async with asyncio.timeout(REQUEST_TIMEOUT_S):
        for connection in connections:
            await connection.has_token.wait()
    return tasks


async def _hung(here: Road, case: Case, connections: Sequence[Connection], numbers: Iterator[int], plan: Plan) -> Json:
    """Stop the sidecar while streams run. ``passed``: the share of the tokens still to come that came in time."""
    tasks = await _started(case, connections, numbers, plan)
    os.kill(here.semmem.pid, signal.SIGSTOP)
    try:
        stopped_at, before = time.monotonic(), sum(len(connection.tokens) for connection in connections)
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        os.kill(here.semmem.pid, signal.SIGCONT)
    came = [token for connection in connections for token in connection.tokens if token[0] >= stopped_at]
    wanted = len(connections) * plan.tokens - before
    gaps = [later[0] - token[0] for one in connections for token, later in itertools.pairwise(one.tokens)]
    return {
        "streams": len(connections),
        "tokens_to_come": wanted,
        "tokens_came": len(came),
        "passed": sum(transit <= HUNG_LATE_S for _, transit in came) / wanted,
        "transit_ms": spread([[transit for _, transit in came]]) if came else None,
        "gap_ms_max": max(gaps) * 1000,
    }


# --- what it says ----------------------------------------------------------------------------------------------------


def figures(seen: Seen, plan: Plan) -> Json:
    """Every case at every level."""
    cases: Json = {case.name: {} for case in STREAM_CASES}
    for case, level in itertools.product(STREAM_CASES, plan.stream_levels):
        cases[case.name][f"c{level}"] = _row(case, seen[case.name, level])
    return {"rounds": plan.stream_rounds, "cases": cases}


def _row(case: Case, blocks: Sequence[Streams]) -> Json:
    replies = [reply for block in blocks for reply in block.replies]
    tokens = sum(len(block.tokens) for block in blocks)
    return {
        "requests": len(replies),
        **ending(case, replies),
        "tokens": sum(len(reply.tokens) for reply in replies),
        "first_token_ms": spread([block.first_tokens for block in blocks]),
        "token_transit_ms": spread([block.transits for block in blocks]),
        "cpu_us_per_token": {
            process: sum(block.cpu_s[process] for block in blocks) / tokens * 1e6 for process in blocks[0].cpu_s
        },
    }


def _keys(seen: Seen, plan: Plan) -> Json:
    level = LEVEL_WANTED if LEVEL_WANTED in plan.stream_levels else plan.stream_levels[-1]

    def transit(case: str, number: int) -> float:
        return percentile(seen[case, level][number].transits, 0.5)

    ratio = paired(plan.stream_rounds, lambda n: transit("semmem", n) / transit("noop_both", n))
    return {"token_transit_ratio": ratio}


# --- for people ------------------------------------------------------------------------------------------------------


def table(found: Json) -> str:
    """Times in ms, processor time in microseconds per token."""
    levels = found["cases"][STREAM_CASES[0].name]
    lines: list[str] = []
    for level in levels:
        lines += [f"\nStreams, {level.removeprefix('c')} at a time", *grid(_HEAD, _rows(found["cases"], level))]
    hung = found["hung"]
    came = "" if hung["transit_ms"] is None else f", transit p99 {hung['transit_ms']['p99']:.2f} ms"
    lines.append(
        f"\nSidecar stopped in {hung['streams']} streams: {hung['tokens_came']} of {hung['tokens_to_come']} tokens came"
        f"{came}, longest gap {hung['gap_ms_max']:.0f} ms"
    )
    return "\n".join(lines)


_HEAD = "case,first token p50,p99,token transit p50,of rounds,p99,CPU sidecar,CPU Envoy,as meant"


def _rows(cases: Json, level: str) -> list[list[str]]:
    rows = []
    for case in STREAM_CASES:
        row = cases[case.name][level]
        first, transit, cpu = row["first_token_ms"], row["token_transit_ms"], row["cpu_us_per_token"]
        rows.append(
            [
                case.title,
                *(f"{first[key]:.2f}" for key in ("p50", "p99")),
                f"{transit['p50']:.3f}",
                "{:.3f} - {:.3f}".format(*transit["p50_quartiles"]),
                f"{transit['p99']:.2f}",
                f"{cpu[case.sidecar]:.0f}" if case.sidecar else "",
                f"{cpu['envoy']:.0f}",
                f"{row['as_meant']:.1%}",
            ]
        )
    return rows
