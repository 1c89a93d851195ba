"""Settings -> the Qdrant store."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer
from semmem.backends.qdrant.store import QdrantStore
from semmem.config.settings import Settings
from semmem.ports.store import Described
from semmem.wiring import stores
from tests.support.configuration import check, only, write

ABOUT = Described("agentic_memory", "model/384", 384)


def settings(tmp_path: Path, **qdrant: Any) -> Settings:
    return Settings.model_validate({"data_dir": str(tmp_path), "memory": {"backend": "qdrant", "qdrant": qdrant}})


def test_without_an_address_it_is_the_local_mode_on_this_disk_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    collections = stores.collections(settings(tmp_path, index="HNSW", quantisation="int8"))
    store = collections.collection(ABOUT).memories
    assert isinstance(store, QdrantStore)
    assert isinstance(store.engine, LocalQdrant)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "for trying out" in record.message
    assert "(HNSW, int8) mean nothing to it" in record.message
    assert list(tmp_path.iterdir()) == [], "nothing is made before it is opened"


@pytest.mark.parametrize(
    ("qdrant", "url"),
    [
        ({"address": "qdrant:6333"}, "http://qdrant:6333"),
        ({"address": "qdrant:6333", "tls": {"enabled": True}}, "https://qdrant:6333"),
        ({"address": "https://q.example"}, "https://q.example"),
    ],
)
def test_with_an_address_it_is_a_server(tmp_path: Path, qdrant: dict[str, Any], url: str) -> None:
    store = stores.collections(settings(tmp_path, **qdrant)).collection(ABOUT).memories
    assert isinstance(store, QdrantStore)
    assert isinstance(store.engine, QdrantServer)
    assert store.engine.url == url


@pytest.mark.parametrize(("address", "warned"), [("http://q:6333", True), ("https://q:6333", False)])
def test_a_key_over_plain_text_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, address: str, warned: bool
) -> None:
    stores.collections(settings(tmp_path, address=address, api_key="a-long-secret"))
    assert ("travels unencrypted" in caplog.text) is warned
    assert "a-long-secret" not in caplog.text


def test_what_is_configured_reaches_collection_and_deadlines(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {
        "address": "q:6333",
        "collection": "other",
        "index": "HNSW",
        "quantisation": "binary",
        "oversampling": 8,
        "shards": 3,
        "copies": 2,
        "call_timeout_s": 7,
    }
    configured = settings(tmp_path, **chosen)
    collections = stores.collections(configured)
    assert collections.name == "other"
    store = collections.collection(Described("other_g2", "model/384", 384)).memories
    assert isinstance(store, QdrantStore)
    assert isinstance(store.engine, QdrantServer)
    made = store.about
    assert (made.name, made.dimension, made.signature) == ("other_g2", 384, "model/384")
    assert (made.index, made.quantisation, made.rescore, made.oversampling) == ("HNSW", "binary", True, 8)
    assert (made.shards, made.copies) == (3, 2)
    assert (store.read_timeout_s, store.write_timeout_s) == (7, 7)
    assert store.search_timeout_s == configured.deadlines.store_ms / 1000


def test_without_its_package_the_check_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, f"data_dir: {tmp_path}/d\nmemory: {{backend: qdrant}}")
    environ = {"HOME": str(tmp_path)}
    assert check(path, environ, here=True) == []
    monkeypatch.setattr("semmem.config.surroundings.find_spec", lambda name: None)
    problem = only(check(path, environ, here=True))
    assert problem.path == "memory.backend"
    assert "semmem[qdrant]" in problem.remedy
    assert check(path, environ, here=False) == []
