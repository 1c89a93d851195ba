"""What only a real Milvus server shows: writes that show late, other replicas, restarts, tokens, databases, versions.

``MILVUS_TEST_URI`` names the server (``make server-test`` starts one); without it these tests are not collected.
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import trustme
from pymilvus import MilvusClient

from semmem.backends.milvus.own_writes import SHOW_S
from semmem.backends.milvus.store import MilvusStore
from semmem.memory import MemoryStatus, Scope
from semmem.ports.errors import StoreError, StoreMismatch, StoreTimeout, StoreUnavailable
from tests.integration.backends.conftest import SERVER_URI, milvus_store
from tests.integration.backends.test_milvus import clouds
from tests.support.memories import NOW, found, found_ids, memory, put, towards
from tests.support.milvus import MilvusServer, running_milvus

FACTS = 20


@asynccontextmanager
async def opened(uri: str, collection: str, **options: Any) -> AsyncIterator[MilvusStore]:
    store = milvus_store(uri, collection, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest_asyncio.fixture
async def replica(shared_collection: str) -> AsyncIterator[MilvusStore]:
    async with opened(SERVER_URI, shared_collection) as store:
        yield store


@pytest_asyncio.fixture
async def other(shared_collection: str) -> AsyncIterator[MilvusStore]:
    async with opened(SERVER_URI, shared_collection) as store:
        yield store


@pytest.fixture
def own_collection(collection: str) -> Iterator[str]:
    yield collection
    client = MilvusClient(SERVER_URI, timeout=10)
    client.drop_collection(collection, timeout=10)
    client.close()


def noted_levels(store: MilvusStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The consistency level of every read from here on."""
    levels: list[str] = []
    call = store._connection.call

    async def noting(operation: str, **arguments: Any) -> Any:
        levels.extend([arguments["consistency_level"]] if "consistency_level" in arguments else [])
        return await call(operation, **arguments)

    monkeypatch.setattr(store._connection, "call", noting)
    return levels


# --- reading what was written ----------------------------------------------------------------------------------------


