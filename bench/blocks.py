"""Blocks: so many requests of one case over so many connections, with what each process spent on them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.cases import Case
from bench.client import Connection, Reply
from bench.road import Road
from bench.sidecars import Counts

REQUEST_TIMEOUT_S = 60.0
SETTLE_S = 0.1
"""After a block, before its CPU is read: the journal's commit and the end of observe streams belong to it."""
MEANT_MIN = 0.95
"""Share of requests that must have ended as their case means, else the figures are of something else: one at a time
this is a failure of the run; with more at a time it may say that the machine was too slow for so many."""


@dataclass(frozen=True, slots=True)
class Block:
    """What was seen of it. ``cpu_s`` by process; ``counts``: what semmem counted, where it was asked."""

    replies: Sequence[Reply]
    cpu_s: dict[str, float]
    counts: Counts = field(default_factory=Counts)

    @property
    def seconds(self) -> list[float]:
        return [reply.seconds for reply in self.replies]

    def cpu_us(self, process: str) -> float:
        """Of a process, for each request."""
        return self.cpu_s.get(process, 0.0) / len(self.replies) * 1e6


async def run_block(road: Road, case: Case, connections: Sequence[Connection], requests: Iterable[bytes]) -> Block:
    """Send all requests, each connection one at a time. Raises TimeoutError and OSError."""
    semmem = road.semmems.get(case.sidecar)
    counted = Counts() if semmem is None else await asyncio.to_thread(semmem.counts)
    waiting, before = iter(requests), road.cpu_s()
    async with asyncio.TaskGroup() as workers:
        tasks = [workers.create_task(_ask_each(connection, waiting)) for connection in connections]
    await asyncio.sleep(SETTLE_S)
    spent = spent_since(before, road.cpu_s())
    if semmem is not None:
        counted = (await asyncio.to_thread(semmem.counts)).since(counted)
    return Block([reply for task in tasks for reply in task.result()], spent, counted)


async def _ask_each(connection: Connection, requests: Iterator[bytes]) -> list[Reply]:
    return [await connection.ask(request, REQUEST_TIMEOUT_S) for request in requests]


def spent_since(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    return {name: now[name] - before[name] for name in before}


def ending(case: Case, replies: Iterable[Reply]) -> dict[str, object]:
    """How requests ended: statuses, outcome words, and the share of those that their case means."""
    outcomes, statuses = Counter[str](), Counter[str]()
    for reply in replies:
        outcomes[reply.outcome] += 1
        statuses[str(reply.status)] += 1
    meant = sum(outcomes[word] for word in case.outcomes or ("",))
    return {"as_meant": meant / outcomes.total(), "outcomes": dict(outcomes), "statuses": dict(statuses)}
