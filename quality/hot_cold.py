"""Whether a user whose memories are in process gets the hits of one whose memories are read from Milvus first."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from quality.folder import Folder, Row
from quality.library import FIRST_PERSON
from quality.scores import Json, Share
from quality.wiring import ALL_MAX, Semmem
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.memory import Scope
from semmem.ports.errors import StoreUnavailable
from semmem.ports.store import Store

QUESTIONS_MAX = 200
CALL_TIMEOUT_S = 60.0
OPEN_TRIES = 10


async def hot_cold(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Questions of the first-person set, asked of both; the memories are those that ``recall`` has stored."""
    questions = _sample(folder.rows("first_person_questions"))
    if not questions:
        return {"hot_cold_equal": None}, {"questions": 0}
    differing: list[str] = []
    async with _milvus_lite(semmem.embedder.dimension) as store:
        memories = [
            memory
            for user in {_user(row) for row in questions}
            for memory in await semmem.store.list(Scope(user), limit=ALL_MAX)
        ]
        if not memories:  # the part that stores them was not asked for
            return {"hot_cold_equal": None}, {"questions": 0}
        for memory in memories:
            await store.put(Scope(memory.user), memory)
        cold = semmem.reading(store)
        for row in questions:
            hot_hits = await semmem.request(row["question"], _user(row))
            cold_hits = await semmem.request(row["question"], _user(row), recall=cold)
            if hot_hits != cold_hits:
                differing.append(row["question"])
    same = Share(len(questions) - len(differing), len(questions))
    return {"hot_cold_equal": same.percent}, {**same.json(), "differing": differing}


def _user(row: Row) -> str:
    return f"{FIRST_PERSON}/{row['user']}"


def _sample(rows: Sequence[Row]) -> list[Row]:
    return list(rows)[:: max(1, len(rows) // QUESTIONS_MAX)]


@asynccontextmanager
async def _milvus_lite(dimension: int) -> AsyncIterator[Store]:
    with tempfile.TemporaryDirectory(prefix="semmem-quality-milvus-") as folder:
        process = MilvusLiteProcess(Path(folder))
        await process.start()
        store = MilvusStore(
            server_options(process.uri),
            collection="quality",
            dimension=dimension,
            signature="quality",
            read_timeout_s=CALL_TIMEOUT_S,
            write_timeout_s=CALL_TIMEOUT_S,
            rows_per_user_max=ALL_MAX,
        )
        try:
            await _opened(store)
            yield store
        finally:
            await store.close()
            await process.stop()


async def _opened(store: Store) -> None:
    """On a busy machine Milvus Lite's port may be open before it answers. Raises StoreUnavailable."""
    for _ in range(OPEN_TRIES - 1):
        with suppress(StoreUnavailable):
            await store.open()
            return
        await asyncio.sleep(1.0)
    await store.open()