async def test_a_batch_of_facts_waits_for_the_server_once(
    replica: MilvusStore, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels, batch = noted_levels(replica, monkeypatch), time.time()
    for number in range(FACTS):
        known = await replica.search(Scope(user), towards(0), limit=50, now=NOW, as_of=batch)
        assert len(known) == number, "every fact before this one is compared with it"
        await put(replica, memory(user, f"mem_{number}"))
    assert await replica.count(Scope(user)) == FACTS
    assert levels[0] == "Strong"
    assert levels.count("Strong") <= 1 + 2 * math.ceil(FACTS / 10), "one, and some where the machine is slow"
    assert len(levels) == 2 * FACTS + 1


async def test_what_was_written_shows_at_once_in_every_read(replica: MilvusStore, user: str) -> None:
    scope = Scope(user)

    async def shown() -> tuple[list[str], list[str], int]:
        hits = await replica.search(scope, towards(0), limit=5, now=NOW)
        listed = await replica.list(scope)
        return [hit.memory.content for hit in hits], [one.content for one in listed], await replica.count(scope)

    await put(replica, memory(user, content="one"))
    assert await shown() == (["one"], ["one"], 1)
    await put(replica, memory(user, version=2, content="two"))
    assert await shown() == (["two"], ["two"], 1)
    await put(replica, memory(user, version=3, content="three", status=MemoryStatus.SUPERSEDED))
    assert await shown() == ([], ["three"], 1)
    await replica.forget(scope, "mem_1")
    assert await shown() == ([], [], 0)
    await put(replica, memory(user, content="again"))
    assert await shown() == (["again"], ["again"], 1)


async def test_a_search_as_of_now_shows_what_another_replica_wrote(
    replica: MilvusStore, other: MilvusStore, user: str
) -> None:
    scope = Scope(user)
    for number in range(6):
        writer, reader = (replica, other) if number % 2 else (other, replica)
        await put(writer, memory(user, f"mem_{number}"))
        hits = await reader.search(scope, towards(0), limit=50, now=NOW, as_of=time.time())
        assert len(hits) == number + 1, "a batch never misses what the batch before it wrote elsewhere"


async def test_a_memory_that_another_replica_erased_is_not_shown_again(
    replica: MilvusStore, other: MilvusStore, user: str
) -> None:
    scope = Scope(user)
    await put(replica, memory(user), memory(user, "mem_2"))
    assert await other.forget_scope(scope) == 2
    await asyncio.sleep(SHOW_S + 0.1)
    assert await replica.search(scope, towards(0), limit=5, now=NOW) == []
    assert await replica.list(scope) == []
    assert await found_ids(replica, scope) == []


async def test_replicas_that_take_turns_lose_no_version(replica: MilvusStore, other: MilvusStore, user: str) -> None:
    scope = Scope(user)
    for version in range(1, 13):
        store = replica if version % 2 else other
        hits = await store.search(scope, towards(0), limit=5, now=NOW, as_of=time.time())
        assert [hit.memory.version for hit in hits] == ([version - 1] if version > 1 else [])
        await put(store, memory(user, version=version))
    for store in (replica, other):
        assert [hit.memory.version for hit in await found(store, scope)] == [12]
        assert await store.count(scope) == 1


async def test_users_do_not_wait_for_each_other(replica: MilvusStore, user: str) -> None:
    began = time.monotonic()
    await put(replica, memory(user))
    alone = time.monotonic() - began
    began = time.monotonic()
    await asyncio.gather(*(put(replica, memory(f"{user}-{number}")) for number in range(40)))
    assert time.monotonic() - began < 20 * max(alone, 0.2), "forty one after another would take twice this"


async def test_what_was_filled_in_bulk_shows(replica: MilvusStore, user: str) -> None:
    await replica.fill([memory(user, f"mem_{number}") for number in range(300)])
    assert await replica.count(Scope(user)) == 300
    assert len(await replica.list(Scope(user), limit=1000)) == 300


# --- indexes ---------------------------------------------------------------------------------------------------------


@pytest.mark.long(60)
@pytest.mark.parametrize("index", ["FLAT", "HNSW", "IVF_SQ8"])
async def test_a_user_with_a_small_share_gets_the_exact_nearest(own_collection: str, index: str) -> None:
    """3,000 rows of 100 users in one partition, so that there is an index (the server makes none below 1,024)."""
    vectors = clouds(100, 30)
    everything = [
        memory(f"user-{user}", f"mem_{at}", embedding=vector)
        for user, own in enumerate(vectors)
        for at, vector in enumerate(own)
    ]
    async with opened(SERVER_URI, own_collection, index=index, num_partitions=1) as store:
        await store.fill(everything)
        async with store._connection.within("flush", 60):
            await store._connection.call("flush")
        client = MilvusClient(SERVER_URI, timeout=60)
        async with asyncio.timeout(60):
            while int(client.describe_index(own_collection, "embedding")["pending_index_rows"]):
                await asyncio.sleep(0.5)
        client.release_collection(own_collection)
        client.load_collection(own_collection)
        client.close()
        for user in range(0, 100, 4):
            asked, own = vectors[user - 1][0], vectors[user]
            exact = np.argsort(-(own @ asked))[:5]
            assert await found_ids(store, Scope(f"user-{user}"), asked, limit=5) == [f"mem_{at}" for at in exact]


async def test_an_index_that_this_server_lacks_is_named_with_the_version_that_has_it(collection: str) -> None:
    with pytest.raises(StoreError, match=r"server v2\.3\.5.* has no index HNSW_SQ: use 2\.5 or later"):
        await milvus_store(SERVER_URI, collection, index="HNSW_SQ").open()


async def test_another_dimension_model_or_index_is_refused(shared_collection: str, replica: MilvusStore) -> None:
    for options in ({"dimension": 8}, {"signature": "other/16"}, {"index": "HNSW"}):
        with pytest.raises(StoreMismatch, match="reindex"):
            await milvus_store(SERVER_URI, shared_collection, **options).open()


# --- access ----------------------------------------------------------------------------------------------------------


async def test_a_database_that_is_missing_is_named_and_one_of_its_own_keeps_its_memories(
    collection: str, user: str
) -> None:
    with pytest.raises(StoreError, match="no such database") as raised:
        await milvus_store(SERVER_URI, collection, asks={"database": f"db_{collection}"}).open()
    assert type(raised.value) is StoreError, "waiting does not mend it"
    client = MilvusClient(SERVER_URI, timeout=10)
    client.create_database(f"db_{collection}")
    try:
        async with opened(SERVER_URI, collection, asks={"database": f"db_{collection}"}) as store:
            await put(store, memory(user))
            assert await store.count(Scope(user)) == 1
            assert not client.has_collection(collection)
    finally:
        inside = MilvusClient(SERVER_URI, db_name=f"db_{collection}", timeout=10)
        inside.drop_collection(collection)
        inside.close()
        client.drop_database(f"db_{collection}")
        client.close()


@pytest.mark.long(60)
async def test_a_token_is_sent_and_a_wrong_one_is_a_clear_error(tmp_path: Path, user: str) -> None:
    with running_milvus(tmp_path / "milvus", asks_for_token=True) as server:
        for token in ("", "root:wrong", "nobody:Milvus"):
            with pytest.raises(StoreError, match="refuses the token") as raised:
                await milvus_store(server.uri, "memories", asks={"token": token}).open()
            assert type(raised.value) is StoreError, "waiting does not mend it"
        async with opened(server.uri, "memories", asks={"token": "root:Milvus"}) as store:
            await put(store, memory(user))
            assert await found_ids(store, Scope(user)) == ["mem_1"]
        client = MilvusClient(server.uri, token="root:Milvus", timeout=10)
        client.create_user("reader", "Secret-1234")
        client.close()
        with pytest.raises(StoreError, match="lacks a right"):
            await milvus_store(server.uri, "memories", asks={"token": "reader:Secret-1234"}).open()


@pytest.mark.long(60)
@pytest.mark.parametrize("mutual", [False, True], ids=["server", "mutual"])
async def test_tls_is_spoken_with_the_server_of_the_named_authority(tmp_path: Path, user: str, mutual: bool) -> None:
    authority, folder = trustme.CA(), tmp_path / "certificates"
    folder.mkdir()
    for name, host in (("server", "localhost"), ("client", "semmem")):
        made = authority.issue_cert(host)
        made.private_key_pem.write_to_path(folder / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
    believed, stranger = tmp_path / "authority.pem", tmp_path / "stranger.pem"
    authority.cert_pem.write_to_path(believed)
    trustme.CA().cert_pem.write_to_path(stranger)
    if mutual:
        authority.cert_pem.write_to_path(folder / "ca.pem")
    own: dict[str, Any] = {"cert_file": str(folder / "client.pem"), "client_key_path": str(folder / "client.key")}
    tls: dict[str, Any] = {"secure": True, "ca_file": str(believed), **(own if mutual else {})}
    with running_milvus(tmp_path / "milvus", tls=folder) as server:
        async with opened(server.uri, "memories", asks=tls) as store:
            await put(store, memory(user))
            assert await found_ids(store, Scope(user)) == ["mem_1"]
        refused = [{**tls, "ca_file": str(stranger)}]
        refused += [{"secure": True, "ca_file": str(believed)}] if mutual else []
        for asks in refused:
            with pytest.raises(StoreUnavailable):
                await milvus_store(server.uri, "memories", open_timeout_s=5.0, asks=asks).open()


async def test_a_server_that_does_not_speak_tls_is_unavailable(collection: str) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await milvus_store(SERVER_URI.replace("http:", "https:"), collection, open_timeout_s=5.0).open()


# --- going away and coming back --------------------------------------------------------------------------------------


async def test_a_collection_that_somebody_released_is_loaded_again(own_collection: str, user: str) -> None:
    async with opened(SERVER_URI, own_collection) as store:
        await put(store, memory(user))
        client = MilvusClient(SERVER_URI, timeout=10)
        client.release_collection(own_collection)
        client.close()
        await shows(store, user)


async def test_a_collection_that_somebody_dropped_is_named_and_made_anew_at_the_next_start(
    own_collection: str, user: str
) -> None:
    async with opened(SERVER_URI, own_collection) as store:
        await put(store, memory(user))
        client = MilvusClient(SERVER_URI, timeout=10)
        client.drop_collection(own_collection)
        client.close()
        with pytest.raises(StoreError, match="the collection is gone"):
            await store.count(Scope(user))
    async with opened(SERVER_URI, own_collection) as store:
        assert await store.count(Scope(user)) == 0


@pytest.mark.long(120)
@pytest.mark.timeout(400)
async def test_a_server_that_is_stopped_killed_and_started_again_has_every_memory(tmp_path: Path, user: str) -> None:
    with running_milvus(tmp_path / "milvus") as server:
        limits = {"search_timeout_s": 0.3, "read_timeout_s": 5.0, "write_timeout_s": 5.0}
        async with opened(server.uri, "memories", **limits) as store:
            await put(store, *(memory(user, f"mem_{number}") for number in range(10)))
            await stopped_for_a_while(server, store, user)
            assert await store.count(Scope(user)) == 10
            await asyncio.to_thread(server.kill)
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await store.search(Scope(user), towards(0), limit=5, now=NOW)
            assert time.monotonic() - began < 1.0, "a request is not held up by a server that is away"
            await asyncio.to_thread(server.start)
            await shows(store, user, memories=10, within_s=120)
            await put(store, memory(user, "mem_10"))
            assert await store.count(Scope(user)) == 11


async def stopped_for_a_while(server: MilvusServer, store: MilvusStore, user: str) -> None:
    """As a node that hangs: connections stay, answers do not come."""
    server.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(StoreTimeout):
            await store.search(Scope(user), towards(0), limit=5, now=NOW)
        assert time.monotonic() - began < 1.0
        await asyncio.sleep(2.0)
    finally:
        server.signal(signal.SIGCONT)
    await shows(store, user, memories=10)


async def shows(store: MilvusStore, user: str, *, memories: int = 1, within_s: float = 60) -> None:
    """Return when the user's memories are there again, by themselves."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                if len(await store.list(Scope(user))) == memories:
                    return
            except StoreError:
                await asyncio.sleep(0.1)
