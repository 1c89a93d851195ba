"""What an index costs that keeps vectors in fewer bytes, or follows a graph: ``python -m quality.quantisation FOLDER``.

Each memory of the folder's retrieval sets lies with its own user, in one partition, and each question is asked of its
user's memories. Beside the store's answers stand the exact ones, computed here from the whole vectors. ``--milvus``
names a server; without it one Milvus Lite is started. An index that the server does not have is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pymilvus import MilvusClient

from bench.recalling import client_options, drop, fill, memory, milvus_at, new_name
from quality.folder import Folder, FolderError, read_folder
from quality.scores import mean
from quality.vectors import PrefetchedEmbedder
from quality.wiring import own_embedder
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.indexes import INDEXES
from semmem.backends.milvus.store import MilvusStore
from semmem.config import Settings
from semmem.memory import Hit, Memory, Scope, Vector
from semmem.ports.errors import StoreError

LIMIT = 5
NOW = 1_800_000_000.0
BUILT_WITHIN_S = 120.0
OPEN_TIMEOUT_S, CALL_TIMEOUT_S = 60.0, 20.0
SETS = {
    "first_person_facts": ("first_person_questions", "user"),
    "locomo_turns": ("locomo_questions", "conversation"),
    "bfcl_turns": ("bfcl_questions", "scenario"),
}
"""Sets of memories, the questions about them, and the field that says whose they are."""


@dataclass(frozen=True, slots=True)
class Material:
    """Memories by user, and (user, vector of a question)."""

    memories: dict[str, list[Memory]]
    questions: list[tuple[str, Vector]]

    def exact(self, user: str, question: Vector) -> dict[str, float]:
        """The nearest memories' ids, and their cosines."""
        own = self.memories[user]
        cosines = np.stack([one.embedding for one in own if one.embedding is not None]) @ question
        nearest = np.argsort(-cosines, kind="stable")[:LIMIT]
        return {own[at].id: float(cosines[at]) for at in nearest}


