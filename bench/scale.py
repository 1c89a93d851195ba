"""Searches among more and more memories: ``python -m bench --only scale``.

Hot: the user's memories are in process. Cold: they are read first. Dense: they do not come in time, and the store
searches by itself. Beside each stands the least that does the same: numpy over the user's own vectors, one bare query
for the user's rows, one bare search. All sizes are in one Milvus at the same time and take turns, as do the paths.
Questions are embedded beforehand, so that no figure has embedding in it.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pymilvus import AsyncMilvusClient

from bench.facts import user_name, world
from bench.figures import Json
from bench.own_milvus import MILVUS_VENV, milvus_server
from bench.plan import Place, Plan, Say
from bench.recalling import (
    CALL_TIMEOUT_S,
    KnownVectors,
    Ours,
    client_options,
    memory,
    milvus_at,
    new_name,
    question,
    recalling,
    run,
    uri_of,
    vectors_of,
)
from bench.scale_figures import PATHS, Tally, figures, size_name, table
from semmem.backends.milvus.collection import SPARE_ROWS
from semmem.backends.milvus.rows import ALL_FIELDS, FOUND_FIELDS, VECTOR_FIELD, search_filter, user_filter
from semmem.config import Settings
from semmem.memory import Memory, Scope, Vector
from semmem.retrieval.search import OVERFETCH
from semmem.wiring.models import local_embedder

__all__ = ["measure", "table"]

Call = Callable[[int], Awaitable[str]]
"""One search, by its number; its outcome word, empty where there is none."""

HOT_USERS_MAX = 200
LIMIT = 5
NOISE = 0.02
"""Standard deviation of what is added to each number of a vector of length 1, so that no two memories are alike."""
NOW = 1_800_000_000.0
WITHIN_S = 5.0
"""Of a bare call."""


@dataclass(frozen=True, slots=True)
class _Size:
    """One size in its collection, and the paths by name."""

    memories: int
    users: int
    ours: Ours
    vectors: dict[str, Vector]
    client: AsyncMilvusClient
    matrices: dict[int, npt.NDArray[np.float32]]

    @property
    def each(self) -> int:
        """Memories of a user."""
        return self.memories // self.users

    @property
    def hot_users(self) -> int:
        """How many users' searches are hot: all of them are kept in process, by the shipped limits."""
        return max(1, min(self.users, HOT_USERS_MAX, 10_000 // self.each))

    @property
    def name(self) -> str:
        return size_name(self.memories, self.users)

    def call(self, path: str) -> Call:
        """Of one of PATHS."""
        return {
            "hot": self._hot,
            "numpy": self._numpy,
            "cold": self._cold,
            "bare_query": self._bare_query,
            "dense": self._dense,
            "bare_search": self._bare_search,
        }[path]

    def cool(self, number: int) -> None:
        """Whoever is to be searched cold is forgotten."""
        self.ours.memories.forget_user(user_name(self._user(number)))

    async def warm(self, numbers: Sequence[int]) -> None:
        for user in {self._hot_user(number) for number in numbers}:
            await self.ours.memories.index(user_name(user), wait_s=CALL_TIMEOUT_S)

    def _user(self, number: int) -> int:
        return number * 7 % self.users

    def _hot_user(self, number: int) -> int:
        return number % self.hot_users

    def _asked(self, user: int, number: int) -> str:
        return _WORLD.asked[_fact(user, number % self.each)].text

    async def _hot(self, number: int) -> str:
        user = self._hot_user(number)
        return (await self.ours.recall.search(question(self._asked(user, number), user_name(user), NOW))).outcome

    async def _cold(self, number: int) -> str:
        user = self._user(number)
        return (await self.ours.recall.search(question(self._asked(user, number), user_name(user), NOW))).outcome

    async def _dense(self, number: int) -> str:
        user = self._user(number)
        return (await self.ours.dense.search(question(self._asked(user, number), user_name(user), NOW))).outcome

    async def _numpy(self, number: int) -> str:
        user = self._hot_user(number)
        cosines = self.matrices[user] @ self.vectors[self._asked(user, number)]
        best = np.argpartition(-cosines, LIMIT)[:LIMIT] if len(cosines) > LIMIT else np.arange(len(cosines))
        best[np.argsort(-cosines[best])].tolist()
        return ""

    async def _bare_query(self, number: int) -> str:
        """What loading a user asks of the store: all rows, with their vectors."""
        await self.client.query(
            self.ours.collection,
            filter=user_filter(user_name(self._user(number))),
            output_fields=ALL_FIELDS,
            limit=5001,
            consistency_level="Bounded",
            timeout=WITHIN_S,
        )
        return ""

    async def _bare_search(self, number: int) -> str:
        """What a dense search asks of it."""
        user = self._user(number)
        await self.client.search(
            self.ours.collection,
            data=[self.vectors[self._asked(user, number)].tolist()],
            anns_field=VECTOR_FIELD,
            filter=search_filter(Scope(user_name(user)), (), NOW),
            limit=OVERFETCH * LIMIT + SPARE_ROWS,
            output_fields=FOUND_FIELDS,
            search_params={"params": {}},
            consistency_level="Bounded",
            timeout=WITHIN_S,
        )
        return ""


_WORLD = world()


def measure(plan: Plan, place: Place, say: Say, *, server: Path = MILVUS_VENV) -> Json:
    """``sizes``, ``ratios``, ``keys``, ``not_measured``: see ``figures``. ``server``: environment of a Milvus server,
    for when the plan names none. Raises Failed."""
    with milvus_server(plan.milvus, place.folder, say, environment=server) as address:
        return run(_measure(replace(plan, milvus=address), place.folder, say))


async def _measure(plan: Plan, folder: Path, say: Say) -> Json:
    shapes = list(zip(plan.scale_memories, plan.scale_users, strict=True))
    vectors, signature = await _vectors(texts(shapes))
    embedder = KnownVectors(vectors, signature)
    async with AsyncExitStack() as stack:
        uri = await stack.enter_async_context(milvus_at(uri_of(plan.milvus), folder / "milvus"))
        client = AsyncMilvusClient(**client_options(uri))
        stack.push_async_callback(client.close)
        version = str(await client.get_server_version(timeout=CALL_TIMEOUT_S))
        sizes: list[_Size] = []
        for memories, users in shapes:
            began = time.perf_counter()
            stored = _memories(memories, users, vectors)
            ours = await stack.enter_async_context(
                recalling(uri, new_name(f"{memories}_{users}"), embedder, folder, stored)
            )
            size = _Size(memories, users, ours, vectors, client, {})
            for user in range(size.hot_users):
                size.matrices[user] = np.stack([vectors[_content(user, k)] for k in range(size.each)])
            sizes.append(size)
            say(f"scale: {memories:,} memories of {users:,} users after {time.perf_counter() - began:.0f} s")
        tallies = await _rounds(sizes, plan, say)
    return {"milvus": version, **figures(tallies, is_server=bool(plan.milvus))}


async def _vectors(some: Iterable[str]) -> tuple[dict[str, Vector], str]:
    """Of these texts, by the shipped model, and its signature. Raises EmbedderError."""
    model = await asyncio.to_thread(local_embedder, Settings().memory.embedding)
    await model.open()
    try:
        return await vectors_of(model, some), model.signature
    finally:
        await model.close()


async def _rounds(sizes: Sequence[_Size], plan: Plan, say: Say) -> dict[tuple[str, str], Tally]:
    """One path at a time, all sizes one after another: what is compared is seconds apart."""
    gc.collect()
    gc.freeze()  # as semmem does when it has started
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    block, ends = max(1, plan.scale_calls // plan.scale_rounds), time.monotonic() + plan.scale_seconds_max
    try:
        for number in range(plan.scale_rounds + 1):  # the first one warms up
            if number > 1 and time.monotonic() > ends:
                break
            some = range(number * block, (number + 1) * block)
            turn = number % len(sizes)
            for path in PATHS:
                for size in [*sizes[turn:], *sizes[:turn]]:
                    await _block(size, path, some, tallies[size.name, path] if number else Tally())
            say(f"scale: round {number} of {plan.scale_rounds}")
    finally:
        gc.unfreeze()
    return tallies


async def _block(size: _Size, path: str, numbers: range, tally: Tally) -> None:
    await size.warm(numbers)
    call, seconds = size.call(path), []
    cpu_s = 0.0
    for number in numbers:
        if path == "cold":
            size.cool(number)
        cpu, began = time.process_time(), time.perf_counter()
        word = await call(number)
        seconds.append(time.perf_counter() - began)
        cpu_s += time.process_time() - cpu
        tally.words[word] += 1
    tally.seconds.append(seconds)
    tally.cpu_us.append(cpu_s / len(seconds) * 1e6)


# --- what is searched ------------------------------------------------------------------------------------------------


def texts(shapes: Iterable[tuple[int, int]]) -> set[str]:
    """Everything that needs a vector: facts and questions, by how many memories there are of how many users."""
    chosen = {_fact(number % users, number // users) for memories, users in shapes for number in range(memories)}
    return {_WORLD.facts[one].content for one in chosen} | {_WORLD.asked[one].text for one in chosen}


def _memories(count: int, users: int, vectors: dict[str, Vector]) -> Iterator[Memory]:
    dice = np.random.default_rng(count + users)
    for number in range(count):
        user, of_user = number % users, number // users
        content = _content(user, of_user)
        vector = vectors[content] + dice.normal(0.0, NOISE, len(vectors[content])).astype(np.float32)
        yield memory(
            number, user_name(user), content, vector / np.float32(np.linalg.norm(vector)), NOW - count + number
        )


def _content(user: int, of_user: int) -> str:
    return _WORLD.facts[_fact(user, of_user)].content


def _fact(user: int, of_user: int) -> int:
    """Which fact a user's memory of this number is; a user has none twice."""
    return (13 * user + 7 * of_user) % len(_WORLD.facts)
