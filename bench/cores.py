"""What a further core brings: one semmem on one core, one on both, and two of them, each with a folder of its own.

Envoy, client and upstream share the cores, as a sidecar does. So beside requests a second stands what of a core semmem
itself used: what one process can do at most, and what two can.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from bench.blocks import REQUEST_TIMEOUT_S, ending, spent_since
from bench.cases import REQUEST_CASES, Case
from bench.client import Connection, Reply, connect
from bench.figures import grid, percentile
from bench.plan import Place, Plan, Say
from bench.road import Road, road

Json = dict[str, Any]

CASES = tuple(case for case in REQUEST_CASES if case.name in ("known", "search"))
CONNECTIONS = 32
WARM_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class Layout:
    """How many semmems, and whether each has a core of its own, the last ones, instead of any."""

    name: str
    processes: int
    pinned: bool


LAYOUTS = (
    Layout("one process, one core", 1, True),
    Layout("one process, any core", 1, False),
    Layout("two processes, any core", 2, False),
    Layout("two processes, a core each", 2, True),
)


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """In turns, so that a busy moment meets every layout. Raises Failed, TimeoutError and OSError."""
    seconds = [_of_second(case) for case in CASES]
    with road(place, (*CASES, *seconds), plan) as here:
        found = uvloop.run(_run(here, plan, say))
    rows = {
        name: {case: {key: median(row[key] for row in runs) for key in runs[0]} for case, runs in of.items()}
        for name, of in found.items()
    }
    return {"layouts": rows}


def _of_second(case: Case) -> Case:
    filters = tuple(name.replace("semmem.", "second.") for name in case.filters)
    return replace(case, name=f"{case.name}_second", filters=filters)


async def _run(here: Road, plan: Plan, say: Say) -> dict[str, dict[str, list[Json]]]:
    connections, numbers = await connect(here.port, CONNECTIONS), itertools.count()
    found: dict[str, dict[str, list[Json]]] = {layout.name: {case.name: [] for case in CASES} for layout in LAYOUTS}
    try:
        for case in CASES:
            await _load(here, case, LAYOUTS[-1], connections, numbers, WARM_UP_S)
        for _ in range(plan.cores_rounds):
            for layout, case in itertools.product(LAYOUTS, CASES):
                _pin(here, layout)
                row = await _load(here, case, layout, connections, numbers, plan.cores_s)
                found[layout.name][case.name].append(row)
                say(f"cores: {layout.name}, {case.name}: {row['a_second']:.0f} a second")
    finally:
        for connection in connections:
            connection.close()
    return found


async def _load(
    here: Road, case: Case, layout: Layout, connections: Sequence[Connection], numbers: Iterator[int], seconds: float
) -> Json:
    """Every connection asks again as soon as it is answered; with two processes every other one asks the second."""
    asked = [case, _of_second(case)][: layout.processes]
    before, began = here.cpu_s(), time.monotonic()
    async with asyncio.TaskGroup() as workers:
        tasks = [
            workers.create_task(_ask(connection, asked[place % len(asked)], numbers, began + seconds))
            for place, connection in enumerate(connections)
        ]
    took, spent = time.monotonic() - began, spent_since(before, here.cpu_s())
    replies = [reply for task in tasks for reply in task.result()]
    semmem = spent["semmem"] + spent["second"]
    return {
        "a_second": len(replies) / took,
        "p50_ms": percentile([reply.seconds for reply in replies], 0.5) * 1000,
        "p99_ms": percentile([reply.seconds for reply in replies], 0.99) * 1000,
        "as_meant": ending(case, replies)["as_meant"],
        "semmem_cores": semmem / took,
        "other_cores": (sum(spent.values()) - semmem) / took,
        "semmem_cpu_us": semmem / len(replies) * 1e6,
    }


async def _ask(connection: Connection, case: Case, numbers: Iterator[int], until: float) -> list[Reply]:
    replies = [await connection.ask(case.request(next(numbers)), REQUEST_TIMEOUT_S)]
    while time.monotonic() < until:
        replies.append(await connection.ask(case.request(next(numbers)), REQUEST_TIMEOUT_S))
    return replies


def _pin(here: Road, layout: Layout) -> None:
    """Every thread that there is; a later one is where the one that starts it is."""
    cores = sorted(os.sched_getaffinity(os.getpid()))
    for place, name in enumerate(("semmem", "second")):
        wanted = {cores[-1 - place % len(cores)]} if layout.pinned else set(cores)
        for thread in Path(f"/proc/{here.pids[name]}/task").iterdir():
            os.sched_setaffinity(int(thread.name), wanted)


def table(found: Json) -> str:
    """For people."""
    rows = [
        [f"{layout}: {case}", f"{row['a_second']:.0f}", f"{row['p50_ms']:.0f}", f"{row['p99_ms']:.0f}",
         f"{row['as_meant']:.1%}", f"{row['semmem_cores']:.2f}", f"{row['other_cores']:.2f}",
         f"{row['semmem_cpu_us']:.0f}"]
        for layout, cases in found["layouts"].items()
        for case, row in cases.items()
    ]  # fmt: skip
    head = "layout and case,a second,p50 ms,p99 ms,as meant,cores: semmem,others,CPU us a request"
    return "\n".join([f"\nCores: {CONNECTIONS} connections that never rest", *grid(head, rows)])