@dataclass(frozen=True, slots=True)
class Cost:
    """Over all questions: share of the exact five that were found, questions that found fewer than there are, the mean
    and greatest difference of a cosine from the exact one, and milliseconds of a search."""

    recall: float
    short: int
    error: float
    error_max: float
    search_ms: float


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 measured, 2 the folder cannot be read."""
    parser = argparse.ArgumentParser(prog="quality.quantisation", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the sets, as for python -m quality")
    parser.add_argument("--milvus", default="", help="URL of a Milvus server, for example http://127.0.0.1:19530")
    parser.add_argument("--save", type=Path, help="keep the vectors in this file, for quantisation_qdrant.py, and stop")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors between runs")
    arguments = parser.parse_args(argv)
    try:
        folder = read_folder(arguments.folder)
    except FolderError as error:
        sys.stderr.write(f"quality.quantisation: {error}\n")
        return 2
    asyncio.run(_run(folder, arguments))
    return 0


async def material_of(folder: Folder, embedder: PrefetchedEmbedder) -> Material:
    told = [(row[whose], row["text"]) for name, (_, whose) in SETS.items() for row in folder.rows(name)]
    asked = [(row[whose], row["question"]) for name, whose in SETS.values() for row in folder.rows(name)]
    await embedder.prefetch([text for _, text in (*told, *asked)], lambda done, all_: None)
    memories: dict[str, list[Memory]] = {}
    for number, (user, text) in enumerate(told):
        memories.setdefault(user, []).append(memory(number, user, text, await embedder.embed(text), NOW))
    return Material(memories, [(user, await embedder.embed(text)) for user, text in asked if user in memories])


async def cost_of(index: str, uri: str, material: Material, dimension: int) -> Cost:
    """Raises StoreError, also when this Milvus does not have the index."""
    collection = new_name(f"quantisation_{index.lower()}")
    store = MilvusStore(
        server_options(uri),
        collection=collection,
        dimension=dimension,
        signature="quality",
        index=index,
        num_partitions=1,
        search_timeout_s=CALL_TIMEOUT_S,
        open_timeout_s=OPEN_TIMEOUT_S,
    )
    await store.open()
    try:
        rows = [one for own in material.memories.values() for one in own]
        await asyncio.to_thread(fill, uri, collection, rows, dimension)
        await asyncio.to_thread(_wait_until_built, uri, collection, len(rows))
        return await _asked(store, material)
    finally:
        await store.close()
        await asyncio.to_thread(drop, uri, collection)


async def _asked(store: MilvusStore, material: Material) -> Cost:
    recalls, errors, short, began = [], [], 0, time.perf_counter()
    answers = [await store.search(Scope(user), question, limit=LIMIT, now=NOW) for user, question in material.questions]
    search_ms = 1000 * (time.perf_counter() - began) / len(answers)
    for (user, question), hits in zip(material.questions, answers, strict=True):
        exact = material.exact(user, question)
        recalls.append(len({hit.memory.id for hit in hits} & exact.keys()) / len(exact))
        errors += [_error(hit, exact) for hit in hits if hit.memory.id in exact]
        short += len(hits) < len(exact)
    return Cost(mean(recalls) or 0.0, short, mean(errors) or 0.0, max(errors, default=0.0), search_ms)


def _error(hit: Hit, exact: dict[str, float]) -> float:
    return abs(hit.cosine - exact[hit.memory.id])


def _wait_until_built(uri: str, collection: str, rows: int) -> None:
    """A server indexes in the background; searches before that compare whole vectors."""
    client = MilvusClient(**client_options(uri))
    try:
        deadline = time.monotonic() + BUILT_WITHIN_S
        while time.monotonic() < deadline:
            state = client.describe_index(collection, "embedding", timeout=CALL_TIMEOUT_S)
            if int(state.get("indexed_rows", 0)) >= rows and not int(state.get("pending_index_rows", 0)):
                break
            time.sleep(0.5)
        sys.stderr.write(f"quality.quantisation: {state.get('indexed_rows')} of {rows} rows indexed\n")
        client.release_collection(collection, timeout=CALL_TIMEOUT_S)
        client.load_collection(collection, timeout=CALL_TIMEOUT_S)  # else the whole vectors stay in use for a while
    finally:
        client.close()


async def _run(folder: Folder, arguments: argparse.Namespace) -> None:
    embedder = PrefetchedEmbedder(own_embedder(Settings()), cache=arguments.cache)
    await embedder.open()
    material = await material_of(folder, embedder)
    await embedder.close()
    if arguments.save:
        _save(material, arguments.save)
        return
    memories = sum(map(len, material.memories.values()))
    print(f"{memories} memories of {len(material.memories)} users, {len(material.questions)} questions")
    with tempfile.TemporaryDirectory(prefix="semmem-quantisation-") as scratch:
        async with milvus_at(arguments.milvus, Path(scratch)) as address:
            for line in await _lines(address, material, embedder.dimension):
                print(line)


def _save(material: Material, path: Path) -> None:
    everything = [one for own in material.memories.values() for one in own]
    np.savez(
        path,
        users=np.array([one.user for one in everything]),
        vectors=np.stack([one.embedding for one in everything if one.embedding is not None]),
        question_users=np.array([user for user, _ in material.questions]),
        questions=np.stack([question for _, question in material.questions]),
    )


async def _lines(uri: str, material: Material, dimension: int) -> Sequence[str]:
    lines = ["index    recall@5  short  cosine off by  at most  ms"]
    for index in INDEXES:
        try:
            cost = await cost_of(index, uri, material, dimension)
        except StoreError as error:
            lines.append(f"{index:8} {error}")
            continue
        lines.append(
            f"{index:8} {100 * cost.recall:8.2f} {cost.short:6} {cost.error:14.5f} {cost.error_max:8.5f}"
            f" {cost.search_ms:3.1f}"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
