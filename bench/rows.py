"""What a row costs a Milvus server, and Milvus Lite: ``python -m bench.rows`` (docs/scale.md has the figures).

For each index and number of rows a collection of its own, as semmem makes it: 384 numbers a vector, a hundred memories
a user, a partition key on the user. Its rows are written, indexed and loaded; then users are searched for and listed
one after another, as semmem does. Processor time is the server's own less what it uses when nobody asks, so that other
work on the machine hardly counts; what is found is compared with an exact search over the user's own vectors.

    python -m bench.rows --rows 1000 10000 --index FLAT HNSW --lite
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pymilvus import MilvusClient

from bench.kernel import children, cpu_seconds, resident_mb
from bench.own_milvus import milvus_server
from bench.recalling import CALL_TIMEOUT_S, INSERT_ROWS, client_options, drop, fill, milvus_at, new_name
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.rows import VECTOR_FIELD, row_of
from semmem.backends.milvus.store import MilvusStore
from semmem.memory import Memory, MemoryType, Scope

ROWS = (1_000, 10_000, 100_000)
INDEXES = ("FLAT", "HNSW", "IVF_SQ8")
DIMENSION = 384
PER_USER = 100
TOPICS = 2_000
SPREAD = 0.7
"""How far a memory lies from its topic, in lengths of the topic's own vector: cosines of 0.8 and less within one."""
CONTENT_CHARS = 120
SEARCHES = 200
LISTS = 50
FACTS = 20
BATCHES = 5
LIMIT = 5
NOW = 1_800_000_000.0
IDLE_S = 5.0
SETTLE_S_MAX = 300.0
BUSY_CPU = 0.3
"""Share of a core above which a server is still merging or indexing."""

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    uri: str
    pid: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Asked:
    """Calls one after another: milliseconds of the median, and of the server's processor for each."""

    median_ms: float
    cpu_ms: float

    def __str__(self) -> str:
        return f"{self.median_ms:7.1f} {self.cpu_ms:7.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--index", nargs="+", default=INDEXES)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--lite", action="store_true", help="Milvus Lite instead of a server")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="semmem-rows-") as folder:
        return asyncio.run(_run(Path(folder), arguments))


async def _run(folder: Path, arguments: argparse.Namespace) -> int:
    print(
        "index     rows    insert/s  ms CPU/row  MB RSS  bytes/row  log/row"
        "  search ms  CPU  recall@5 short  list ms  CPU  fact ms  CPU"
    )
    with milvus_server("", folder, print) if not arguments.lite else _nothing() as address:
        if not arguments.lite and not address:
            print("no server: make .venv-milvus/.ready", file=sys.stderr)
            return 2
        async with milvus_at(f"http://{address}" if address else "", folder / "lite") as uri:
            engine = Engine("lite" if arguments.lite else "server", uri, _engine_pid(), folder)
            for index in arguments.index:
                for rows in arguments.rows:
                    await _measure(engine, index, rows, arguments.partitions)
    return 0


class _nothing:
    def __enter__(self) -> str:
        return ""

    def __exit__(self, *_: object) -> None:
        pass


