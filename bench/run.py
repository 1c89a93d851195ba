"""Rounds of blocks: in every round each case has its turn, so that drift of the machine hits all alike."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.cases import JSON_CASES, STREAM_CASES, Case
from bench.client import Connection, Reply, connect
from bench.plan import Plan
from bench.road import Road

REQUEST_TIMEOUT_S = 30.0
SETTLE_S = 0.1
"""After a block, before its CPU is read: the journal's commit and the end of observe streams belong to it."""
IDLE_S = 1.0
STREAM_STAGGER_S = 0.103
"""Between the starts of two streams: not a multiple of the tokens' interval, else all tokens would come at once."""

Series = list[list[float]]
"""Samples by round."""


@dataclass
class Tally:
    """What was seen of one case at one concurrency. Times in seconds."""

    seconds: Series = field(default_factory=list)
    first_token_s: Series = field(default_factory=list)
    transit_s: Series = field(default_factory=list)
    cpu_s: Counter[str] = field(default_factory=Counter)
    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    prompt_bytes: list[int] = field(default_factory=list)

    def add(self, replies: list[Reply]) -> None:
        """The replies of one block."""
        self.seconds.append([reply.seconds for reply in replies])
        self.first_token_s.append([reply.first_token_s for reply in replies if reply.first_token_s is not None])
        self.transit_s.append([transit for reply in replies for transit in reply.transits_s])
        self.outcomes.update(reply.outcome for reply in replies)
        self.statuses.update(reply.status for reply in replies)
        self.prompt_bytes.extend(reply.prompt_bytes for reply in replies)


Tallies = dict[tuple[str, int], Tally]
"""By case and concurrency."""


@dataclass
class Result:
    """One run."""

    tallies: Tallies = field(default_factory=lambda: defaultdict(Tally))
    idle_cpu_s: Counter[str] = field(default_factory=Counter)
    idle_s: float = 0.0
    loads: list[float] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0.0


async def run(road: Road, plan: Plan, say: Callable[[str], None]) -> Result:
    """Warm up, then rounds until all are done or the next one would end after ``plan.seconds_max``.

    At least one round. Raises TimeoutError or ConnectionError when a request is not answered at all.
    """
    connections = await connect(road.port, max(plan.concurrency, plan.streams))
    numbers = itertools.count()
    result = Result()
    try:
        await _warm_up(road, plan, connections, numbers)
        began = time.monotonic()
        for number in range(plan.rounds):
            await _round(road, plan, connections, numbers, result)
            result.rounds, result.seconds = number + 1, time.monotonic() - began
            say(f"round {result.rounds} of {plan.rounds}, {result.seconds:.0f} s, load {result.loads[-1]:.1f}")
            if result.seconds * (1 + 1 / result.rounds) > plan.seconds_max:
                break
    finally:
        for connection in connections:
            connection.close()
    return result


async def _warm_up(road: Road, plan: Plan, connections: list[Connection], numbers: Iterator[int]) -> None:
    """Every path, every session and every question that is to be known, once."""
    unmeasured = Result()
    for case in JSON_CASES:
        count = 64 if case.name in ("skip", "cached") and plan.block > 1 else plan.block
        await _block(road, case, connections[: plan.concurrency], count, numbers, unmeasured)
    for case in STREAM_CASES:
        await _block(road, case, connections[:1], 1, numbers, unmeasured)


async def _round(road: Road, plan: Plan, connections: list[Connection], numbers: Iterator[int], result: Result) -> None:
    for concurrency in (1, plan.concurrency):
        for case in JSON_CASES:
            await _block(road, case, connections[:concurrency], plan.block, numbers, result)
    for case in STREAM_CASES:
        await _block(road, case, connections[: plan.streams], plan.streams, numbers, result)
    before = road.cpu_s()
    await asyncio.sleep(IDLE_S)
    result.idle_cpu_s.update(_spent(before, road.cpu_s()))
    result.idle_s += IDLE_S
    result.loads.append(os.getloadavg()[0])


async def _block(
    road: Road, case: Case, connections: list[Connection], count: int, numbers: Iterator[int], result: Result
) -> None:
    requests = iter([case.request(number) for number in itertools.islice(numbers, count)])
    tally = result.tallies[case.name, len(connections)]
    stages = await asyncio.to_thread(road.stage_sums) if case.outcome else {}
    before = road.cpu_s()
    async with asyncio.TaskGroup() as workers:
        delays_s = [number * STREAM_STAGGER_S if case.stream else 0.0 for number in range(len(connections))]
        tasks = [
            workers.create_task(_work(connection, requests, delay_s))
            for connection, delay_s in zip(connections, delays_s, strict=True)
        ]
    await asyncio.sleep(SETTLE_S)
    tally.cpu_s.update(_spent(before, road.cpu_s()))
    tally.add([reply for task in tasks for reply in task.result()])
    if case.outcome:
        after = await asyncio.to_thread(road.stage_sums)
        for stage, (seconds, times) in after.items():
            was = tally.stages.get(stage, (0.0, 0.0))
            tally.stages[stage] = (was[0] + seconds - stages[stage][0], was[1] + times - stages[stage][1])


async def _work(connection: Connection, requests: Iterator[bytes], delay_s: float) -> list[Reply]:
    await asyncio.sleep(delay_s)
    return [await connection.ask(request, REQUEST_TIMEOUT_S) for request in requests]


def _spent(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in before}
