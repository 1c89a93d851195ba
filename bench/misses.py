"""What it costs when a user is not in process: ``python -m bench --only misses``.

Users of 10, 100 and 1,000 memories in one collection. ``hot``: the search of one who is here; ``cold``: of one who has
to be loaded first; ``read``: the store's part of that; ``build``: the index; ``bytes``: what is kept afterwards, by
semmem's own estimate. Questions are embedded beforehand. Sizes and paths take turns.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bench.facts import user_name, world
from bench.figures import Json, grid, over_rounds, paired, percentile, spread
from bench.own_milvus import MILVUS_VENV, milvus_server
from bench.plan import Place, Plan, Say
from bench.recalling import (
    CALL_TIMEOUT_S,
    KnownVectors,
    Ours,
    memory,
    milvus_at,
    new_name,
    question,
    recalling,
    run,
    uri_of,
    vectors_of,
)
from semmem.config import Settings
from semmem.memory import Memory, Scope, Vector
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.wiring.models import local_embedder

PATHS = ("hot", "cold", "read", "build")
USERS_EACH = 8
"""Of each size, so that they share a collection as users do."""
NOW = 1_800_000_000.0
_WORLD = world()


@dataclass(slots=True)
class _Tally:
    seconds: list[list[float]]
    cpu_us: list[float]


@dataclass(frozen=True, slots=True)
class _Size:
    """Users of so many memories; ``first`` is the number of the first of them."""

    memories: int
    first: int
    ours: Ours

    def user(self, number: int) -> str:
        return user_name(self.first + number % USERS_EACH)

    def call(self, path: str) -> Callable[[int], Awaitable[object]]:
        return {"hot": self._search, "cold": self._search, "read": self._read, "build": self._build}[path]

    async def prepare(self, path: str, number: int) -> None:
        user = self.user(number)
        if path == "cold":
            self.ours.memories.forget_user(user)
        else:
            await self.ours.memories.index(user, wait_s=CALL_TIMEOUT_S)

    async def _search(self, number: int) -> object:
        fact = _WORLD.asked[_fact(self.first + number % USERS_EACH, number % self.memories)]
        return (await self.ours.recall.search(question(fact.text, self.user(number), NOW))).outcome

    async def _read(self, number: int) -> object:
        return await self.ours.memories.list(Scope(self.user(number)), limit=5000)

    async def _build(self, number: int) -> object:
        index = self.ours.memories.at_hand(self.user(number))
        return MemoryIndex(index.memories if index else [])


def measure(plan: Plan, place: Place, say: Say, *, server: Path = MILVUS_VENV) -> Json:
    """``sizes``: by memories of a user and path, ``cold_to_hot`` the ratio over the rounds. ``server``: environment of
    a Milvus server, for when the plan names none. Raises Failed."""
    with milvus_server(plan.milvus, place.folder, say, environment=server) as address:
        return run(_measure(replace(plan, milvus=address), place.folder, say))


async def _measure(plan: Plan, folder: Path, say: Say) -> Json:
    stored = {each: place * USERS_EACH for place, each in enumerate(plan.miss_memories)}
    model = await asyncio.to_thread(local_embedder, Settings().memory.embedding)
    await model.open()
    try:
        texts = {text for each, first in stored.items() for text in _texts(each, first)}
        vectors, signature = await vectors_of(model, texts), model.signature
    finally:
        await model.close()
    async with AsyncExitStack() as stack:
        uri = await stack.enter_async_context(milvus_at(uri_of(plan.milvus), folder / "milvus"))
        rows = _memories(stored, vectors)
        embedder = KnownVectors(vectors, signature)
        ours = await stack.enter_async_context(recalling(uri, new_name("misses"), embedder, folder, rows))
        await asyncio.sleep(plan.pause_s)
        sizes = [_Size(each, first, ours) for each, first in stored.items()]
        tallies = await _rounds(sizes, plan, say)
        found = {str(size.memories): await _figures(size, tallies) for size in sizes}
    return {"server": bool(plan.milvus), "sizes": found}


async def _rounds(sizes: list[_Size], plan: Plan, say: Say) -> dict[tuple[int, str], _Tally]:
    gc.collect()
    gc.freeze()  # as semmem does when it has started
    tallies: defaultdict[tuple[int, str], _Tally] = defaultdict(lambda: _Tally([], []))
    try:
        for number in range(plan.miss_rounds + 1):  # the first one warms up
            some = range(number * plan.miss_calls, (number + 1) * plan.miss_calls)
            for path in PATHS:
                for size in sizes:
                    seconds, cpu_us = await _block(size, path, some)
                    if number:
                        tallies[size.memories, path].seconds.append(seconds)
                        tallies[size.memories, path].cpu_us.append(cpu_us)
            say(f"misses: round {number} of {plan.miss_rounds}")
    finally:
        gc.unfreeze()
    return tallies


async def _block(size: _Size, path: str, numbers: range) -> tuple[list[float], float]:
    call, seconds, cpu_s = size.call(path), [], 0.0
    for number in numbers:
        await size.prepare(path, number)
        cpu, began = time.process_time(), time.perf_counter()
        await call(number)
        seconds.append(time.perf_counter() - began)
        cpu_s += time.process_time() - cpu
    return seconds, cpu_s / len(seconds) * 1e6


async def _figures(size: _Size, tallies: Mapping[tuple[int, str], _Tally]) -> Json:
    row: Json = {
        path: {"latency_ms": spread(tally.seconds), "cpu_us": over_rounds(tally.cpu_us)}
        for path in PATHS
        for tally in (tallies[size.memories, path],)
    }
    hot, cold = ([percentile(some, 0.5) for some in tallies[size.memories, path].seconds] for path in ("hot", "cold"))
    index = await size.ours.memories.index(size.user(0), wait_s=CALL_TIMEOUT_S)
    row["cold_to_hot"] = paired(len(hot), lambda number: cold[number] / hot[number])
    row["bytes"] = 0 if index is None else index.bytes
    return row


def table(found: Json) -> str:
    """For people."""
    rows = [
        [
            memories,
            *(f"{row[path]['latency_ms']['p50']:.2f}" for path in PATHS),
            *(f"{row[path]['cpu_us']['value']:.0f}" for path in PATHS),
            f"{row['bytes'] / 1e3:,.0f}",
        ]
        for memories, row in found["sizes"].items()
    ]
    heads = ",".join(["memories", *(f"{path} ms" for path in PATHS), *(f"{path} CPU us" for path in PATHS), "kB"])
    return "\n".join(["", "misses: a user who is not in process, p50", *grid(heads, rows)])


# --- what is searched ------------------------------------------------------------------------------------------------


def _texts(each: int, first: int) -> Iterator[str]:
    for user in range(first, first + USERS_EACH):
        for number in range(each):
            yield _WORLD.facts[_fact(user, number)].content
            yield _WORLD.asked[_fact(user, number)].text


def _memories(stored: Mapping[int, int], vectors: Mapping[str, Vector]) -> Iterator[Memory]:
    place = 0
    for each, first in stored.items():
        for user in range(first, first + USERS_EACH):
            for number in range(each):
                content = _WORLD.facts[_fact(user, number)].content
                yield memory(place, user_name(user), content, vectors[content], NOW - place)
                place += 1


def _fact(user: int, of_user: int) -> int:
    """Which fact a user's memory of this number is; a user has none twice."""
    return (13 * user + 7 * of_user) % len(_WORLD.facts)
