"""mem0 beside semmem: the same memories, the same questions, one after the other: ``python -m bench --only mem0``.

Compared is retrieval alone: mem0's ``search`` with semmem's, question in, memories out. Both embed with the same
weights and one compute thread, each by the library that it ships with; embedding is timed within each search, so that
it can be taken out. mem0 runs on a Milvus server and on the Qdrant in its own process, its default; semmem on the same
Milvus, its users' memories in process (``semmem``) and read for each question (``semmem_cold``, the vector of the
question known already).
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.facts import GENERAL, USERS, Asked, World, first, user_name, world
from bench.figures import Json, grid, paired, percentile, spread
from bench.mem0_process import Mem0, mem0_process
from bench.plan import Place, Plan, Say
from bench.recalling import (
    Ours,
    TimedEmbedder,
    memory,
    milvus_at,
    new_name,
    number_of,
    question,
    recalling,
    run,
    uri_of,
    vectors_of,
)
from demo.stack import HOME
from semmem.config import Settings
from semmem.memory import Vector
from semmem.wiring.embedding import embedder as shipped_embedder

MEM0_VENV = HOME / ".venv-mem0"
KEYS = ("mem0_search_ratio", "mem0_total_ratio")
LIMIT = 5
NOW = 1_800_000_000.0
WARM_UP = 10
OURS, OURS_COLD, ON_MILVUS, ON_QDRANT, FLOOR = "semmem", "semmem_cold", "mem0_milvus", "mem0_qdrant", "numpy"
STRANGER = 7
"""So many users further is who is asked about people that he does not know."""


@dataclass(frozen=True, slots=True)
class Found:
    """One search: the numbers of what it found, best first; seconds in all, those of embedding, those of processors."""

    numbers: list[int]
    seconds: float
    embed_s: float
    cpu_s: float


Ask = Callable[[str, str], Awaitable[Found]]
"""A question of a user's, put to one system: text, user."""


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


def measure(plan: Plan, place: Place, say: Say, *, environment: Path = MEM0_VENV) -> Json:
    """``systems``, ``ratios`` over the rounds, ``keys``; ``not_measured``: why not, by key. Raises Failed."""
    if not (environment / ".ready").exists():
        reason = f"mem0 is not installed: make {environment.name}/.ready"
        return {"systems": {}, "ratios": {}, "keys": {}, "not_measured": dict.fromkeys(KEYS, reason)}
    return run(_measure(plan, place.folder, environment / "bin" / "python", say))


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


async def _measure(plan: Plan, folder: Path, python: Path, say: Say) -> Json:
    known = first(world(), plan.mem0_facts)
    async with AsyncExitStack() as stack:
        systems, about = await _systems(stack, plan, folder, python, known, say)
        tallies = await _ask_all(systems, plan, known, say)
        await _ask_what_nobody_knows(systems, tallies, plan, known)
    return {"about": about, "facts": len(known.facts), **figures(tallies)}


async def _systems(
    stack: AsyncExitStack, plan: Plan, folder: Path, python: Path, known: World, say: Say
) -> tuple[dict[str, Ask], Json]:
    """Everything that is asked, filled with the facts."""
    model = await asyncio.to_thread(shipped_embedder, Settings())
    await model.open()
    stack.push_async_callback(model.close)
    vectors = await vectors_of(model, [fact.content for fact in known.facts])
    address = uri_of(plan.milvus)
    uri = await stack.enter_async_context(milvus_at(address, folder / "milvus"))
    stored = (memory(fact.number, fact.user, fact.content, vectors[fact.content], NOW - 1) for fact in known.facts)
    embedder = TimedEmbedder(model)
    ours = await stack.enter_async_context(recalling(uri, new_name("semmem"), embedder, folder, stored))
    systems = {
        OURS: _semmem(ours, embedder),
        OURS_COLD: _semmem(ours, embedder, cold=True),
        FLOOR: _numpy(known, vectors, embedder),
    }
    about: Json = {"semmem embedder": model.signature}
    for name, store in ((ON_MILVUS, "milvus"), (ON_QDRANT, "qdrant")):
        if store == "qdrant" or address:
            mem0 = await stack.enter_async_context(mem0_process(python, folder, name))
            opened = await mem0.open(store, address, folder / name, new_name(name), Settings().memory.embedding)
            took = await mem0.add(known.facts)
            say(f"mem0: {name}, {len(known.facts)} facts added in {took:.0f} s")
            systems[name] = _mem0(mem0)
            about[name] = {**opened, "add_ms": took / len(known.facts) * 1000}
    return systems, about


