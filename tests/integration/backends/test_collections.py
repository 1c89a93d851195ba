"""The collections beside one another that a store may have: which one is read, and what becomes of the others."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from pymilvus import MilvusClient

from semmem.backends.in_process import InProcessCollections
from semmem.backends.milvus.collections import LiteCollections, MilvusCollections
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer
from semmem.backends.qdrant.store import QdrantCollections
from semmem.memory import Scope
from semmem.ports.errors import StoreError, StoreUnavailable
from semmem.ports.store import Collections, Described, live_name, next_name, number_of
from tests.integration.backends.conftest import GENEROUS, QDRANT, QDRANT_LIMITS, SERVER_URI
from tests.support.disk import files_holding
from tests.support.memories import DIMENSION, memory, put, towards
from tests.support.qdrant_server import standing_in

KINDS = ["in_process", "milvus_lite", "qdrant_local", "qdrant_rest"] + (["milvus_server"] if SERVER_URI else [])
Make = Callable[[], Collections]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MilvusLiteProcess]:
    child = MilvusLiteProcess(tmp_path_factory.mktemp("lite") / "data", stop_timeout_s=1.0)
    await child.start()
    yield child
    await child.stop()


@pytest_asyncio.fixture(params=KINDS, loop_scope="module")
async def make(request: pytest.FixtureRequest, process: MilvusLiteProcess, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes the same collections again, as a process does that starts; they are open."""
    name = f"moved_{secrets.token_hex(4)}"
    uri = SERVER_URI if request.param == "milvus_server" else process.uri
    if request.param == "in_process":
        only = InProcessCollections(name)
        yield lambda: only
        return
    if request.param.startswith("qdrant"):
        async with AsyncExitStack() as stack:
            if request.param == "qdrant_local":
                engine: QdrantServer | LocalQdrant = LocalQdrant(tmp_path)
            else:
                server = await stack.enter_async_context(standing_in())
                engine = QdrantServer(f"http://127.0.0.1:{server.port}")
            await engine.open()
            stack.push_async_callback(engine.close)
            yield lambda: qdrant(name, engine)
        return

    def by_address() -> Collections:
        return MilvusCollections(name, server_options(uri), options=GENEROUS)

    yield by_address
    client = MilvusClient(uri, timeout=10)
    for each in [each for each in client.list_collections() if number_of(name, each)]:
        for alias in client.list_aliases(each)["aliases"]:
            client.drop_alias(alias)
        client.drop_collection(each, timeout=10)
    client.close()


def qdrant(name: str, engine: QdrantServer | LocalQdrant) -> QdrantCollections:
    return QdrantCollections(engine, replace(QDRANT, name=name), options=QDRANT_LIMITS)


async def made(collections: Collections, *described: Described) -> None:
    for about in described:
        store = collections.collection(about)
        await store.open()
        await put(store, memory("ada", content=about.name, embedding=None))
        await store.close()


async def test_where_nothing_was_made_there_is_none(make: Make) -> None:
    assert await make().found() == (None, [])


async def test_the_first_is_read_until_another_one_is_switched_to(make: Make) -> None:
    collections = make()
    old = Described(collections.name, "model/16", DIMENSION)
    new = Described(next_name(collections.name, [old.name]), "other/8", 8)
    await made(collections, old, new)
    assert await make().found() == (old, [new])
    await collections.switch(new.name)
    await collections.switch(new.name)
    assert await make().found() == (new, [old])
    await collections.switch(old.name)
    assert await make().found() == (old, [new])


async def test_one_is_dropped_with_all_that_it_holds_but_never_the_one_that_is_read(make: Make) -> None:
    collections = make()
    old = Described(collections.name, "model/16", DIMENSION)
    new = Described(next_name(collections.name, [old.name]), "other/8", 8)
    await made(collections, old, new)
    if not isinstance(collections, InProcessCollections):
        with pytest.raises(StoreError, match="everybody reads"):
            await collections.drop(old.name)
    await collections.switch(new.name)
    await collections.drop(old.name)
    await collections.drop(old.name)
    assert await make().found() == (new, [])
    store = collections.collection(new)
    await store.open()
    assert [one.content for one in await store.list(Scope("ada"))] == [new.name]
    await store.close()


