"""Damaged files of the embedded store are named, nothing else is touched, and a mended folder is served again."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_asyncio

from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.lite_files import DAMAGED, problems
from semmem.memory import Scope
from semmem.ports.errors import StoreDamaged, StoreMismatch
from tests.integration.backends.test_purge import OPTIONS, contents, embedded
from tests.support.embedded import EmbeddedMilvus
from tests.support.memories import memory, put

SECRET = "the memory itself"


def store_at(data_dir: Path) -> EmbeddedMilvus:
    return EmbeddedMilvus(MilvusLiteProcess(data_dir / "milvus"), **OPTIONS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two users in two partitions, some of one's rows removed; everything in Parquet files."""
    made = tmp_path_factory.mktemp("made")
    async with embedded(made, flush_rows=10, flush_interval_s=0.2) as store:
        for number in range(20):
            await put(store, memory("a", f"m{number}", content=f"{SECRET} {number}"), memory("b", f"m{number}"))
        await asyncio.sleep(0.6)
        await store.forget(Scope("a"), "m0")
    return made


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def files(data_dir: Path, kind: str) -> list[Path]:
    return sorted(data_dir.glob(f"milvus/collections/*/partitions/*/{kind}/*.parquet"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_footer(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for place in range(len(raw) - 200, len(raw) - 8):
        raw[place] ^= 0xFF
    path.write_bytes(raw)


def flip_pages(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for place in range(4, min(400, len(raw) // 2)):
        raw[place] ^= 0xFF
    path.write_bytes(raw)


DAMAGE: list[Callable[[Path], None]] = [truncate, zero, empty, flip_footer, flip_pages]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["data", "delta"])
def test_every_kind_of_damage_to_any_file_is_found(data_dir: Path, damage: Callable[[Path], None], kind: str) -> None:
    assert list(problems(data_dir)) == []
    for path in files(data_dir, kind):
        whole = path.read_bytes()
        damage(path)
        assert list(problems(data_dir)) == [f"{DAMAGED}{path}"]
        path.write_bytes(whole)


@pytest.mark.parametrize("damage", [zero, Path.unlink])
@pytest.mark.parametrize("name", ["manifest.json", "schema.json"])
def test_a_damaged_or_missing_manifest_is_found(data_dir: Path, name: str, damage: Callable[[Path], None]) -> None:
    [path] = data_dir.glob(f"milvus/collections/*/{name}")
    damage(path)
    assert f"{DAMAGED}{path}" in list(problems(data_dir))


@pytest.mark.parametrize("kind", ["data", "delta"])
async def test_a_damaged_file_is_named_with_the_remedy_and_mended_it_is_served_again(data_dir: Path, kind: str) -> None:
    path = files(data_dir, kind)[0]
    whole = path.read_bytes()
    flip_pages(path)
    before = {other: other.read_bytes() for other in files(data_dir, "*")}
    store = store_at(data_dir)
    with pytest.raises(StoreDamaged) as raised:
        await store.open()
    assert str(path) in str(raised.value)
    assert "backup" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert {other: other.read_bytes() for other in files(data_dir, "*")} == before
    path.write_bytes(whole)
    await store.open()
    assert len(await contents(store, "a")) == 19
    assert await store.count(Scope("b")) == 20
    await store.close()


async def test_a_damaged_manifest_is_named_and_no_file_is_deleted_as_unknown(data_dir: Path) -> None:
    path = files(data_dir, "data")[0].parents[3] / "manifest.json"
    whole = path.read_bytes()
    zero(path)
    before = files(data_dir, "*")
    store = store_at(data_dir)
    with pytest.raises(StoreDamaged, match=r"manifest\.json"):
        await store.open()
    assert files(data_dir, "*") == before
    path.write_bytes(whole)
    await store.open()
    assert len(await contents(store, "a")) == 19
    await store.close()


async def test_without_the_damaged_data_file_the_rest_is_served_and_the_loss_is_told(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = next(path for path in files(data_dir, "data") if SECRET.encode() in path.read_bytes())
    zero(path)
    path.rename(data_dir / "taken-away")
    with caplog.at_level(logging.ERROR):
        store = store_at(data_dir)
        await store.open()
    assert [record.getMessage() for record in caplog.records if str(path) in record.getMessage()]
    assert await store.count(Scope("b")) == 20
    assert await store.count(Scope("a")) < 19
    await put(store, memory("a", "new"))
    assert await store.purge() is True
    assert await store.count(Scope("b")) == 20
    await store.close()


async def test_a_missing_list_of_removed_rows_would_bring_them_back_so_it_is_damage(data_dir: Path) -> None:
    path = files(data_dir, "delta")[0]
    path.unlink()
    store = store_at(data_dir)
    with pytest.raises(StoreDamaged) as raised:
        await store.open()
    assert str(path) in str(raised.value)
    await store.close()


async def test_with_the_folder_moved_away_memory_begins_empty(data_dir: Path) -> None:
    truncate(files(data_dir, "data")[0])
    store = store_at(data_dir)
    with pytest.raises(StoreDamaged):
        await store.open()
    (data_dir / "milvus").rename(data_dir / "moved-away")
    await store.open()
    assert await store.count(Scope("a")) == 0
    await put(store, memory("a"))
    assert await store.count(Scope("a")) == 1
    await store.close()


def test_a_collection_that_was_being_made_is_no_damage(data_dir: Path) -> None:
    (data_dir / "milvus" / "collections" / "begun").mkdir()
    assert list(problems(data_dir)) == []


async def test_a_file_of_a_crash_that_no_manifest_names_is_no_damage(data_dir: Path) -> None:
    path = files(data_dir, "data")[0].with_name("data_900000_900001.parquet")
    path.write_bytes(b"half a file")
    async with embedded(data_dir) as store:
        assert await store.count(Scope("b")) == 20


async def test_settings_that_do_not_fit_are_told_from_damage(data_dir: Path) -> None:
    store = EmbeddedMilvus(MilvusLiteProcess(data_dir / "milvus"), **{**OPTIONS, "signature": "another/16"})
    with pytest.raises(StoreMismatch, match="another/16"):
        await store.open()
    await store.close()
