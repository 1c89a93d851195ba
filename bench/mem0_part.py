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
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.facts import GENERAL, USERS, Asked, World, first, user_name, world
from bench.figures import Json
from bench.mem0_figures import FLOOR, KEYS, LIMIT, ON_MILVUS, ON_QDRANT, OURS, OURS_COLD, Found, Tally, figures, table
from bench.mem0_process import Mem0, mem0_process
from bench.own_milvus import milvus_server
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
from semmem.wiring.models import embedder as shipped_embedder

MEM0_VENV = HOME / ".venv-mem0"

NOW = 1_800_000_000.0
WARM_UP = 10
STRANGER = 7
"""So many users further is who is asked about people that he does not know."""


__all__ = ["measure", "table"]

Ask = Callable[[str, str], Awaitable[Found]]
"""A question of a user's, put to one system: text, user."""


def measure(plan: Plan, place: Place, say: Say, *, environment: Path = MEM0_VENV) -> Json:
    """``systems``, ``ratios`` over the rounds, ``keys``; ``not_measured``: why not, by key. Raises Failed."""
    if not (environment / ".ready").exists():
        reason = f"mem0 is not installed: make {environment.name}/.ready"
        return {"systems": {}, "ratios": {}, "keys": {}, "not_measured": dict.fromkeys(KEYS, reason)}
    with milvus_server(plan.milvus, place.folder, say) as address:
        return run(_measure(replace(plan, milvus=address), place.folder, environment / "bin" / "python", say))


async def _measure(plan: Plan, folder: Path, python: Path, say: Say) -> Json:
    known = first(world(), plan.mem0_facts)
    async with AsyncExitStack() as stack:
        systems, about = await _systems(stack, plan, folder, python, known, say)
        tallies = await ask_all(systems, plan, known, say)
        await ask_what_nobody_knows(systems, tallies, plan, known)
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


async def ask_all(systems: Mapping[str, Ask], plan: Plan, known: World, say: Say) -> dict[str, Tally]:
    """Every question once of each system, which take turns in being first; those that use the vector that semmem made
    come right behind it. No two questions are alike, since semmem keeps vectors."""
    tallies = {name: Tally() for name in systems}
    asked = list({one.text: one for one in known.asked}.values())[: plan.mem0_questions]
    for one in known.asked[-WARM_UP:]:
        for ask in systems.values():
            await ask(f"{one.text} Please.", one.user)
    gc.collect()
    gc.freeze()  # as semmem does when it has started
    try:
        for number in range(plan.mem0_rounds):
            for tally in tallies.values():
                tally.rounds.append([])
            for place, one in enumerate(asked[number :: plan.mem0_rounds]):
                for name in _in_turn(systems, place):
                    found = await systems[name](one.text, one.user)
                    tallies[name].rounds[-1].append(found)
                    tallies[name].recalls.append(_recall(found, one))
            say(f"mem0: round {number + 1} of {plan.mem0_rounds}")
    finally:
        gc.unfreeze()
    return tallies


async def ask_what_nobody_knows(
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