async def test_collections_of_others_are_none_of_these(process: MilvusLiteProcess) -> None:
    mine = MilvusCollections("mine", server_options(process.uri), options=GENEROUS)
    others = [Described(name, "model/16", DIMENSION) for name in ("mine_too", "mine_g", "mine_gx2", "mine_g2_copy")]
    await made(mine, *others)
    assert await mine.found() == (None, [])


async def test_after_a_restart_of_the_folder_the_same_one_is_read(data_dir: Path) -> None:
    def folder() -> LiteCollections:
        child = MilvusLiteProcess(data_dir, stop_timeout_s=1.0)
        return LiteCollections("mine", child, options={"purge_timeout_s": 10.0, "read_timeout_s": 5.0})

    collections = folder()
    await collections.open()
    old, new = Described("mine", "model/16", DIMENSION), Described("mine_g2", "other/16", DIMENSION)
    await made(collections, old, new)
    await collections.switch(new.name)
    await collections.close()
    collections = folder()
    await collections.open()
    assert await collections.found() == (new, [old])
    store = collections.collection(new)
    await store.open()
    await put(store, memory("ada", "mem_2", embedding=towards(3)))
    assert {one.content for one in await store.list(Scope("ada"))} == {"mine_g2", "content of mem_2"}
    assert await store.purge()
    await collections.check_room()
    await store.close()
    await collections.close()


async def test_after_a_restart_of_qdrants_folder_the_same_one_is_read_and_what_is_dropped_is_off_the_disk(
    data_dir: Path,
) -> None:
    old, new = Described("mine", "model/16", DIMENSION), Described("mine_g2", "other/8", 8)
    collections = qdrant("mine", LocalQdrant(data_dir))
    await collections.open()
    store = collections.collection(old)
    await store.open()
    await put(store, memory("ada", content="only the former one has this"))
    await made(collections, new)
    await collections.switch(new.name)
    await collections.close()
    collections = qdrant("mine", LocalQdrant(data_dir))
    await collections.open()
    assert await collections.found() == (new, [old])
    await collections.check_room()
    assert files_holding(data_dir, ["only the former one has this"])
    await collections.drop(old.name)
    assert not files_holding(data_dir, ["only the former one has this"])
    assert not any(b"only the former one has this" in opened for opened in open_files(data_dir))
    store = collections.collection(new)
    await store.open()
    assert await store.purge()
    assert [one.content for one in await store.list(Scope("ada"))] == [new.name]
    await collections.close()


def open_files(folder: Path) -> list[bytes]:
    """What this process has open there, also where it has no name any more."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [link.read_bytes() for link in links if os.readlink(link).startswith(str(folder))]


async def test_a_qdrant_server_changes_the_alias_in_one_call() -> None:
    old, new = Described("mine", "model/16", DIMENSION), Described("mine_g2", "other/8", 8)
    async with standing_in() as server:
        engine = QdrantServer(f"http://127.0.0.1:{server.port}")
        collections = qdrant("mine", engine)
        await collections.open()
        await made(collections, old, new)
        for name in (new.name, old.name, old.name):
            await collections.switch(name)
        await collections.close()
        first, second = server.bodies("POST", "/aliases")
    made_new = {"create_alias": {"collection_name": "mine_g2", "alias_name": "mine_live"}}
    made_old = {"create_alias": {"collection_name": "mine", "alias_name": "mine_live"}}
    assert first == {"actions": [made_new]}
    assert second == {"actions": [{"delete_alias": {"alias_name": "mine_live"}}, made_old]}


async def test_where_qdrants_aliases_cannot_be_asked_for_nothing_is_taken_for_the_first() -> None:
    async with standing_in() as server:
        collections = qdrant("mine", QdrantServer(f"http://127.0.0.1:{server.port}"))
        await collections.open()
        server.fail = (503, "{}")
        for call in (collections.found, lambda: collections.switch("mine"), lambda: collections.drop("mine")):
            with pytest.raises(StoreUnavailable):
                await call()
        await collections.close()


async def test_a_name_is_taken_once() -> None:
    assert next_name("m", ["m"]) == "m_g2"
    assert next_name("m", ["m_g9", "m", "x_g11", "m_gx"]) == "m_g10"
    assert number_of("m", live_name("m")) is None
