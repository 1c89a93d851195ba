"""What is Milvus' own: opening, leftovers of interrupted writes, failures, flushing, durability."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from milvus_lite.search.filter.tokens import tokenize
from pymilvus import DataType, MilvusClient, MilvusException

from semmem.backends.milvus.background import BackgroundFlush, Reads
from semmem.backends.milvus.connection import MilvusConnection, ensure, server_options
from semmem.backends.milvus.indexes import INDEXES, check_server_has
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.rows import quote, row_id, row_of
from semmem.backends.milvus.store import MilvusStore
from semmem.memory import Memory, MemoryStatus, Scope
from semmem.ports.errors import StoreError, StoreMismatch, StoreTimeout, StoreUnavailable
from semmem.ports.storable import CONTENT_BYTES_MAX
from semmem.ports.store import Lagging
from tests.integration.backends.conftest import milvus_store
from tests.support.memories import DIMENSION, NOW, answering, found, found_ids, memory, put, towards


@asynccontextmanager
async def opened(uri: str, collection: str, **options: Any) -> AsyncIterator[MilvusStore]:
    store = milvus_store(uri, collection, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def raw(uri: str) -> AsyncIterator[MilvusClient]:
    # A shared connection would stay, and ping every 10 s: the server closes it in the middle of another test.
    client = MilvusClient(uri, timeout=60, dedicated=True)
    try:
        yield client
    finally:
        client.close()


async def leave_row(uri: str, collection: str, left: Memory) -> None:
    """A row as a process leaves it that dies before it deletes the older ones."""
    async with raw(uri) as client:
        await asyncio.to_thread(client.insert, collection, [row_of(left, left.embedding, DIMENSION)], timeout=60)


def row_count(client: MilvusClient, collection: str, filter: str) -> int:
    return len(client.query(collection, filter=filter, output_fields=["id"], limit=1000, timeout=60))


# --- quoting and keys ------------------------------------------------------------------------------------------------


@given(st.text())
def test_a_quoted_text_is_one_literal_of_that_value(text: str) -> None:
    literal, end = tokenize(quote(text))
    assert (literal.kind.name, literal.value, end.kind.name) == ("STRING", text, "EOF")


@given(st.text(), st.text(), st.text(), st.text())
@example("ab", "c", "a", "bc")
@example("a", "same", "b", "same")
def test_row_keys_of_different_users_or_memories_differ(user: str, id: str, other_user: str, other_id: str) -> None:
    same = (user, id) == (other_user, other_id)
    assert (row_id(user, id, 1) == row_id(other_user, other_id, 1)) is same
    assert len(row_id(user, id, 2**63 - 1)) <= 64


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dimension": DIMENSION + 1}, ["dimension 16 (configured: 17)"]),
        ({"signature": "other/16"}, ["embedding signature test/16 (configured: other/16)"]),
        ({"dimension": 8, "signature": "x/8"}, ["signature test/16 (configured: x/8)", "16 (configured: 8)"]),
    ],
)
async def test_a_collection_made_for_other_vectors_is_refused(
    lite: MilvusLiteProcess, shared_collection: str, options: dict[str, Any], named: list[str]
) -> None:
    async with opened(lite.uri, shared_collection):
        pass
    other = milvus_store(lite.uri, shared_collection, **options)
    with pytest.raises(StoreError) as raised:
        await other.open()
    assert type(raised.value) is StoreMismatch
    for words in [shared_collection, "reindex", *named]:
        assert words in str(raised.value)
    await other.close()


async def test_a_collection_of_somebody_else_is_refused(lite: MilvusLiteProcess, collection: str) -> None:
    async with raw(lite.uri) as client:
        fields = client.create_schema()
        fields.add_field("id", DataType.INT64, is_primary=True)
        fields.add_field("embedding", DataType.FLOAT_VECTOR, dim=DIMENSION)
        index = client.prepare_index_params()
        index.add_index("embedding", index_type="FLAT", metric_type="L2")
        client.create_collection(collection, schema=fields, index_params=index, timeout=60)
    with pytest.raises(StoreError, match=r"schema version unknown .*metric L2 \(configured: COSINE\)"):
        await milvus_store(lite.uri, collection).open()


async def test_a_collection_whose_maker_died_before_the_index_is_completed(
    lite: MilvusLiteProcess, collection: str, user: str
) -> None:
    async with opened(lite.uri, collection):
        pass
    async with raw(lite.uri) as client:
        client.release_collection(collection, timeout=60)
        client.drop_index(collection, "embedding", timeout=60)
    async with opened(lite.uri, collection) as store:
        await put(store, memory(user))
        assert await found_ids(store, Scope(user)) == ["mem_1"]


async def test_replicas_that_open_at_once_share_one_collection(
    lite: MilvusLiteProcess, collection: str, user: str
) -> None:
    stores = [milvus_store(lite.uri, collection) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    await put(stores[0], memory(user))
    assert [await store.count(Scope(user)) for store in stores] == [1, 1, 1]
    for store in stores:
        await store.close()


def test_what_another_replica_is_making_is_waited_for() -> None:
    looks = iter([False, False, False, True])

    def make() -> None:
        raise MilvusException(code=35, message="already exists")

    ensure(lambda: next(looks), make)
    assert list(looks) == []


@pytest.mark.parametrize(
    "options", [{"uri": "./file.db"}, {"index": "IVF"}, {"rows_per_user_max": 16_384}, {"rows_per_user_max": 0}]
)
async def test_impossible_settings_are_refused_at_once(options: dict[str, Any]) -> None:
    named = {"uri": "http://127.0.0.1:1", **options}
    with pytest.raises(ValueError, match=r"must be|uri is"):
        milvus_store(named.pop("uri"), "any", **named)


async def test_opening_does_not_block_the_event_loop(lite: MilvusLiteProcess, collection: str) -> None:
    gaps: list[float] = []

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - began)

    async with asyncio.TaskGroup() as group:
        beating = group.create_task(beat())
        async with opened(lite.uri, collection):
            beating.cancel()
    assert len(gaps) > 2
    assert max(gaps) < sum(gaps) / 2, "it was held up for most of the time"


@pytest.mark.parametrize("index", list(INDEXES))
async def test_each_index_finds_what_was_put(lite: MilvusLiteProcess, collection: str, user: str, index: str) -> None:
    async with opened(lite.uri, collection, index=index, flush_rows=4, flush_interval_s=0.05) as store:
        await put(store, *(memory(user, f"mem_{at}", embedding=towards(at)) for at in range(10)))
        await store._flush()
        assert (await found_ids(store, Scope(user), towards(7), limit=1)) == ["mem_7"]
        assert len(await found_ids(store, Scope(user))) == 10
        (hit,) = await found(store, Scope(user), towards(7), limit=1)
        assert hit.cosine == pytest.approx(1.0, abs=0.01)


def clouds(users: int, each: int) -> np.ndarray:
    """Vectors of so many users, of shape (users, each, DIMENSION)."""
    vectors = np.random.default_rng(3).standard_normal((users, each, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=2, keepdims=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("index", list(INDEXES))
async def test_a_search_as_of_a_time_finds_the_nearest_whatever_the_index(
    lite: MilvusLiteProcess, collection: str, index: str
) -> None:
    vectors = clouds(40, 25)
    async with opened(lite.uri, collection, index=index, num_partitions=1) as store:
        await store.fill(
            [
                memory(f"user-{user}", f"mem_{at}", embedding=vector)
                for user, own in enumerate(vectors)
                for at, vector in enumerate(own)
            ]
        )
        await store._flush()
        for user, own in enumerate(vectors):
            asked = vectors[user - 1][0]
            hits = await found(store, Scope(f"user-{user}"), asked, limit=5)
            exact = np.argsort(-(own @ asked))[:5]
            assert [hit.memory.id for hit in hits] == [f"mem_{at}" for at in exact]
            np.testing.assert_allclose([hit.cosine for hit in hits], (own @ asked)[exact], atol=1e-5)
            embedded = [hit.memory.embedding for hit in hits if hit.memory.embedding is not None]
            np.testing.assert_allclose(np.stack(embedded), own[exact], atol=1e-6)


async def test_a_collection_with_another_index_is_refused(lite: MilvusLiteProcess, collection: str) -> None:
    async with opened(lite.uri, collection, index="HNSW"):
        pass
    with pytest.raises(StoreMismatch, match=r"index HNSW \(configured: IVF_SQ8\)"):
        await milvus_store(lite.uri, collection, index="IVF_SQ8").open()


@pytest.mark.parametrize("version", ["v2.3.5-lite", "2.4.17", "v2.3.0"])
def test_an_index_that_the_server_is_too_old_for_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match=r"no index HNSW_SQ: use 2\.5 or later"):
        check_server_has("HNSW_SQ", version)
    for other in INDEXES.keys() - {"HNSW_SQ"}:
        check_server_has(other, version)


@pytest.mark.parametrize("version", ["v2.5.0", "2.6.17", "v3.0.1", "milvus_lite-3.2.2", "a build of our own"])
def test_an_index_that_the_server_may_have_is_tried(version: str) -> None:
    for index in INDEXES:
        check_server_has(index, version)


# --- what an interrupted write leaves behind -------------------------------------------------------------------------


async def test_reads_keep_the_highest_version_of_leftovers(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with opened(lite.uri, shared_collection) as store:
        newest = memory(user, version=3, project="new", content="newest")
        await put(store, newest)
        for version in (1, 2):
            await leave_row(lite.uri, shared_collection, memory(user, version=version, project="old"))
        assert await store.get(Scope(user), "mem_1") == newest
        assert await store.get(Scope(user, "old"), "mem_1") is None
        assert await store.list(Scope(user)) == [newest]
        assert await store.list(Scope(user, "old")) == []
        assert [hit.memory for hit in await found(store, Scope(user))] == [newest]
        assert (await store.count(Scope(user)), await store.count(Scope(user, "old"))) == (1, 0)
        assert await store.forget(Scope(user, "old"), "mem_1") is False
        assert await store.forget_scope(Scope(user)) == 1
        assert await store.list(Scope(user)) == []


async def test_many_leftovers_do_not_crowd_out_other_memories(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with opened(lite.uri, shared_collection) as store:
        await put(store, *(memory(user, f"far_{at}", embedding=towards(1, by=0.1 * at)) for at in range(4)))
        await put(store, memory(user, "near", version=30))
        for version in range(1, 20):
            await leave_row(lite.uri, shared_collection, memory(user, "near", version=version))
        assert await found_ids(store, Scope(user), limit=3) == ["near", "far_3", "far_2"]


async def test_putting_a_version_again_removes_the_leftovers(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with opened(lite.uri, shared_collection) as store, raw(lite.uri) as client:
        await put(store, memory(user, version=2))
        await leave_row(lite.uri, shared_collection, memory(user, version=1))
        assert row_count(client, shared_collection, f'user_id == "{user}"') == 2
        await put(store, memory(user, version=2))
        assert row_count(client, shared_collection, f'user_id == "{user}"') == 1
        assert await store.list(Scope(user)) == [memory(user, version=2)]


async def test_a_sweep_removes_lower_versions_of_every_user_and_nothing_else(
    lite: MilvusLiteProcess, collection: str
) -> None:
    users = ["ann", 'b"ob', "漢"]
    async with opened(lite.uri, collection) as store, raw(lite.uri) as client:
        for user in users:
            await put(store, memory(user, "single"), memory(user, "updated", version=3))
            for version in (1, 2):
                await leave_row(lite.uri, collection, memory(user, "updated", version=version))
        assert row_count(client, collection, "version > 0") == 12
        assert await store.sweep(NOW) == 6
        assert row_count(client, collection, "version > 0") == 6
        assert await store.sweep(NOW) == 0
        for user in users:
            assert {one.id: one.version for one in await store.list(Scope(user))} == {"single": 1, "updated": 3}


async def test_a_sweep_removes_expired_memories_only_when_asked(lite: MilvusLiteProcess, collection: str) -> None:
    async with opened(lite.uri, collection) as store:
        await put(store, memory("ann", "past", expires_at=NOW), memory("ann", "future", expires_at=NOW + 0.002))
        await put(store, memory("ann", "never"))
        assert await store.sweep(NOW + 0.001, expired=False) == 0
        assert await store.sweep(NOW + 0.001) == 1
        assert {one.id for one in await store.list(Scope("ann"))} == {"future", "never"}


async def test_a_sweep_brings_no_older_version_of_an_expired_memory_back(
    lite: MilvusLiteProcess, collection: str
) -> None:
    async with opened(lite.uri, collection) as store:
        await put(store, memory("ann", version=2, expires_at=NOW - 1))
        await leave_row(lite.uri, collection, memory("ann", version=1))
        assert await store.sweep(NOW) == 2
        assert await store.list(Scope("ann")) == []
        assert await found_ids(store, Scope("ann")) == []


async def test_what_is_expired_is_named_for_every_user(lite: MilvusLiteProcess, collection: str) -> None:
    async with opened(lite.uri, collection) as store:
        for user in ("ann", 'b"ob'):
            await put(store, memory(user, "past", expires_at=NOW), memory(user, "future", expires_at=NOW + 1))
            await put(store, memory(user, "never"))
        assert sorted(await store.expired(NOW, limit=10)) == [("ann", "past"), ('b"ob', "past")]
        assert len(await store.expired(NOW, limit=1)) == 1
        assert await store.expired(NOW - 1, limit=10) == []


async def test_a_bounded_sweep_goes_on_next_time(lite: MilvusLiteProcess, collection: str) -> None:
    async with opened(lite.uri, collection, sweep_rows_max=1) as store:
        await put(store, memory("ann", version=2))
        await leave_row(lite.uri, collection, memory("ann", version=1))
        assert await store.sweep(NOW) == 1


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"content": "漢" * (CONTENT_BYTES_MAX // 3 + 1)}, "content"),
        ({"id": "i" * 1025}, "id"),
        ({"project": "p" * 1025}, "project"),
        ({"metadata": {"x": "m" * 60_000}}, "metadata"),
        ({"content": "lone \ud800"}, "content"),
    ],
)
async def test_what_does_not_fit_is_refused_not_cut(
    lite: MilvusLiteProcess, shared_collection: str, user: str, fields: dict[str, Any], named: str
) -> None:
    async with opened(lite.uri, shared_collection) as store:
        with pytest.raises(StoreError, match=named):
            await put(store, memory(user, **fields))
        assert await store.count(Scope(user)) == 0


async def test_the_longest_content_is_kept_whole(lite: MilvusLiteProcess, shared_collection: str, user: str) -> None:
    content = "漢" * (CONTENT_BYTES_MAX // 3)
    async with opened(lite.uri, shared_collection) as store:
        await put(store, memory(user, content=content))
        assert (await store.list(Scope(user)))[0].content == content


async def test_a_user_with_too_many_rows_is_an_error_not_a_part(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with opened(lite.uri, shared_collection, rows_per_user_max=4) as store:
        await put(store, *(memory(user, f"mem_{at}", project=f"{at}") for at in range(4)))
        assert await store.count(Scope(user)) == 4
        await put(store, *(memory(user, f"mem_{at}", project=f"{at}") for at in range(4, 11)))
        for call in (store.list, store.count):
            with pytest.raises(StoreError, match="rows_per_user_max=4"):
                await call(Scope(user))
        assert len(await found(store, Scope(user), limit=11)) == 11
        assert await store.forget_scope(Scope(user)) == 11


# --- failures --------------------------------------------------------------------------------------------------------


def every_call(store: MilvusStore, scope: Scope) -> list[Callable[[], Any]]:
    return [
        lambda: store.put(scope, memory(scope.user)),
        lambda: store.search(scope, towards(0), limit=5, now=NOW),
        lambda: store.get(scope, "mem_1"),
        lambda: store.list(scope),
        lambda: store.count(scope),
        lambda: store.forget(scope, "mem_1"),
        lambda: store.forget_scope(scope),
        lambda: store.health(),
        lambda: store.sweep(NOW),
    ]


async def test_a_store_that_is_down_at_start_opens_later(data_dir: Path, user: str) -> None:
    process = MilvusLiteProcess(data_dir)
    await process.start()
    await process.stop()
    store = milvus_store(process.uri, "memories", open_timeout_s=10.0)
    with pytest.raises(StoreUnavailable):
        await store.open()
    with pytest.raises(StoreUnavailable):
        await store.count(Scope(user))
    await process.start()
    await store.open()
    await put(store, memory(user))
    assert await store.count(Scope(user)) == 1
    await store.close()
    await process.stop()


async def test_every_acknowledged_memory_survives_kill_9_and_the_store_goes_on_by_itself(
    data_dir: Path, user: str
) -> None:
    process = MilvusLiteProcess(data_dir)
    await process.start()
    async with opened(process.uri, "memories", flush_rows=20, flush_interval_s=0.1) as store:
        acknowledged: set[str] = set()

        async def write(worker: int) -> None:
            for number in range(10_000):
                await put(store, memory(user, f"mem_{worker}_{number}"))
                acknowledged.add(f"mem_{worker}_{number}")

        async def kill() -> None:
            async with asyncio.timeout(60):
                while len(acknowledged) <= 20:
                    await asyncio.sleep(0.1)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

        async with asyncio.timeout(120):
            ended = await asyncio.gather(kill(), *(write(worker) for worker in range(3)), return_exceptions=True)
        assert ended[0] is None
        assert {type(error) for error in ended[1:]} == {StoreUnavailable}
        for call in every_call(store, Scope(user)):
            with pytest.raises(StoreUnavailable):
                await call()
        await answering(store.health)
        kept = {one.id for one in await store.list(Scope(user), limit=10_000)}
        assert len(acknowledged) > 20
        assert acknowledged <= kept
        assert len(kept - acknowledged) <= 3, "more than what was on its way"
        assert len(await found(store, Scope(user), limit=5)) == 5
        await put(store, memory(user, "afterwards"))
    async with opened(process.uri, "memories") as again:
        assert await again.get(Scope(user), "afterwards") is not None
    await process.stop()


async def test_a_hung_server_is_a_timeout_within_the_deadline(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    limits: dict[str, Any] = dict.fromkeys(("read_timeout_s", "write_timeout_s"), 0.3)
    limits |= {"search_timeout_s": 0.2, "open_timeout_s": 0.5}
    async with opened(lite.uri, shared_collection) as patient:
        await patient.health()
        store = milvus_store(lite.uri, shared_collection, **{**limits, "open_timeout_s": 20.0})
        await store.open()
        closed = milvus_store(lite.uri, shared_collection, **limits)
        assert lite.pid is not None
        os.kill(lite.pid, signal.SIGSTOP)
        try:
            for call in every_call(store, Scope(user))[:-1]:
                with pytest.raises(StoreTimeout):
                    await call()
            with pytest.raises(StoreUnavailable):
                await closed.open()
        finally:
            os.kill(lite.pid, signal.SIGCONT)
        await answering(store.health)
        await put(patient, memory(user))
        assert await patient.count(Scope(user)) == 1
        await store.close()


async def test_a_deadline_holds_whatever_is_waited_for(lite: MilvusLiteProcess) -> None:
    connection = MilvusConnection(
        server=server_options(lite.uri),
        collection="any",
        dimension=DIMENSION,
        signature="test/16",
        index="FLAT",
        num_partitions=4,
        open_timeout_s=5,
    )
    with pytest.raises(StoreTimeout):
        async with connection.within("wait", 0.01):
            await asyncio.sleep(5)


async def test_errors_and_logs_hold_neither_user_nor_content(
    lite: MilvusLiteProcess, collection: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = memory("secret-user", content="secret-content", project="secret-project")
    async with opened(lite.uri, collection) as store, raw(lite.uri) as client:
        await put(store, secret)
        client.drop_collection(collection, timeout=60)
        scope = Scope("secret-user", "secret-project")
        for call in every_call(store, scope)[1:]:
            with pytest.raises(StoreError) as raised:
                await call()
            assert raised.value.__cause__ is None
            assert raised.value.__suppress_context__
            assert "secret" not in str(raised.value)
        with pytest.raises(StoreError):
            await store.put(Scope("secret-user"), secret)
    assert "secret" not in caplog.text
    assert [record for record in caplog.records if record.name.startswith("pymilvus")] == []


async def test_an_unloaded_collection_is_loaded_by_the_call_that_needs_it(
    lite: MilvusLiteProcess, collection: str, user: str
) -> None:
    async with opened(lite.uri, collection) as store, raw(lite.uri) as client:
        await put(store, memory(user))
        for call in every_call(store, Scope(user))[:5]:
            client.release_collection(collection, timeout=60)
            await call()
        client.release_collection(collection, timeout=60)
        hits = await asyncio.gather(*(found(store, Scope(user)) for _ in range(8)))
        assert [len(each) for each in hits] == [1] * 8


@asynccontextmanager
async def slow_to_answer(uri: str, seconds: float) -> AsyncIterator[str]:
    """The address of a way to the server on which the first answer of each connection takes so long."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause_s: float) -> None:
        with closing(writer), suppress(OSError):
            while piece := await reader.read(65_536):
                await asyncio.sleep(pause_s)
                pause_s = 0.0
                writer.write(piece)
                await writer.drain()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, to_server = await asyncio.open_connection(*uri.removeprefix("http://").split(":"))
        await asyncio.gather(pass_on(reader, to_server, 0.0), pass_on(behind, writer, seconds))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())


