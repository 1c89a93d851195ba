"""What was removed leaves the files: every file below the data directory is searched for canaries."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from milvus_lite import CollectionSchema, DataType, FieldSchema, MilvusLite

from semmem.backends.milvus import lite_files
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.background import Tasks
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.errors import StoreError
from tests.support.disk import files_holding
from tests.support.embedded import EmbeddedMilvus
from tests.support.memories import DIMENSION, memory, put, towards

OPTIONS: dict[str, Any] = {
    "collection": "memories",
    "dimension": DIMENSION,
    "signature": "test/16",
    "search_timeout_s": 30.0,
    "read_timeout_s": 30.0,
    "write_timeout_s": 60.0,
}


@asynccontextmanager
async def embedded(data_dir: Path, **options: Any) -> AsyncIterator[EmbeddedMilvus]:
    store = EmbeddedMilvus(MilvusLiteProcess(data_dir / "milvus"), **{**OPTIONS, **options})
    await store.open()
    try:
        yield store
    finally:
        await store.close()


PARTS = 5
"""Of the time that a purge takes: one is let be and measured, the others are killed after one part of it, two, ..."""


ROWS = 32
"""Of each user, while others read: in several files."""


def told(user: str, number: int, canary: str) -> Memory:
    """A memory with the canary wherever a client can put text."""
    return memory(
        user,
        f"mem_{number}",
        content=f"{canary}-content-秘密-{number}",
        session=f"{canary}-session",
        project=f"{canary}-project",
        agent=f"{canary}-agent",
        key=f"{canary}-key-{number}",
        metadata={"note": f"{canary}-metadata"},
    )


def canary() -> str:
    return "canary" + secrets.token_hex(6)


async def contents(store: MilvusStore, user: str) -> set[str]:
    return {one.content for one in await store.list(Scope(user), limit=10_000)}


async def test_without_a_purge_removed_rows_stay_and_after_one_no_file_holds_them(data_dir: Path) -> None:
    gone, stays = canary(), canary()
    async with embedded(data_dir, flush_rows=10, flush_interval_s=0.2) as store:
        for number in range(25):
            await put(store, told(f"{gone}-user", number, gone), told(f"{stays}-user", number, stays))
        await asyncio.sleep(1)
        assert await store.forget_scope(Scope(f"{gone}-user")) == 25
        await asyncio.sleep(1)
        assert files_holding(data_dir, [gone]), "deleted rows lie in Parquet files: the search sees them"
        assert await store.purge() is True
        assert files_holding(data_dir, [gone]) == set()
        assert files_holding(data_dir, [stays])
        assert await contents(store, f"{stays}-user") == {f"{stays}-content-秘密-{number}" for number in range(25)}
    assert files_holding(data_dir, [gone]) == set()
    async with embedded(data_dir) as store:
        assert await store.count(Scope(f"{stays}-user")) == 25
        assert await store.count(Scope(f"{gone}-user")) == 0
        assert files_holding(data_dir, [gone]) == set()


async def test_a_row_that_came_and_went_before_any_flush_is_in_no_log_after_a_purge(data_dir: Path) -> None:
    gone = canary()
    async with embedded(data_dir, flush_rows=10_000, flush_interval_s=600) as store:
        await put(store, told("u", 1, gone))
        assert await store.forget(Scope("u"), "mem_1")
        assert files_holding(data_dir, [gone])
        await store.purge()
        assert files_holding(data_dir, [gone]) == set()


async def test_replaced_versions_leave_too_and_one_deleted_and_told_again_stays(data_dir: Path) -> None:
    old, new = canary(), canary()
    async with embedded(data_dir, flush_rows=1, flush_interval_s=0.1) as store:
        first = memory("u", "m", content=old)
        await put(store, first, memory("u", "again", content="told again"))
        await asyncio.sleep(0.5)
        await put(store, memory("u", "m", version=2, content=new))
        await store.forget(Scope("u"), "again")
        await asyncio.sleep(0.5)
        await put(store, memory("u", "again", content="told again"))
        await store.purge()
        assert files_holding(data_dir, [old]) == set()
        assert await contents(store, "u") == {new, "told again"}
        await store.purge()
    async with embedded(data_dir) as store:
        assert await contents(store, "u") == {new, "told again"}


async def test_what_is_removed_after_a_purge_stays_removed_over_a_restart(data_dir: Path) -> None:
    async with embedded(data_dir, flush_rows=1, flush_interval_s=0.1) as store:
        await put(store, *(memory("u", f"m{number}") for number in range(6)))
        await store.forget(Scope("u"), "m0")
        await store.purge()
        await store.forget(Scope("u"), "m1")
        await asyncio.sleep(0.5)
        await store.purge()
        await store.forget(Scope("u"), "m2")
    async with embedded(data_dir) as store:
        assert {one.id for one in await store.list(Scope("u"))} == {"m3", "m4", "m5"}


@pytest.mark.long(8)
async def test_reads_during_purges_miss_nothing_and_show_nothing_removed(data_dir: Path) -> None:
    """What stays and what goes are one user's, and so in the same files, which are written anew meanwhile."""
    stays, goes = Scope("u", session="stays"), Scope("u", session="goes")
    async with embedded(data_dir, flush_rows=15, flush_interval_s=0.2) as store:
        for number in range(ROWS):
            await put(store, memory("u", f"s{number}", session="stays"), memory("u", f"g{number}", session="goes"))
        reads = 0

        async def read() -> None:
            nonlocal reads
            while not done.is_set():
                assert len(await store.list(stays, limit=ROWS)) == ROWS
                hits = await store.search(stays, towards(0), limit=ROWS, now=0)
                assert len(hits) == ROWS
                reads += 1

        done = asyncio.Event()
        tasks = Tasks()
        readers = [tasks.spawn("read", read()) for _ in range(2)]
        for part in range(4):
            for number in range(part, ROWS, 4):
                await store.forget(goes, f"g{number}")
            await store.purge()
            assert await store.count(goes) == ROWS * (3 - part) // 4
        done.set()
        await asyncio.gather(*readers)
        assert reads > 4


