"""New questions a second: more and more are offered until they are not answered in time, or not with memories.

Beside it what the machine could do at best: bare forwards in full batches, while Envoy, client and upstream carry the
same rate of requests for a sidecar that only rewrites bodies.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from bench.blocks import REQUEST_TIMEOUT_S
from bench.cases import REQUEST_CASES, Case
from bench.client import Connection, Reply, connect
from bench.figures import grid, once, percentile
from bench.plan import Place, Plan, Say
from bench.road import Road, road
from semmem.config import Settings

Json = dict[str, Any]

SEARCH: Case = next(case for case in REQUEST_CASES if case.name == "search")
REWRITE: Case = next(case for case in REQUEST_CASES if case.name == "rewrite")
CONNECTIONS = 256
BATCHED_AT_ONCE = 64
DEGRADED_MAX = 0.01
PAUSE_S = 1.0
"""Between two rates, so that no queue is left of the first."""
TRIES = 2
"""A rate is too high when it fails so often: a busy moment of the machine is none of semmem's."""


@dataclass(frozen=True, slots=True)
class Offered:
    """One rate. ``seconds`` from when a request was due, whether or not it could be sent then; ``degraded``: the share
    without the outcome that is meant."""

    rate: float
    seconds: Sequence[float]
    degraded: float

    def holds(self, deadline_s: float) -> bool:
        return percentile(self.seconds, 0.99) <= deadline_s and self.degraded <= DEGRADED_MAX

    def figures(self) -> Json:
        return {
            "rate": self.rate,
            "requests": len(self.seconds),
            "p50_ms": percentile(self.seconds, 0.5) * 1000,
            "p99_ms": percentile(self.seconds, 0.99) * 1000,
            "degraded": self.degraded,
        }


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """Raises Failed, TimeoutError and OSError."""
    with road(place, (SEARCH, REWRITE), plan, bare=True) as here:
        found: Json = uvloop.run(_run(here, plan, say))
    return found


async def _run(here: Road, plan: Plan, say: Say) -> Json:
    connections, numbers = await connect(here.port, CONNECTIONS), itertools.count()
    deadline_s = Settings().deadlines.phase_ms * plan.patience / 1000
    try:
        alone = await _batched(here, plan)
        say(f"saturation: {alone:.0f} bare forwards a second")
        steps = await _steps(connections, numbers, plan, alone, deadline_s, say)
        held = [step.rate for step in steps if step.holds(deadline_s)]
        rate = max(held, default=0.0)
        beside = alone
        if rate:
            beside, _ = await asyncio.gather(
                _batched(here, plan), offer(REWRITE, connections, numbers, rate, plan.step_s)
            )
    finally:
        for connection in connections:
            connection.close()
    return {
        "deadline_ms": deadline_s * 1000,
        "steps": [step.figures() | {"holds": step.holds(deadline_s)} for step in steps],
        "questions_a_second": rate,
        "saturated": not all(step.holds(deadline_s) for step in steps[-TRIES:]),
        "bare_forwards_a_second": {"alone": alone, "beside_as_many_requests": beside},
        "keys": {"efficiency": once(rate / beside)},
    }


async def _batched(here: Road, plan: Plan) -> float:
    answer = await here.bare("batched", seconds=plan.step_s, at_once=BATCHED_AT_ONCE)
    return float(answer["a_second"])


async def _steps(
    connections: Sequence[Connection],
    numbers: Iterator[int],
    plan: Plan,
    alone: float,
    deadline_s: float,
    say: Say,
) -> list[Offered]:
    """Until a rate fails TRIES times."""
    rate, failed, steps = plan.share_first * alone, 0, list[Offered]()
    while len(steps) < plan.steps and failed < TRIES:
        await asyncio.sleep(PAUSE_S)
        steps.append(await offer(SEARCH, connections, numbers, rate, plan.step_s))
        p99_ms = percentile(steps[-1].seconds, 0.99) * 1000
        say(f"saturation: {rate:.0f} a second, p99 {p99_ms:.0f} ms, {steps[-1].degraded:.1%} degraded")
        holds = steps[-1].holds(deadline_s)
        failed = 0 if holds else failed + 1
        rate *= plan.rate_growth if holds else 1.0
    return steps


async def offer(
    case: Case, connections: Sequence[Connection], numbers: Iterator[int], rate: float, seconds: float
) -> Offered:
    """Requests at even times, however long those before take. One that finds no free connection waits for one."""
    loop = asyncio.get_running_loop()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    began = loop.time()
    async with asyncio.TaskGroup() as asking:
        tasks = []
        for number in range(max(1, round(rate * seconds))):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.append(asking.create_task(_ask(case.request(next(numbers)), free, due)))
    answers = [task.result() for task in tasks]
    meant = sum(reply.status == 200 and reply.outcome in (case.outcomes or ("",)) for reply, _ in answers)
    return Offered(rate, [took for _, took in answers], 1 - meant / len(answers))


async def _ask(request: bytes, free: asyncio.Queue[Connection], due: float) -> tuple[Reply, float]:
    connection = await free.get()
    try:
        reply = await connection.ask(request, REQUEST_TIMEOUT_S)
    finally:
        free.put_nowait(connection)
    return reply, asyncio.get_running_loop().time() - due


def table(found: Json) -> str:
    """For people."""
    rows = [
        [f"{step['rate']:.1f}", f"{step['p50_ms']:.1f}", f"{step['p99_ms']:.1f}", f"{step['degraded']:.2%}",
         "yes" if step["holds"] else "no"]
        for step in found["steps"]
    ]  # fmt: skip
    bare = found["bare_forwards_a_second"]
    return "\n".join(
        [
            f"\nSaturation: new questions a second, deadline {found['deadline_ms']:.0f} ms",
            *grid("offered,p50,p99,degraded,holds", rows),
            f"bare forwards a second: {bare['alone']:.0f} alone, {bare['beside_as_many_requests']:.0f} beside as many"
            " requests to a no-op rewrite",
        ]
    )
