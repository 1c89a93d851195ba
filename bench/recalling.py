"""semmem's retrieval alone, as it is wired: over collections of one Milvus, without doors, journal or Envoy."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop
from pymilvus import MilvusClient, MilvusException

from bench.figures import Json
from demo.processes import Failed
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.rows import row_of
from semmem.backends.sql.journal import SqlJournal
from semmem.background import OffloadThreads, Tasks
from semmem.config import Settings
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.memory import Conversation, Memory, MemoryType, Message, Role, Scope, Vector
from semmem.ports.embedder import Embedder, EmbedderWrapper
from semmem.ports.errors import EmbedderError, SemmemError
from semmem.request.question import Question
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.recall import Recall
from semmem.wiring import backends as backend_parts
from semmem.wiring import request, stores
from semmem.wiring.backends import Backends

CALL_TIMEOUT_S = 60.0
"""Of calls that are not measured: making, filling and dropping collections."""
PATIENT_MS = 20_000
"""In place of the deadlines: a search that comes late shall be measured, not given up."""
INSERT_ROWS = 1000
FLUSH_ROWS = 20_000
"""Milvus Lite keeps up to 64 MB of rows in its buffer, where each costs every search 0.09 ms."""


class KnownVectors:
    """An Embedder of texts whose vectors are there already, so that embedding takes no time."""

    def __init__(self, vectors: Mapping[str, Vector], signature: str) -> None:
        self._vectors = vectors
        self.signature = signature
        self.dimension = len(next(iter(vectors.values())))

    async def open(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        try:
            return self._vectors[text]
        except KeyError:
            raise EmbedderError("no vector was made of this text") from None

    def at_hand(self, text: str) -> Vector | None:
        return self._vectors.get(text)


class TimedEmbedder(EmbedderWrapper):
    """``seconds``: how long callers have waited for vectors so far."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self.seconds = 0.0

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        began = time.perf_counter()
        try:
            return await super().embed(text, within_s=within_s)
        finally:
            self.seconds += time.perf_counter() - began


async def vectors_of(embedder: Embedder, texts: Iterable[str], *, at_a_time: int = 64) -> dict[str, Vector]:
    """Vectors by text. Raises EmbedderError."""
    found: dict[str, Vector] = {}
    rest = iter(dict.fromkeys(texts))
    while some := list(islice(rest, at_a_time)):
        found.update(
            zip(some, await asyncio.gather(*(embedder.embed(text, within_s=math.inf) for text in some)), strict=True)
        )
    return found


def uri_of(address: str) -> str:
    """Of a plan's Milvus server; empty for none."""
    return f"http://{address}" if address else ""


def run(measuring: Coroutine[Any, Any, Json]) -> Json:
    """In an event loop as semmem has it. Raises Failed for what semmem or pymilvus raises."""
    try:
        found: Json = uvloop.run(measuring)
    except (SemmemError, MilvusException) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    return found


@asynccontextmanager
async def milvus_at(uri: str, folder: Path) -> AsyncIterator[str]:
    """The address of a Milvus: ``uri``, or where that is empty a Milvus Lite of its own, whose data are in ``folder``.

    Raises StoreError."""
    if uri:
        yield uri
        return
    process = MilvusLiteProcess(folder)
    await process.start()
    try:
        yield process.uri
    finally:
        await process.stop()


@dataclass(frozen=True, slots=True)
class Ours:
    """``recall`` is what a request has. ``memories``: the users in process. ``dense`` never loads a user: the store's
    own search answers, as it does when a user's memories do not come in time."""

    collection: str
    memories: HotMemories
    recall: Recall
    dense: Recall


@asynccontextmanager
async def recalling(
    uri: str, collection: str, embedder: Embedder, folder: Path, memories: Iterable[Memory]
) -> AsyncIterator[Ours]:
    """Makes the collection, fills it, opens semmem's store on it, and drops it at the end. Raises StoreError."""
    settings = settings_for(uri, collection, folder)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, drop, uri, collection)
        store = await stack.enter_async_context(stores.milvus(settings, embedder.signature, embedder.dimension))
        await asyncio.to_thread(fill, uri, collection, memories, embedder.dimension)
        tasks, indexing = Tasks(), OffloadThreads()
        stack.push_async_callback(indexing.close)
        stack.push_async_callback(tasks.cancel)
        shown = HidingStore(store, Marks())
        hot = backend_parts.hot_memories(settings, shown, tasks.spawn, indexing)
        never_loads = HotMemories(shown, spawn=tasks.spawn, loads_waiting_max=0)
        yield Ours(
            collection,
            hot,
            request.recall(settings, _backends(hot, embedder, folder)),
            request.recall(settings, _backends(never_loads, embedder, folder)),
        )


def settings_for(uri: str, collection: str, folder: Path) -> Settings:
    """The shipped ones, at this Milvus, and with time for everything."""
    return Settings.model_validate(
        {
            "data_dir": str(folder),
            "memory": {"milvus": {"address": uri, "collection": collection, "call_timeout_s": CALL_TIMEOUT_S}},
            "deadlines": {"store_ms": PATIENT_MS, "phase_ms": 2 * PATIENT_MS},
        }
    )


def new_name(what: str) -> str:
    """Of a collection of this run alone."""
    return f"bench_{what}_{secrets.token_hex(4)}"


def client_options(uri: str) -> dict[str, Any]:
    """Of a pymilvus client of one's own. Left to itself it pings every ten seconds, and Milvus Lite hangs up."""
    quiet = {"grpc.keepalive_time_ms": 600_000, "grpc.keepalive_permit_without_calls": False}
    return {"uri": uri, "dedicated": True, "timeout": CALL_TIMEOUT_S, "grpc_options": quiet}


def question(text: str, user: str, now: float) -> Question:
    """A conversation that begins with this message."""
    return Question(Conversation((Message(Role.USER, text),)), Scope(user), now)


def memory(number: int, user: str, content: str, vector: Vector, at: float) -> Memory:
    """A memory as a request's turn would have left it."""
    return Memory(f"m{number}", 1, MemoryType.SEMANTIC, content, user, created_at=at, updated_at=at, embedding=vector)


def number_of(memory_id: str) -> int:
    """The number that a memory was made with."""
    return int(memory_id.removeprefix("m"))


def _backends(memories: HotMemories, embedder: Embedder, folder: Path) -> Backends:
    """The journal is never opened: no search asks it."""
    return Backends(memories, embedder, SqlJournal(folder / "journal.db"), {})


def fill(uri: str, collection: str, memories: Iterable[Memory], dimension: int) -> None:
    """Many rows in one insert, where semmem's own writes, which look first what is there, would take a quarter of an
    hour for 100,000. Flushed, as semmem does in the background on Milvus Lite."""
    client = MilvusClient(**client_options(uri))
    rest, unflushed = iter(memories), 0
    try:
        while rows := [row_of(one, one.embedding, dimension) for one in islice(rest, INSERT_ROWS)]:
            client.insert(collection, rows, timeout=CALL_TIMEOUT_S)
            unflushed += len(rows)
            if unflushed >= FLUSH_ROWS:
                client.flush(collection, timeout=CALL_TIMEOUT_S)
                unflushed = 0
        client.flush(collection, timeout=CALL_TIMEOUT_S)
    finally:
        client.close()


def drop(uri: str, collection: str) -> None:
    """Blocking. Raises MilvusException."""
    client = MilvusClient(**client_options(uri))
    try:
        client.drop_collection(collection, timeout=CALL_TIMEOUT_S)
    finally:
        client.close()
