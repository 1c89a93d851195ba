"""How long a purge of the embedded store takes, and what readers and writers notice: ``python -m bench.purge``.

For each number of rows: so many memories of 100 users in Milvus Lite, 384 dimensions, 200 characters each; one user is
forgotten and purged, then half of the others. A reader lists one user and searches for another all the while.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from semmem.backends.milvus.collections import LiteStore
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.background import Tasks
from semmem.memory import Memory, MemoryType, Scope

ROWS = (1_000, 10_000)
USERS = 100
DIMENSION = 384
CONTENT_CHARS = 200


def main() -> None:
    for rows in [int(number) for number in sys.argv[1:]] or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_measure(Path(folder), rows))


async def _measure(folder: Path, rows: int) -> None:
    process = MilvusLiteProcess(folder / "milvus")
    store = LiteStore(
        process,
        purge_timeout_s=600.0,
        collection="memories",
        dimension=DIMENSION,
        signature="bench/384",
        search_timeout_s=60.0,
        read_timeout_s=60.0,
        write_timeout_s=60.0,
    )
    await process.start()
    await store.open()
    for number in range(rows):
        await store.put(Scope(f"user{number % USERS}"), _memory(number))
    await asyncio.sleep(5)
    _show(rows, "no purge", 5.0, await _noticed(store, lambda: asyncio.sleep(5)))
    await store.forget_scope(Scope("user0"))
    await _purge(store, rows, "one user gone")
    for number in range(1, USERS // 2):
        await store.forget_scope(Scope(f"user{number}"))
    await _purge(store, rows, "half gone")
    await _purge(store, rows, "nothing gone")
    await store.close()
    await process.stop()


def _memory(number: int) -> Memory:
    vector = np.random.default_rng(number).standard_normal(DIMENSION).astype(np.float32)
    text = "".join(random.Random(number).choices("abcdefghij klmnop", k=CONTENT_CHARS))
    return Memory(
        id=f"mem_{number}",
        user=f"user{number % USERS}",
        version=1,
        type=MemoryType.SEMANTIC,
        content=text,
        created_at=1e9,
        updated_at=1e9,
        embedding=vector / np.linalg.norm(vector),
    )


async def _purge(store: LiteStore, rows: int, what: str) -> None:
    began = time.perf_counter()
    took = 0.0

    async def purge() -> None:
        nonlocal took
        await store.purge()
        took = time.perf_counter() - began

    noticed = await _noticed(store, purge)
    _show(rows, what, took, noticed)


async def _noticed(store: LiteStore, work: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each read while ``work`` ran; at least one."""
    reads: list[float] = []
    done = asyncio.Event()
    query = np.full(DIMENSION, DIMENSION**-0.5, dtype=np.float32)

    async def read() -> None:
        while not done.is_set() or not reads:
            began = time.perf_counter()
            await store.list(Scope("user98"))
            await store.search(Scope("user99"), query, limit=5, now=1e9)
            reads.append(time.perf_counter() - began)

    reading = Tasks().spawn("read", read())
    await work()
    done.set()
    await reading
    return reads


def _show(rows: int, what: str, took: float, reads: list[float]) -> None:
    middle, worst = statistics.median(reads) * 1000, max(reads) * 1000
    print(f"{rows:7} rows, {what:13}: {took:6.2f} s, a list and a search p50 {middle:6.1f} ms, worst {worst:7.1f} ms")


if __name__ == "__main__":
    main()
