"""Qdrant by its address: what goes over the wire, and what is done when the server fails.

No Qdrant server is asked here: tests/support/qdrant_server.py answers, with the client's local mode behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.server import QdrantServer, Tls
from semmem.backends.qdrant.store import QdrantStore
from semmem.memory import MemoryType, Scope, Source
from semmem.ports.errors import StoreError, StoreFull, StoreMismatch, StoreTimeout, StoreUnavailable
from tests.integration.backends.conftest import QDRANT, QDRANT_LIMITS, qdrant_by_rest
from tests.support.memories import DIMENSION, NOW, answering, found, found_ids, memory, put, towards
from tests.support.owned_qdrant import OwnedQdrant
from tests.support.qdrant_server import QdrantStandIn, standing_in, tls_context

U = Scope("ann")


@asynccontextmanager
async def opened(server: QdrantStandIn, collection: Collection = QDRANT, **options: Any) -> AsyncIterator[QdrantStore]:
    store = qdrant_by_rest(server, collection, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def every_call(store: QdrantStore, scope: Scope) -> list[Callable[[], Awaitable[object]]]:
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
        lambda: store.expired(NOW, limit=5),
    ]


# --- the collection --------------------------------------------------------------------------------------------------


async def test_a_collection_is_made_for_one_user_per_search(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in):
        made = qdrant_stand_in.creations["memories"]
    assert made["vectors"] == {"embedding": {"size": DIMENSION, "distance": "Cosine", "on_disk": False}}
    assert made["hnsw_config"] == {"m": 0, "payload_m": 0}, "no graph over all users"
    assert made["metadata"] == {"semmem.schema": "1", "semmem.signature": "test/16"}
    assert "quantization_config" not in made
    indexes = {body["field_name"]: body["field_schema"] for body in qdrant_stand_in.bodies("PUT", "/index")}
    assert indexes["user_id"] == {"type": "keyword", "is_tenant": True}
    assert indexes["version"] == "integer"
    assert indexes["expires_at"] == "float"


@pytest.mark.parametrize(
    ("asked", "quantisation", "params"),
    [
        (replace(QDRANT), None, {"exact": True}),
        (replace(QDRANT, index="HNSW"), None, {"exact": False}),
        (
            replace(QDRANT, quantisation="int8", oversampling=2.0),
            {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
            {"quantization": {"rescore": True, "oversampling": 2.0}},
        ),
        (
            replace(QDRANT, quantisation="int8", rescore=False),
            {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
            {"quantization": {"rescore": False}},
        ),
        (
            replace(QDRANT, quantisation="binary"),
            {"binary": {"always_ram": True}},
            {"quantization": {"rescore": True, "oversampling": 3.0}},
        ),
    ],
    ids=["flat", "hnsw", "int8", "int8 alone", "binary"],
)
async def test_index_and_quantisation_go_with_the_collection_and_with_each_search(
    qdrant_stand_in: QdrantStandIn, asked: Collection, quantisation: Any, params: dict[str, Any]
) -> None:
    async with opened(qdrant_stand_in, asked) as store:
        await put(store, memory("ann"))
        assert await found_ids(store, U) == ["mem_1"]
    made = qdrant_stand_in.creations["memories"]
    assert made.get("quantization_config") == quantisation
    assert made["vectors"]["embedding"]["on_disk"] is (quantisation is not None)
    assert made["hnsw_config"]["payload_m"] == (16 if asked.index == "HNSW" else 0)
    (query,) = qdrant_stand_in.bodies("POST", "/points/query")
    sent = {"exact": False, **query["params"]}
    assert sent == {"exact": False, **params}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"signature": "other/16"}, "embedding signature test/16 (configured: other/16)"),
        ({"dimension": 384}, "dimension 16 (configured: 384)"),
        ({"index": "HNSW"}, "index FLAT (configured: HNSW)"),
        ({"quantisation": "int8"}, "quantisation none (configured: int8)"),
    ],
)
async def test_a_collection_made_for_something_else_is_refused(
    qdrant_stand_in: QdrantStandIn, change: dict[str, Any], named: str
) -> None:
    async with opened(qdrant_stand_in):
        pass
    with pytest.raises(StoreMismatch) as refused:
        await qdrant_by_rest(qdrant_stand_in, replace(QDRANT, **change)).open()
    assert named in str(refused.value)
    assert "name another collection" in str(refused.value)


@pytest.mark.parametrize("version", ["1.15.5", "0.11.7", "unknown"])
async def test_a_server_that_cannot_write_under_a_condition_is_refused(version: str) -> None:
    async with standing_in(version=version) as server:
        with pytest.raises(StoreError, match=r"1\.16 or later"):
            await qdrant_by_rest(server).open()


async def test_a_collection_that_another_replica_makes_at_the_same_time_is_shared(
    qdrant_stand_in: QdrantStandIn,
) -> None:
    stores = [qdrant_by_rest(qdrant_stand_in) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await put(stores[0], memory("ann"))
    assert [await store.count(U) for store in stores] == [1] * 4
    for store in stores:
        await store.close()


# --- writes of several replicas --------------------------------------------------------------------------------------


async def test_of_writes_by_two_replicas_the_highest_version_stays(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in) as one, opened(qdrant_stand_in) as other:
        versions = [(one, 3), (other, 2), (other, 5), (one, 4), (one, 5), (other, 1)]
        await asyncio.gather(*(put(store, memory("ann", version=version)) for store, version in versions))
        assert [kept.version for kept in await one.list(U)] == [5]
    upserts = qdrant_stand_in.bodies("PUT", "/points")
    conditions = [(body["points"][0]["payload"]["version"], body["update_filter"]["must"]) for body in upserts]
    assert all(must[1]["range"]["lt"] == version for version, must in conditions)


async def test_what_is_said_anew_while_a_scope_is_erased_stays(qdrant_stand_in: QdrantStandIn) -> None:
    """Between reading what is old and removing it, another replica writes a newer version."""
    async with opened(qdrant_stand_in) as store:
        await put(store, memory("ann", source=Source(time=50.0)), memory("ann", "mem_2", source=Source(time=50.0)))
        answer = qdrant_stand_in._answer

        def slow(method: str, target: str, headers: dict[str, str], body: Any) -> tuple[int, str]:
            if "/points/delete" in target:
                qdrant_stand_in._answer = answer  # type: ignore[method-assign]
                newer = {**point, "payload": {**point["payload"], "version": 2, "source": {"time": 150.0}}}
                answer("PUT", target.split("/delete")[0], {}, {"points": [newer]})
            return answer(method, target, headers, body)

        point = qdrant_stand_in.bodies("PUT", "/points")[0]["points"][0]
        qdrant_stand_in._answer = slow  # type: ignore[method-assign]
        assert await store.forget_scope(U, said_until=100.0) == 2
        assert [(one.id, one.version) for one in await store.list(U)] == [("mem_1", 2)]


async def test_more_than_one_page_is_read_and_removed(
    qdrant_stand_in: QdrantStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semmem.backends.qdrant.store.PAGE_POINTS", 3)
    monkeypatch.setattr("semmem.backends.qdrant.store.REMOVE_BATCH", 2)
    async with opened(qdrant_stand_in, rows_per_user_max=8) as store:
        await put(store, *(memory("ann", f"mem_{at}") for at in range(8)))
        assert len(await store.list(U)) == 8
        await put(store, memory("ann", "one more"))
        with pytest.raises(StoreError, match="rows_per_user_max=8"):
            await store.list(U)
        assert await store.forget_scope(U) == 9
        assert await store.count(U) == 0


async def test_expired_memories_are_named_and_swept(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in) as store:
        ends = {"over": NOW - 1, "at once": NOW, "later": NOW + 1, "never": None}
        await put(store, *(memory("ann", name, expires_at=at) for name, at in ends.items()))
        assert set(await store.expired(NOW, limit=10)) == {("ann", "over"), ("ann", "at once")}
        assert len(await store.expired(NOW, limit=1)) == 1
        assert await store.sweep(NOW, expired=False) == 0
        assert await store.sweep(NOW) == 2
        assert {one.id for one in await store.list(U)} == {"later", "never"}
        assert await store.purge() is False


# --- failures --------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_down_at_start_is_opened_when_it_comes() -> None:
    async with standing_in() as server:
        await server.stop()
        store = qdrant_by_rest(server)
        with pytest.raises(StoreUnavailable):
            await store.open()
        with pytest.raises(StoreUnavailable):
            await store.count(U)
        await server.start()
        await store.open()
        await put(store, memory("ann"))
        assert await store.count(U) == 1
        await store.close()


async def test_every_call_goes_on_after_a_restart_of_the_server(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in) as store:
        for call in every_call(store, U):
            await store.health()
            await qdrant_stand_in.stop()
            with pytest.raises(StoreUnavailable):
                await call()
            await qdrant_stand_in.start()
            await call()


async def test_a_call_that_loses_its_connection_is_made_once_more(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in) as store:
        for call in every_call(store, U):
            qdrant_stand_in.drops = 1
            await call()
            assert qdrant_stand_in.drops == 0
            qdrant_stand_in.drops = 2
            with pytest.raises(StoreUnavailable):
                await call()


async def test_a_hung_server_is_a_timeout_within_the_deadline(qdrant_stand_in: QdrantStandIn) -> None:
    limits: dict[str, Any] = {"search_timeout_s": 0.1, "read_timeout_s": 0.1, "write_timeout_s": 0.1}
    async with opened(qdrant_stand_in, **limits) as store:
        qdrant_stand_in.hang = True
        for call in every_call(store, U):
            with pytest.raises(StoreTimeout):
                await call()
        engine = QdrantServer(f"http://127.0.0.1:{qdrant_stand_in.port}", open_timeout_s=0.1)
        with pytest.raises(StoreUnavailable):
            await engine.open()
        await engine.close()
        qdrant_stand_in.hang = False
        await answering(store.health)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, '{"status": {"error": "Service internal error: No space left on device"}}', StoreFull),
        (500, "{}", StoreUnavailable),
        (503, "{}", StoreUnavailable),
        (429, "{}", StoreUnavailable),
        (400, "{}", StoreError),
        (401, "{}", StoreError),
        (404, "{}", StoreError),
        (200, "not JSON", StoreError),
        (200, '{"result": {"points": 5}}', StoreError),
    ],
)
async def test_each_refusal_of_the_server_has_its_error_without_user_or_content(
    qdrant_stand_in: QdrantStandIn, caplog: pytest.LogCaptureFixture, status: int, body: str, kind: type[StoreError]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = memory("secret-user", content="secret-content", project="secret-project")
    async with opened(qdrant_stand_in) as store:
        await put(store, secret)
        qdrant_stand_in.fail = (status, body)
        for call in every_call(store, Scope("secret-user", "secret-project"))[:8]:
            with pytest.raises(StoreError) as raised:
                await call()
            assert type(raised.value) is kind
            assert raised.value.__suppress_context__
            assert "secret" not in str(raised.value)
    assert "secret" not in caplog.text


async def test_a_wrong_api_key_says_so_and_the_right_one_opens() -> None:
    async with standing_in(api_key="right") as server:
        url = f"http://127.0.0.1:{server.port}"
        wrong = QdrantServer(url, api_key="wrong")
        with pytest.raises(StoreError, match="refused the API key") as refused:
            await wrong.open()
        assert not isinstance(refused.value, StoreUnavailable), "waiting does not mend it"
        await wrong.close()
        right = QdrantServer(url, api_key="right")
        await right.open()
        await right.close()


async def test_tls_believes_the_named_authority_and_no_other(tmp_path: Path) -> None:
    ca, other = trustme.CA(), trustme.CA()
    certificate = ca.issue_cert("localhost")
    for name, content in (("ca", ca.cert_pem), ("other", other.cert_pem), ("key", certificate.private_key_pem)):
        content.write_to_path(tmp_path / name)
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    server = QdrantStandIn()
    await server.start(tls_context(tmp_path / "cert", tmp_path / "key"))
    url = f"https://localhost:{server.port}"
    engine = QdrantServer(url, tls=Tls(ca_file=str(tmp_path / "ca")))
    store = OwnedQdrant(engine, QDRANT, **QDRANT_LIMITS)
    await store.open()
    await put(store, memory("ann", type=MemoryType.EPISODIC))
    assert len(await found(store, U)) == 1
    await store.close()
    doubted = QdrantServer(url, tls=Tls(ca_file=str(tmp_path / "other")))
    with pytest.raises(StoreUnavailable):
        await doubted.open()
    await doubted.close()
    with pytest.raises(StoreError, match="a TLS file"):
        await QdrantServer(url, tls=Tls(ca_file=str(tmp_path / "nothing"))).open()
    await server.stop()


async def test_a_server_is_told_how_long_an_answer_is_waited_for(qdrant_stand_in: QdrantStandIn) -> None:
    async with opened(qdrant_stand_in, search_timeout_s=0.9, read_timeout_s=2.5, write_timeout_s=4.0) as store:
        for call in every_call(store, U):
            await call()
    told = {(one.path.rsplit("/", 1)[-1], one.query) for one in qdrant_stand_in.seen if "/points" in one.path}
    assert {query.split("timeout=")[-1].split("&")[0] for _, query in told} <= {"1", "3", "4"}
    assert all("timeout=" in query for _, query in told)
