"""Exported models, and stores for the contract suite: in process, Milvus Lite as a child process, a Milvus server, and
Qdrant: the client's local mode, once in this process and once behind Qdrant's REST interface.

``MILVUS_TEST_URI=http://127.0.0.1:19530`` names the server (``make server-test`` starts one); its collections are
dropped afterwards.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pymilvus import MilvusClient

from semmem.backends.in_process import InProcessStore
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.server import QdrantServer
from semmem.ports.store import Store
from tests.support.forked_lite import use_lite_forks
from tests.support.memories import DIMENSION
from tests.support.owned_qdrant import OwnedQdrant
from tests.support.qdrant_server import QdrantStandIn

SERVER_URI = os.environ.get("MILVUS_TEST_URI", "")
collect_ignore = [] if SERVER_URI else ["test_milvus_server.py"]
QDRANT = Collection("memories", DIMENSION, "test/16")
QDRANT_LIMITS: dict[str, Any] = {"search_timeout_s": 30.0, "read_timeout_s": 30.0}
GENEROUS: dict[str, Any] = {
    "open_timeout_s": 60.0,
    "search_timeout_s": 30.0,
    "read_timeout_s": 30.0,
    "num_partitions": 4,
}
STORES = ["in_process", "milvus_lite", "qdrant_local", "qdrant_rest"] + (["milvus_server"] if SERVER_URI else [])
LITE_ITSELF = "tests.integration.backends.test_milvus_lite"
"""Where it is started as semmem starts it."""


@pytest.fixture(scope="module", autouse=True)
def lite_forks(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ != LITE_ITSELF:
            use_lite_forks(patch)
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for models that are written for ONNX Runtime."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def lite_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("milvus") / "data"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lite(lite_dir: Path) -> AsyncIterator[MilvusLiteProcess]:
    """One Milvus Lite for the whole run."""
    process = MilvusLiteProcess(lite_dir)
    await process.start()
    yield process
    await process.stop()


@pytest.fixture(scope="session")
def shared_collection() -> Iterator[str]:
    """Tests of the contract share one collection, as users do; each test has users of its own."""
    name = f"contract_{secrets.token_hex(4)}"
    yield name
    if SERVER_URI:
        client = MilvusClient(SERVER_URI, timeout=10)
        client.drop_collection(name, timeout=10)
        client.close()


def milvus_store(uri: str, collection: str, *, asks: Mapping[str, Any] | None = None, **options: Any) -> MilvusStore:
    """``asks``: what the server asks for, as ``server_options`` takes it."""
    named: dict[str, Any] = {"dimension": DIMENSION, "signature": "test/16"}
    return MilvusStore(server_options(uri, **(asks or {})), collection=collection, **{**GENEROUS, **named, **options})


@pytest_asyncio.fixture
async def qdrant_stand_in() -> AsyncIterator[QdrantStandIn]:
    server = QdrantStandIn()
    await server.start()
    yield server
    await server.stop()


def local_qdrant(folder: Path, collection: Collection = QDRANT, **options: Any) -> OwnedQdrant:
    return OwnedQdrant(folder, collection, **{**QDRANT_LIMITS, **options})


def qdrant_by_rest(server: QdrantStandIn, collection: Collection = QDRANT, **options: Any) -> OwnedQdrant:
    engine = QdrantServer(f"http://127.0.0.1:{server.port}")
    return OwnedQdrant(engine, collection, **{**QDRANT_LIMITS, **options})


@pytest_asyncio.fixture(params=STORES)
async def store(
    request: pytest.FixtureRequest,
    lite: MilvusLiteProcess,
    shared_collection: str,
    tmp_path: Path,
) -> AsyncIterator[Store]:
    opened: Store
    stand_in: QdrantStandIn | None = None
    match request.param:
        case "in_process":
            opened = InProcessStore(dimension=DIMENSION)
        case "qdrant_local":
            opened = local_qdrant(tmp_path / "qdrant")
        case "qdrant_rest":
            stand_in = QdrantStandIn()
            await stand_in.start()
            opened = qdrant_by_rest(stand_in)
        case "milvus_server":
            opened = milvus_store(SERVER_URI, shared_collection)
        case _:
            opened = milvus_store(lite.uri, shared_collection)
    await opened.open()
    yield opened
    await opened.close()
    if stand_in is not None:
        await stand_in.stop()


@pytest.fixture
def user() -> str:
    """A user that no other test has."""
    return f"user-{secrets.token_hex(6)}"


@pytest.fixture
def collection() -> str:
    """A collection that no other test has."""
    return f"test_{secrets.token_hex(6)}"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"