async def test_a_server_that_is_slow_to_answer_a_new_connection_is_waited_for(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with slow_to_answer(lite.uri, 0.4) as uri, opened(uri, shared_collection) as store:
        await put(store, memory(user))
        assert await store.count(Scope(user)) == 1


# --- flushing and reads ----------------------------------------------------------------------------------------------


def segments(process_dir: Path, collection: str) -> list[Path]:
    return [path for path in process_dir.rglob("*.parquet") if collection in str(path)]


@pytest.mark.parametrize("options", [{"flush_rows": 5, "flush_interval_s": 60}, {"flush_interval_s": 0.1}])
async def test_rows_are_flushed_in_the_background(
    lite: MilvusLiteProcess, lite_dir: Path, collection: str, user: str, options: dict[str, Any]
) -> None:
    async with opened(lite.uri, collection, **options) as store:
        await put(store, *(memory(user, f"mem_{at}") for at in range(5)))
        async with asyncio.timeout(60):
            while not segments(lite_dir, collection):
                await asyncio.sleep(0.02)
        assert await store.count(Scope(user)) == 5


async def test_a_flush_waits_for_the_reads_in_flight(
    lite: MilvusLiteProcess, lite_dir: Path, collection: str, user: str
) -> None:
    async with opened(lite.uri, collection, flush_rows=1) as store:
        async with store._reads.reading():
            await put(store, memory(user))
            await asyncio.sleep(0.3)
            assert segments(lite_dir, collection) == []
        async with asyncio.timeout(60):
            while not segments(lite_dir, collection):
                await asyncio.sleep(0.02)


async def test_reads_during_flushes_miss_nothing(lite: MilvusLiteProcess, collection: str, user: str) -> None:
    async with opened(lite.uri, collection, flush_rows=3, flush_interval_s=0.01) as store:
        for number in range(30):
            await put(store, memory(user, f"mem_{number}"))
            seen = await asyncio.gather(*(store.search(Scope(user), towards(0), limit=50, now=NOW) for _ in range(4)))
            assert [len(hits) for hits in seen] == [number + 1] * 4


async def test_a_store_closes_while_a_flush_is_answered(
    lite: MilvusLiteProcess, shared_collection: str, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lite.uri, shared_collection, flush_rows=1) as store:
        began, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def flush(_collection: str, *, timeout: float) -> None:
            began.set()
            await asyncio.wait_for(answer, timeout)  # as pymilvus waits

        monkeypatch.setattr(store._connection._client, "flush", flush)
        await put(store, memory(user))
        await began.wait()
        answer.set_result(None)
        async with asyncio.timeout(10):
            await store.close()


async def test_a_failing_flush_breaks_nothing_and_is_tried_again() -> None:
    flushes: list[int] = []

    async def flush() -> None:
        flushes.append(len(flushes))
        if len(flushes) == 1:
            raise StoreTimeout("hung")

    flushing = BackgroundFlush(flush, rows=2, interval_s=0.01)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(flushing.run())
        flushing.wrote(2)
        async with asyncio.timeout(60):
            while len(flushes) < 2:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        running.cancel()
    assert flushes == [0, 1], "once more after the failure, then nothing was left to flush"


async def test_rows_written_during_a_flush_wait_for_the_next() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    flushes: list[int] = []

    async def flush() -> None:
        flushes.append(1)
        began.set()
        await go_on.wait()

    flushing = BackgroundFlush(flush, rows=1, interval_s=60)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(flushing.run())
        flushing.wrote(1)
        await began.wait()
        flushing.wrote(1)
        go_on.set()
        async with asyncio.timeout(60):
            while len(flushes) < 2:
                await asyncio.sleep(0.005)
        running.cancel()


async def test_reads_wait_while_they_are_held_off_and_are_waited_for() -> None:
    reads, events = Reads(), []
    release = asyncio.Event()

    async def read(name: str) -> None:
        async with reads.reading():
            events.append(f"{name} begins")
            await release.wait()
        events.append(f"{name} ends")

    async def hold_off() -> None:
        async with reads.held_off():
            events.append("alone")

    async with asyncio.TaskGroup() as group:
        group.create_task(read("early"))
        await asyncio.sleep(0)
        group.create_task(hold_off())
        await asyncio.sleep(0)
        group.create_task(read("late"))
        await asyncio.sleep(0)
        assert events == ["early begins"]
        release.set()
    assert events == ["early begins", "early ends", "alone", "late begins", "late ends"]


async def test_whom_another_process_wrote_is_read_as_of_now_and_others_are_not(
    lite: MilvusLiteProcess, shared_collection: str, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lite.uri, shared_collection) as store:
        levels: list[str] = []
        rows = store._collection.rows

        async def noting(*args: Any, level: Any, **options: Any) -> Any:
            levels.append(level)
            return await rows(*args, level=level, **options)

        monkeypatch.setattr(store._collection, "rows", noting)
        store._own.lags = True  # as a server does
        await store.list(Scope(user))
        store.written_elsewhere(user)
        await store.list(Scope(user))
        await store.list(Scope(f"{user}-2"))
        await store.list(Scope(user))
        assert levels == ["Bounded", "Strong", "Bounded", "Bounded"]
        assert isinstance(store, Lagging)


async def test_superseding_is_seen_as_soon_as_put_returns(
    lite: MilvusLiteProcess, shared_collection: str, user: str
) -> None:
    async with opened(lite.uri, shared_collection) as store:
        await put(store, memory(user), memory(user, version=2, status=MemoryStatus.SUPERSEDED))
        assert await store.search(Scope(user), np.asarray(towards(0)), limit=5, now=NOW) == []
