"""The floor of a search: a process that only embeds, or only asks Milvus, with what semmem does that by.

It answers JSON lines on a socket of 127.0.0.1, one at a time:

    {"do": "forward", "texts": [...], "at_once": 8}   each text by itself, so many at a time -> {"seconds": [...]}
    {"do": "list", "count": 30, "at_once": 8}         all rows of the user, as a cold search reads them
    {"do": "search", "count": 30, "at_once": 8}       the nearest rows, with vectors of the texts embedded last
    {"do": "batched", "seconds": 5.0, "at_once": 64}  as many texts as can be -> {"a_second": 410.0}

The embedder is the one that semmem's wiring builds from the same settings, with its threads and batches; Milvus is
called by pymilvus itself, with the filter, the fields and the consistency of semmem's store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import uvloop
from pymilvus import AsyncMilvusClient

from bench.cases import USER, distinct_question
from semmem.backends.milvus.rows import ALL_FIELDS, FOUND_FIELDS, VECTOR_FIELD, search_filter, user_filter
from semmem.config import load
from semmem.config.settings import Settings
from semmem.memory import Scope, Vector
from semmem.ports.embedder import Embedder
from semmem.wiring.models import local_embedder

LINE_BYTES_MAX = 16 * 1024**2
CALL_TIMEOUT_S = 30.0
ROWS_MAX = 5000
NEAREST = 14
"""Rows that semmem asks a store for when five memories are wanted: twice as many, and four more."""
VECTORS_KEPT = 256

Asked = dict[str, Any]


class Bare:
    """What is called, and nothing around it."""

    def __init__(self, settings: Settings, embedder: Embedder, milvus_uri: str) -> None:
        self._embedder = embedder
        self._collection = settings.memory.milvus.collection
        self._milvus = AsyncMilvusClient(uri=milvus_uri) if milvus_uri else None
        self._vectors: deque[list[float]] = deque(maxlen=VECTORS_KEPT)

    async def do(self, asked: Asked) -> Asked:
        """Raises KeyError for work that is none."""
        at_once = int(asked["at_once"])
        if asked["do"] == "batched":
            return {"a_second": await self._batched(float(asked["seconds"]), at_once)}
        if asked["do"] == "forward":
            return {"seconds": await timed(self._forward, asked["texts"], at_once)}
        work = {"list": self._list, "search": self._search}[asked["do"]]
        return {"seconds": await timed(work, range(int(asked["count"])), at_once)}

    async def _forward(self, text: str) -> None:
        self._vectors.append((await self._embed(text)).tolist())

    async def _embed(self, text: str) -> Vector:
        """As a request, which goes before background work and has all workers and whole batches."""
        return await self._embedder.embed(text, within_s=CALL_TIMEOUT_S)

    async def _list(self, _number: int) -> None:
        assert self._milvus is not None
        await self._milvus.query(
            self._collection,
            filter=user_filter(USER),
            output_fields=ALL_FIELDS,
            limit=ROWS_MAX,
            timeout=CALL_TIMEOUT_S,
            consistency_level="Bounded",
        )

    async def _search(self, number: int) -> None:
        assert self._milvus is not None
        await self._milvus.search(
            self._collection,
            data=[self._vectors[number % len(self._vectors)]],
            anns_field=VECTOR_FIELD,
            filter=search_filter(Scope(USER), (), time.time()),
            limit=NEAREST,
            output_fields=FOUND_FIELDS,
            timeout=CALL_TIMEOUT_S,
            consistency_level="Bounded",
        )

    async def _batched(self, seconds: float, at_once: int) -> float:
        """Texts a second while ``at_once`` callers never pause, so that every batch is full."""
        began = time.monotonic()
        texts = itertools.takewhile(
            lambda _text: time.monotonic() - began < seconds, map(distinct_question, itertools.count())
        )
        done = await timed(self._embed, texts, at_once)
        return len(done) / (time.monotonic() - began)


async def timed(work: Callable[[Any], Awaitable[object]], items: Iterable[Any], at_once: int) -> list[float]:
    """Seconds of each piece of work, ``at_once`` of them under way."""
    rest = iter(items)
    async with asyncio.TaskGroup() as workers:
        tasks = [workers.create_task(_each(work, rest)) for _ in range(at_once)]
    return [seconds for task in tasks for seconds in task.result()]


async def _each(work: Callable[[Any], Awaitable[object]], items: Iterator[Any]) -> list[float]:
    seconds = []
    for item in items:
        began = time.perf_counter()
        await work(item)
        seconds.append(time.perf_counter() - began)
    return seconds


async def _serve(config: Path, milvus_uri: str) -> None:
    settings = load(config, os.environ)
    embedder = local_embedder(settings.memory.embedding)
    await embedder.open()
    bare = Bare(settings, embedder, milvus_uri)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(await bare.do(json.loads(line))).encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=LINE_BYTES_MAX)
    print(f"bare ready {server.sockets[0].getsockname()[1]} {embedder.signature}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True, help="semmem's")
    parser.add_argument("--milvus", default="", metavar="URI")
    arguments = parser.parse_args()
    uvloop.run(_serve(arguments.config, arguments.milvus))
