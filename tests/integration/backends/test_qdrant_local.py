"""Qdrant's local mode: its folder, its thread, and what a purge leaves."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.local import LocalQdrant
from semmem.background import Tasks
from semmem.memory import Scope
from semmem.ports.errors import (
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMismatch,
    StoreTimeout,
    StoreUnavailable,
)
from tests.integration.backends.conftest import QDRANT, QDRANT_LIMITS, local_qdrant
from tests.support.disk import files_holding
from tests.support.memories import NOW, answering, found_ids, memory, put
from tests.support.owned_qdrant import OwnedQdrant

U = Scope("ann")

WRITER = """
import asyncio, sys
from pathlib import Path
from semmem.memory import Scope
from tests.integration.backends.conftest import local_qdrant
from tests.support.owned_qdrant import OwnedQdrant
from tests.support.memories import memory

async def write():
    store = local_qdrant(Path(sys.argv[1]))
    await store.open()
    for number in range(100_000):
        await store.put(Scope("ann"), memory("ann", f"mem_{number}"))
        print(number, flush=True)

asyncio.run(write())
"""


@asynccontextmanager
async def opened(folder: Path, collection: Collection = QDRANT, **options: Any) -> AsyncIterator[OwnedQdrant]:
    store = local_qdrant(folder, collection, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


# --- the folder ------------------------------------------------------------------------------------------------------


async def test_memories_are_there_after_a_restart_and_the_folder_is_private(data_dir: Path) -> None:
    kept = memory("ann", metadata={"a": 1}, expires_at=NOW + 0.5)
    async with opened(data_dir) as store:
        await put(store, kept, memory("ann", "gone"))
        await store.forget(U, "gone")
    assert os.stat(data_dir).st_mode & 0o777 == 0o700
    async with opened(data_dir) as store:
        assert await store.list(U) == [kept]
        assert await found_ids(store, U) == ["mem_1"]


async def test_a_second_one_stays_out_until_the_first_has_ended(data_dir: Path) -> None:
    other = local_qdrant(data_dir)
    async with opened(data_dir):
        with pytest.raises(StoreUnavailable, match="in use by another process"):
            await other.open()
    await other.open()
    await other.close()


async def test_a_collection_of_another_model_is_refused_and_index_and_quantisation_are_ignored(data_dir: Path) -> None:
    async with opened(data_dir):
        pass
    with pytest.raises(StoreMismatch, match="embedding signature"):
        await local_qdrant(data_dir, replace(QDRANT, signature="other/16")).open()
    with pytest.raises(StoreMismatch, match="dimension"):
        await local_qdrant(data_dir, replace(QDRANT, dimension=384)).open()
    async with opened(data_dir, replace(QDRANT, index="HNSW", quantisation="binary")) as store:
        await put(store, memory("ann"))
        assert await found_ids(store, U) == ["mem_1"]


@pytest.mark.parametrize("name", ["meta.json", "collection/memories/storage.sqlite"])
async def test_a_damaged_file_is_named_and_a_mended_one_is_opened(data_dir: Path, name: str) -> None:
    async with opened(data_dir) as store:
        await put(store, memory("ann"))
    whole = (data_dir / name).read_bytes()
    (data_dir / name).write_bytes(b"garbage" * 2000)
    store = local_qdrant(data_dir)
    with pytest.raises(StoreDamaged, match="put it back from a backup"):
        await store.open()
    (data_dir / name).write_bytes(whole)
    await store.open()
    assert await store.count(U) == 1
    await store.close()


@pytest.mark.long(6)
async def test_every_acknowledged_memory_survives_kill_9(data_dir: Path) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(data_dir), stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    acknowledged = -1
    while acknowledged < 50:
        acknowledged = int(await writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = (await writer.stdout.read()).split(b"\n")[:-1]
    await writer.wait()
    acknowledged = int(rest[-1]) if rest else acknowledged
    async with opened(data_dir) as store:
        assert await store.count(U) in (acknowledged + 1, acknowledged + 2)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_refuses_writes_changes_nothing_and_is_over_when_it_is_over(data_dir: Path) -> None:
    async with opened(data_dir) as store:
        await put(store, memory("ann"))
        await store.engine.check_room()
        with full_disk():
            with pytest.raises(StoreFull):
                await put(store, memory("ann", version=2))
            with pytest.raises(StoreFull):
                await store.engine.check_room()
            with pytest.raises(StoreFull):
                await store.purge()
            assert [one.version for one in await store.list(U)] == [1]
        await put(store, memory("ann", version=2))
        await store.engine.check_room()
        assert await store.purge() is True
    async with opened(data_dir) as store:
        assert [one.version for one in await store.list(U)] == [2]


# --- purging ---------------------------------------------------------------------------------------------------------


async def as_most_sqlites_remove(store: OwnedQdrant) -> None:
    """Some builds overwrite what they remove without being asked."""
    engine: Any = store.engine

    def careless() -> None:
        collection = engine._connected()._client.collections["memories"]
        collection.storage.storage.execute("PRAGMA secure_delete = OFF")

    await engine._submit(careless)


async def test_what_was_removed_or_replaced_is_in_no_file_after_a_purge(data_dir: Path) -> None:
    gone, stays = "canary" + secrets.token_hex(6), "canary" + secrets.token_hex(6)
    async with opened(data_dir) as store:
        await as_most_sqlites_remove(store)
        for number in range(40):
            told = {"content": f"{gone}-{number}", "session": f"{gone}-s", "metadata": {"note": gone}}
            await put(store, memory(f"{gone}-user", f"m{number}", **told))
            await put(store, memory("ann", f"m{number}", content=f"{stays}-{number}"))
        await put(store, memory("bob", content=gone), memory("bob", version=2, content="another"))
        assert await store.forget_scope(Scope(f"{gone}-user")) == 40
        assert files_holding(data_dir, [gone]), "SQLite leaves it in free pages: the search sees it"
        assert await store.purge() is True
        assert files_holding(data_dir, [gone]) == set()
        assert files_holding(data_dir, [stays])
        assert {one.content for one in await store.list(U)} == {f"{stays}-{number}" for number in range(40)}
        await put(store, memory("ann", "after"))
    assert files_holding(data_dir, [gone]) == set()
    async with opened(data_dir) as store:
        assert await store.count(U) == 41
        assert await store.count(Scope(f"{gone}-user")) == 0


async def test_calls_during_a_purge_wait_for_it(data_dir: Path) -> None:
    async with opened(data_dir) as store:
        await put(store, *(memory("ann", f"m{number}") for number in range(20)))
        purges = [store.purge() for _ in range(3)]
        counts = await asyncio.gather(*purges, *(store.count(U) for _ in range(10)))
        assert counts == [True] * 3 + [20] * 10


async def test_a_purge_whose_file_is_missing_says_so_and_the_next_call_opens_anew(data_dir: Path) -> None:
    async with opened(data_dir) as store:
        await put(store, memory("ann"))
        file = data_dir / "collection" / "memories" / "storage.sqlite"
        file.rename(file.with_suffix(".away"))
        with pytest.raises(StoreError, match="is missing"):
            await store.purge()


# --- the thread ------------------------------------------------------------------------------------------------------


async def held(local: LocalQdrant, release: Event) -> asyncio.Task[Any]:
    """The thread, busy until released."""
    task: asyncio.Task[Any] = Tasks().spawn("hold", local._submit(release.wait))
    await asyncio.sleep(0.05)
    return task


async def test_a_busy_thread_holds_up_neither_the_loop_nor_a_caller_beyond_its_deadline(data_dir: Path) -> None:
    local, release = LocalQdrant(data_dir), Event()
    store = OwnedQdrant(local, QDRANT, search_timeout_s=0.1, read_timeout_s=0.1, write_timeout_s=0.1)
    await store.open()
    busy = await held(local, release)
    for call in (lambda: store.count(U), lambda: put(store, memory("ann")), store.health):
        with pytest.raises(StoreTimeout):
            await call()
    assert not busy.done()
    release.set()
    await busy
    assert await answering(lambda: store.count(U)) == 0, "what had not begun when its caller left was not done"
    await store.close()


async def test_only_so_many_calls_wait(data_dir: Path) -> None:
    local, release = LocalQdrant(data_dir, waiting_max=3), Event()
    store = OwnedQdrant(local, QDRANT, **QDRANT_LIMITS)
    await store.open()
    busy = await held(local, release)
    tasks = Tasks()
    calls = [tasks.spawn("count", store.count(U)) for _ in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(StoreUnavailable, match="wait for the local mode already"):
        await store.count(U)
    release.set()
    assert await asyncio.gather(*calls) == [0, 0]
    await busy
    assert await store.count(U) == 0
    await store.close()
