"""A disk that is full, as the child sees it: a limit on the size of its files refuses every write (EFBIG)."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from semmem.backends.disk_room import check_room
from semmem.backends.milvus.collections import LiteCollections
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.memory import Scope
from semmem.ports.errors import StoreError, StoreFull
from tests.integration.backends.test_purge import OPTIONS
from tests.support.embedded import EmbeddedMilvus
from tests.support.memories import found_ids, memory, put

U = Scope("u")


class Disk:
    """The store on a disk whose room the test decides."""

    def __init__(self, data_dir: Path, *, flush_interval_s: float = 0.2) -> None:
        self.process = MilvusLiteProcess(data_dir / "milvus", restart_delay_s=0.05)
        self.store = EmbeddedMilvus(
            self.process, **{**OPTIONS, "flush_rows": 10_000, "flush_interval_s": flush_interval_s}
        )

    def limit(self, size: int) -> None:
        """No file may grow beyond ``size`` bytes."""
        assert self.process.pid is not None
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, hard))

    @contextmanager
    def full(self, size: int = 0) -> Iterator[None]:
        self.limit(size)
        try:
            yield
        finally:
            self.limit(resource.RLIM_INFINITY)

    async def ids(self) -> set[str]:
        return {one.id for one in await self.store.list(U, limit=1000)}

    async def crash(self) -> None:
        """Kill the child, and wait for the next one."""
        assert self.process.pid is not None
        before = self.process.restarts
        os.kill(self.process.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            while True:
                await asyncio.sleep(0.05)
                try:
                    await self.store.health()
                except StoreError:
                    continue
                if self.process.restarts > before:
                    return


@asynccontextmanager
async def disk(data_dir: Path, *, flush_interval_s: float = 0.2) -> AsyncIterator[Disk]:
    one = Disk(data_dir, flush_interval_s=flush_interval_s)
    await one.store.open()
    try:
        yield one
    finally:
        await one.store.close()


def below(data_dir: Path, pattern: str) -> list[Path]:
    return list(data_dir.rglob(pattern))


def wal_size(data_dir: Path) -> int:
    return sum(path.stat().st_size for path in data_dir.glob("milvus/collections/*/wal/*"))


FIVE = {f"m{number}" for number in range(5)}


async def test_memories_stay_while_the_disk_is_full_and_everything_is_whole_when_space_is_back(data_dir: Path) -> None:
    """Before: 0 of 5 were listed once a flush had failed, and the next flush deleted them for good."""
    async with disk(data_dir) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        with one.full():
            await asyncio.sleep(1)  # several flushes are tried
            with pytest.raises(StoreFull):
                await put(one.store, memory("u", "refused"))
            assert await one.ids() == FIVE
            assert set(await found_ids(one.store, U)) == FIVE
        assert await one.ids() == FIVE
        await put(one.store, memory("u", "later"))
        await asyncio.sleep(1)  # flushed
        assert await one.ids() == {*FIVE, "later"}
        assert one.process.restarts == 0
        await one.crash()
        assert await one.ids() == {*FIVE, "later"}


async def test_a_deletion_that_cannot_be_written_fails_and_changes_nothing(data_dir: Path) -> None:
    async with disk(data_dir) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        with one.full(), pytest.raises(StoreFull):
            await one.store.forget_scope(U)
        assert await one.ids() == FIVE
        assert await one.store.forget_scope(U) == 5
        await one.crash()
        assert await one.ids() == set()


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.97])
async def test_a_record_torn_at_any_place_costs_nothing_that_is_acknowledged_after_it(
    data_dir: Path, part: float
) -> None:
    async with disk(data_dir, flush_interval_s=600) as one:
        await put(one.store, memory("u", "a"))
        first = wal_size(data_dir)
        await put(one.store, memory("u", "b"))
        record = wal_size(data_dir) - first
        with one.full(first + record + int(record * part)), pytest.raises(StoreFull):
            await put(one.store, memory("u", "torn"))
        await put(one.store, memory("u", "c"))
        assert await one.ids() == {"a", "b", "c"}
        await one.crash()
        assert await one.ids() == {"a", "b", "c"}


async def test_a_start_on_a_full_disk_serves_what_is_there(data_dir: Path) -> None:
    async with disk(data_dir) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        await asyncio.sleep(1)
        await put(one.store, memory("u", "in the log"))
        for index in below(data_dir, "partitions/*/indexes/*"):
            index.unlink()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # the next child inherits it
        try:
            await one.crash()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await one.ids() == {*FIVE, "in the log"}
        assert set(await found_ids(one.store, U)) == {*FIVE, "in the log"}
        with pytest.raises(StoreFull):
            await put(one.store, memory("u", "refused"))
        one.limit(resource.RLIM_INFINITY)
        await put(one.store, memory("u", "later"))
        assert await one.ids() == {*FIVE, "in the log", "later"}


async def test_an_index_file_that_was_left_half_written_is_built_again(data_dir: Path) -> None:
    async with disk(data_dir) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        await one.store.purge()
    indexes = below(data_dir, "partitions/*/indexes/*")
    assert indexes
    for index in indexes:
        index.write_bytes(index.read_bytes()[:100])
    async with disk(data_dir) as one:
        assert set(await found_ids(one.store, U)) == FIVE


async def test_a_purge_without_room_says_so_and_the_next_one_succeeds(data_dir: Path) -> None:
    async with disk(data_dir) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        await asyncio.sleep(1)
        await one.store.forget(U, "m0")
        with one.full(), pytest.raises(StoreFull):
            await one.store.purge()
        assert await one.ids() == FIVE - {"m0"}
        assert await one.store.purge() is True
        assert await one.ids() == FIVE - {"m0"}


async def test_a_flush_that_fails_half_way_ends_the_child_and_loses_nothing(data_dir: Path) -> None:
    """A directory where the manifest's next version is to be written: nothing can foresee that."""
    async with disk(data_dir, flush_interval_s=600) as one:
        await put(one.store, *(memory("u", id) for id in sorted(FIVE)))
        [folder] = below(data_dir, "collections/*")
        (folder / "manifest.json.tmp").mkdir()
        before = one.process.restarts
        with pytest.raises(StoreError):
            await one.store._flush()
        async with asyncio.timeout(60):
            while one.process.restarts == before or one.process.pid is None:
                await asyncio.sleep(0.05)
        (folder / "manifest.json.tmp").rmdir()
        async with asyncio.timeout(60):
            while True:
                try:
                    assert await one.ids() == FIVE
                    break
                except StoreError:
                    await asyncio.sleep(0.1)
        await one.store._flush()
        assert await one.ids() == FIVE


async def test_whether_there_is_room_is_told(data_dir: Path) -> None:
    async with disk(data_dir) as one:
        collections = LiteCollections("memories", one.process, options={})
        await collections.check_room()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(StoreFull, match="File too large"):
                await collections.check_room()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await collections.check_room()
        assert below(data_dir, ".room") == []
    with pytest.raises(FileNotFoundError):
        check_room(data_dir / "nowhere", 1)