async def test_writes_and_purges_at_once_lose_nothing(data_dir: Path) -> None:
    async with embedded(data_dir, flush_rows=5, flush_interval_s=0.1) as store:

        async def write(user: str) -> None:
            for number in range(20):
                await put(store, memory(user, f"k{number}"), memory(user, f"d{number}"))
                await store.forget(Scope(user), f"d{number}")

        async def purge() -> None:
            for _ in range(5):
                await store.purge()

        await asyncio.gather(write("a"), write("b"), purge(), purge())
        for user in ("a", "b"):
            assert {one.id for one in await store.list(Scope(user))} == {f"k{number}" for number in range(20)}


@pytest.mark.long(20)
async def test_a_child_killed_during_a_purge_loses_no_survivor_and_brings_nothing_back(data_dir: Path) -> None:
    """Killed at moments spread over the whole purge; afterwards the survivors are there, and the next purge ends."""
    gone = canary()
    process = MilvusLiteProcess(data_dir / "milvus", restart_delay_s=0.05)
    store = EmbeddedMilvus(process, **{**OPTIONS, "flush_rows": 10, "flush_interval_s": 0.1})
    await store.open()
    survivors: set[str] = set()
    took_s, killed = 1.0, 0
    try:
        for part in range(PARTS):
            users = [f"user{number}" for number in range(6)]
            await put(store, *(memory(user, f"keep{part}", content=f"{user} {part}") for user in users))
            await put(store, *(told(user, part, gone) for user in users))
            survivors |= {f"{user} {part}" for user in users}
            for user in users:
                await store.forget(Scope(user), f"mem_{part}")
            began = time.monotonic()
            purging = Tasks().spawn("purge", store.purge())
            if part == 0:
                await purging
                took_s = time.monotonic() - began
                continue
            await asyncio.sleep(took_s * part / PARTS)
            if not purging.done() and process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
            await asyncio.wait([purging])
            purging.exception()
            await _until_it_answers(store)
            found = {content for user in users for content in await contents(store, user)}
            assert found == survivors
        await store.purge()
        assert files_holding(data_dir, [gone]) == set()
        assert killed > 0
    finally:
        await store.close()


async def _until_it_answers(store: MilvusStore) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await store.health()
                return
            except StoreError:
                await asyncio.sleep(0.1)


async def test_a_server_says_that_a_purge_is_not_in_its_client_s_hands() -> None:
    store = MilvusStore(server_options("http://127.0.0.1:1"), **OPTIONS)
    assert await store.purge() is False


async def test_every_type_of_memory_leaves_the_files(data_dir: Path) -> None:
    left = {kind: canary() for kind in MemoryType}
    async with embedded(data_dir, flush_rows=1, flush_interval_s=0.05) as store:
        await put(store, *(memory("u", kind.value, type=kind, content=text) for kind, text in left.items()))
        await asyncio.sleep(0.3)
        for kind in MemoryType:
            gone = left.pop(kind)
            assert await store.forget_scope(Scope("u"), types=[kind]) == 1
            await store.purge()
            assert files_holding(data_dir, [gone]) == set()
            assert {text for _, text in files_holding(data_dir, list(left.values()))} == set(left.values())


def test_a_deletion_that_reaches_the_files_in_the_middle_of_a_purge_stays_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that gave up waiting lets others write; the purge goes on in the child all the same."""
    fields = [
        FieldSchema("id", DataType.VARCHAR, is_primary=True, max_length=64),
        FieldSchema("embedding", DataType.FLOAT_VECTOR, dim=2),
    ]
    rewrite = lite_files._rewrite

    def overtaken(collection: Any, partition: str, name: str) -> None:
        rewrite(collection, partition, name)
        collection.delete(["kept until now"])
        collection.flush()

    with MilvusLite(str(tmp_path)) as engine:
        collection = engine.create_collection("c", CollectionSchema(fields))
        collection.insert([{"id": id, "embedding": [1.0, 0.0]} for id in ("gone", "kept until now", "stays")])
        collection.flush()
        collection.delete(["gone"])
        collection.flush()
        monkeypatch.setattr(lite_files, "_rewrite", overtaken)
        lite_files.purge(collection)
        assert [row["id"] for row in collection.query("", limit=10)] == ["stays"]
    with MilvusLite(str(tmp_path)) as engine:
        assert [row["id"] for row in engine.get_collection("c").query("", limit=10)] == ["stays"]