# --- who is asked ----------------------------------------------------------------------------------------------------


def _semmem(ours: Ours, embedder: TimedEmbedder, *, cold: bool = False) -> Ask:
    async def ask(text: str, user: str) -> Found:
        if cold:
            ours.memories.forget_user(user)
        asked, before = question(text, user, NOW), embedder.seconds
        cpu, began = time.process_time(), time.perf_counter()
        recalled = await ours.recall.search(asked)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        numbers = [number_of(hit.memory.id) for hit in recalled.hits]
        return Found(numbers, seconds, embedder.seconds - before, cpu)

    return ask


def _numpy(known: World, vectors: Mapping[str, Vector], embedder: TimedEmbedder) -> Ask:
    """The least that finds memories by meaning: the vector, and a product with the user's own."""
    numbers: dict[str, list[int]] = {}
    for fact in known.facts:
        numbers.setdefault(fact.user, []).append(fact.number)
    content = {fact.number: fact.content for fact in known.facts}
    matrices = {user: np.stack([vectors[content[number]] for number in own]) for user, own in numbers.items()}

    async def ask(text: str, user: str) -> Found:
        before = embedder.seconds
        cpu, began = time.process_time(), time.perf_counter()
        cosines = matrices[user] @ await embedder.embed(text)
        best = np.argsort(-cosines)[:LIMIT]
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Found([numbers[user][row] for row in best], seconds, embedder.seconds - before, cpu)

    return ask


def _mem0(mem0: Mem0) -> Ask:
    async def ask(text: str, user: str) -> Found:
        said = await mem0.search(text, user, LIMIT)
        return Found(said["numbers"], said["seconds"], said["embed_seconds"], said["cpu_seconds"])

    return ask


# --- what is asked ---------------------------------------------------------------------------------------------------


async def _ask_all(systems: Mapping[str, Ask], plan: Plan, known: World, say: Say) -> dict[str, Tally]:
    """Every question once of each system, which take turns in being first; those that use the vector that semmem made
    come right behind it."""
    tallies = {name: Tally() for name in systems}
    for one in known.asked[-WARM_UP:]:
        for ask in systems.values():
            await ask(f"{one.text} Please.", one.user)
    gc.collect()
    gc.freeze()  # as semmem does when it has started
    try:
        for number in range(plan.mem0_rounds):
            for tally in tallies.values():
                tally.rounds.append([])
            for place, one in enumerate(known.asked[: plan.mem0_questions][number :: plan.mem0_rounds]):
                for name in _in_turn(systems, place):
                    found = await systems[name](one.text, one.user)
                    tallies[name].rounds[-1].append(found)
                    tallies[name].recalls.append(_recall(found, one))
            say(f"mem0: round {number + 1} of {plan.mem0_rounds}")
    finally:
        gc.unfreeze()
    return tallies


async def _ask_what_nobody_knows(
    systems: Mapping[str, Ask], tallies: Mapping[str, Tally], plan: Plan, known: World
) -> None:
    """Questions about people whom the asker does not know, and about nothing of his."""
    named = [one for one in known.asked if one.named][: plan.mem0_noise]
    for name, ask in systems.items():
        if name in (OURS, ON_MILVUS, ON_QDRANT):
            for one in named:
                tallies[name].strangers.append(len((await ask(one.text, _stranger_to(one.user))).numbers))
            for place, text in enumerate(GENERAL[: plan.mem0_noise]):
                tallies[name].general.append(len((await ask(text, user_name(place % USERS))).numbers))


def _in_turn(systems: Mapping[str, Ask], place: int) -> list[str]:
    groups = [[OURS, OURS_COLD, FLOOR], [ON_MILVUS], [ON_QDRANT]]
    turn = place % len(groups)
    return [name for group in groups[turn:] + groups[:turn] for name in group if name in systems]


def _stranger_to(user: str) -> str:
    """Another user."""
    users = [user_name(number) for number in range(USERS)]
    return users[(users.index(user) + STRANGER) % USERS]


def _recall(found: Found, one: Asked) -> float:
    """The share of what answers the question among the first LIMIT."""
    return len(one.gold.intersection(found.numbers[:LIMIT])) / len(one.gold)


# --- figures ---------------------------------------------------------------------------------------------------------


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
            reasons[key] = "it is of mem0 on a Milvus server, and none was named"
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