async def _measure(engine: Engine, index: str, rows: int, partitions: int) -> None:
    collection, vectors = new_name("rows"), _vectors(rows)
    before, disk, log = resident_mb(engine.pid)["rss"], _bytes(engine.folder), _log_bytes(engine.folder)
    store = MilvusStore(
        server_options(engine.uri),
        collection=collection,
        dimension=DIMENSION,
        signature="rows",
        index=index,
        num_partitions=partitions,
        search_timeout_s=CALL_TIMEOUT_S,
        read_timeout_s=CALL_TIMEOUT_S,
        open_timeout_s=CALL_TIMEOUT_S,
    )
    await store.open()
    try:
        began, worked = time.perf_counter(), cpu_seconds(engine.pid)
        await asyncio.to_thread(_fill, engine, collection, _memories(vectors))
        took = time.perf_counter() - began
        if engine.name == "server":
            await asyncio.to_thread(_built, engine, collection, rows)
        worked = cpu_seconds(engine.pid) - worked
        idle = await _idle(engine)
        size, logged = _bytes(engine.folder) - disk, _log_bytes(engine.folder) - log
        found, searched = await _searched(engine, store, vectors, idle)
        listed = await _listed(engine, store, len(vectors) // PER_USER, idle)
        learnt = await _learnt(engine, store, vectors, idle)
        recall, short = _recall(found, vectors)
        print(
            f"{index:8} {rows:7} {rows / took:9.0f} {1000 * worked / rows:11.2f}"
            f" {resident_mb(engine.pid)['rss'] - before:7.0f} {(size - logged) / rows:10.0f} {logged / rows:8.0f}"
            f" {searched} {100 * recall:9.2f} {short:5} {listed} {learnt}",
            flush=True,
        )
    finally:
        await store.close()
        await asyncio.to_thread(drop, engine.uri, collection)


# --- material --------------------------------------------------------------------------------------------------------


def _vectors(rows: int) -> Vectors:
    random = np.random.default_rng(1)
    topics = random.standard_normal((TOPICS, DIMENSION), dtype=np.float32)
    found = topics[random.integers(TOPICS, size=rows)]
    found += SPREAD * random.standard_normal((rows, DIMENSION), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)  # type: ignore[no-any-return]


def _memories(vectors: Vectors) -> Iterator[Memory]:
    """A user's lie apart from each other, as they come in over time."""
    users = len(vectors) // PER_USER
    for number, vector in enumerate(vectors):
        text = f"What somebody told of himself, number {number}. ".ljust(CONTENT_CHARS, "x")
        yield Memory(
            f"mem_{number:032}",
            1,
            MemoryType.SEMANTIC,
            text,
            _user(number % users),
            created_at=NOW,
            updated_at=NOW,
            embedding=vector,
        )


def _user(number: int) -> str:
    return f"user-{number:08}"


def _questions(vectors: Vectors) -> list[tuple[int, npt.NDArray[np.float32]]]:
    """Whom to ask for, and what: something like one of his memories."""
    random, users = np.random.default_rng(2), len(vectors) // PER_USER
    picked = random.integers(len(vectors), size=SEARCHES)
    noise = random.standard_normal((SEARCHES, DIMENSION), dtype=np.float32) / DIMENSION**0.5
    asked = vectors[picked] + noise
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    return [(int(number) % users, question) for number, question in zip(picked, asked, strict=True)]


# --- asking ----------------------------------------------------------------------------------------------------------


async def _searched(engine: Engine, store: MilvusStore, vectors: Vectors, idle: float) -> tuple[list[set[str]], Asked]:
    questions, found, times = _questions(vectors), [], []
    for user, question in questions[:10]:
        await store.search(Scope(_user(user)), question, limit=LIMIT, now=NOW)
    began, worked = time.perf_counter(), cpu_seconds(engine.pid)
    for user, question in questions:
        at = time.perf_counter()
        hits = await store.search(Scope(_user(user)), question, limit=LIMIT, now=NOW)
        times.append(time.perf_counter() - at)
        found.append({hit.memory.id for hit in hits})
    return found, _asked(times, cpu_seconds(engine.pid) - worked - idle * (time.perf_counter() - began))


async def _listed(engine: Engine, store: MilvusStore, users: int, idle: float) -> Asked:
    """As semmem reads a user whole, with vectors."""
    times = []
    began, worked = time.perf_counter(), cpu_seconds(engine.pid)
    for number in range(LISTS):
        at = time.perf_counter()
        found = await store.list(Scope(_user(number % users)), limit=PER_USER)
        assert len(found) == PER_USER
        times.append(time.perf_counter() - at)
    return _asked(times, cpu_seconds(engine.pid) - worked - idle * (time.perf_counter() - began))


async def _learnt(engine: Engine, store: MilvusStore, vectors: Vectors, idle: float) -> Asked:
    """Facts of a batch: each is compared with what is known and written, then the user's memories are counted."""
    times = []
    began, worked = time.perf_counter(), cpu_seconds(engine.pid)
    for batch in range(BATCHES):
        user, as_of, at = f"learner-{batch}", time.time(), time.perf_counter()
        for number, vector in enumerate(vectors[:FACTS]):
            await store.search(Scope(user), vector, limit=FACTS, now=NOW, as_of=as_of)
            fact = Memory(f"mem_{number}", 1, MemoryType.SEMANTIC, "a fact", user, created_at=NOW, embedding=vector)
            await store.put(Scope(user), fact)
        assert await store.count(Scope(user)) == FACTS
        times += [(time.perf_counter() - at) / FACTS] * FACTS
    return _asked(times, cpu_seconds(engine.pid) - worked - idle * (time.perf_counter() - began))


def _asked(times: Sequence[float], worked: float) -> Asked:
    return Asked(1000 * statistics.median(times), 1000 * worked / len(times))


def _recall(found: list[set[str]], vectors: Vectors) -> tuple[float, int]:
    """The share of the exact nearest that was found, and how many answers were shorter than they should be."""
    users, shares = len(vectors) // PER_USER, []
    for (user, question), ids in zip(_questions(vectors), found, strict=True):
        own = vectors[user::users]
        exact = np.argsort(-(own @ question))[:LIMIT]
        shares.append(len(ids & {f"mem_{user + users * at:032}" for at in exact.tolist()}) / LIMIT)
    return statistics.fmean(shares), sum(len(ids) < LIMIT for ids in found)


def _fill(engine: Engine, collection: str, memories: Iterator[Memory]) -> None:
    """Milvus Lite is flushed in between, as semmem does; a server decides by itself, until the end."""
    if engine.name == "lite":
        fill(engine.uri, collection, memories, DIMENSION)
        return
    client = MilvusClient(**client_options(engine.uri))
    try:
        while rows := [row_of(one, one.embedding, DIMENSION) for one in islice(memories, INSERT_ROWS)]:
            client.insert(collection, rows, timeout=CALL_TIMEOUT_S)
        client.flush(collection, timeout=SETTLE_S_MAX)
    finally:
        client.close()


# --- the engine ------------------------------------------------------------------------------------------------------


def _engine_pid() -> int:
    """The process below this one that has a Milvus in it."""
    for pid, argv in children(os.getpid()).items():
        if any("lite_server" in each for each in argv):
            return pid
        for grandchild, own in children(pid).items():
            if own and own[0].endswith("/milvus"):
                return grandchild
    raise RuntimeError("no Milvus was started here")


def _built(engine: Engine, collection: str, rows: int) -> None:
    """Until everything is indexed, merged and loaded anew, with nothing left of the whole vectors beside the index."""
    client = MilvusClient(**client_options(engine.uri))
    try:
        deadline = time.monotonic() + SETTLE_S_MAX
        while time.monotonic() < deadline:
            state = client.describe_index(collection, VECTOR_FIELD, timeout=CALL_TIMEOUT_S)
            at_work = _busy(engine)
            if int(state.get("pending_index_rows", 0)) == 0 and at_work < BUSY_CPU:
                break
        client.release_collection(collection, timeout=SETTLE_S_MAX)
        client.load_collection(collection, timeout=SETTLE_S_MAX)
    finally:
        client.close()


def _busy(engine: Engine) -> float:
    """The share of a core over two seconds."""
    worked = cpu_seconds(engine.pid)
    time.sleep(2.0)
    return (cpu_seconds(engine.pid) - worked) / 2.0


async def _idle(engine: Engine) -> float:
    worked = cpu_seconds(engine.pid)
    await asyncio.sleep(IDLE_S)
    return (cpu_seconds(engine.pid) - worked) / IDLE_S


def _bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _log_bytes(folder: Path) -> int:
    """The message queue of a server, which keeps what was written for three days."""
    return sum(_bytes(each) for each in folder.rglob("rocksmq*") if each.is_dir())


if __name__ == "__main__":
    sys.exit(main())
