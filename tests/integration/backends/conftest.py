"""Exported models, and stores for the contract suite: in process, Milvus Lite as a child process, and a Milvus server.

``MILVUS_TEST_URI=http://127.0.0.1:19530`` names the server; its collections are dropped afterwards.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pymilvus import MilvusClient

from semmem.backends.in_process import InProcessStore
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.config.embedding_section import EmbeddingSection
from semmem.ports.store import Store
from tests.support.memories import DIMENSION

SERVER_URI = os.environ.get("MILVUS_TEST_URI", "")
STORES = ["in_process", "milvus_lite"] + (["milvus_server"] if SERVER_URI else [])


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for exported models, with those in it that set-up has made."""
    folder = tmp_path_factory.mktemp("models")
    for made in EmbeddingSection().onnx_folder.glob("*.fp32"):
        (folder / made.name).symlink_to(made)
    return folder


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


def milvus_store(uri: str, collection: str, **options: Any) -> MilvusStore:
    generous: dict[str, Any] = {
        "open_timeout_s": 60.0,
        "search_timeout_s": 5.0,
        "read_timeout_s": 5.0,
        "num_partitions": 4,
    }
    named: dict[str, Any] = {"dimension": DIMENSION, "signature": "test/16"}
    return MilvusStore(uri, collection=collection, **{**generous, **named, **options})


@pytest_asyncio.fixture(params=STORES)
async def store(
    request: pytest.FixtureRequest, lite: MilvusLiteProcess, shared_collection: str
) -> AsyncIterator[Store]:
    opened: Store = InProcessStore(dimension=DIMENSION)
    if request.param != "in_process":
        opened = milvus_store(SERVER_URI if request.param == "milvus_server" else lite.uri, shared_collection)
    await opened.open()
    yield opened
    await opened.close()


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
