"""Settings -> the Qdrant store. Imported only where it is configured: its package is an extra."""

from __future__ import annotations

import logging
from typing import Any

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer, Tls
from semmem.backends.qdrant.store import LocalQdrantStore, QdrantStore
from semmem.config.qdrant_section import QdrantSection
from semmem.config.settings import Settings

log = logging.getLogger(__name__)


def qdrant_store(settings: Settings, signature: str, *, rows_per_user_max: int) -> QdrantStore:
    """A store at the address of a server, or the client's local mode."""
    rules = settings.memory.qdrant
    collection = _collection(settings, rules, signature)
    options: dict[str, Any] = {
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "rows_per_user_max": rows_per_user_max,
    }
    if rules.address:
        return QdrantStore(_server(rules, collection), collection, **options)
    log.warning(
        "Qdrant's local mode keeps the memories: the client's own Python, no Qdrant engine, for trying out; every"
        " search looks at all memories of all users, and index and quantisation (%s, %s) mean nothing to it",
        rules.index,
        rules.quantisation,
    )
    local = LocalQdrant(settings.qdrant_dir, collection)
    return LocalQdrantStore(local, collection, purge_timeout_s=rules.purge_timeout_s, **options)


def _collection(settings: Settings, rules: QdrantSection, signature: str) -> Collection:
    return Collection(
        rules.collection,
        settings.memory.embedding.dimension,
        signature,
        index=rules.index,
        quantisation=rules.quantisation,
        rescore=rules.rescore,
        oversampling=rules.oversampling,
        shards=rules.shards,
        copies=rules.copies,
    )


def _server(rules: QdrantSection, collection: Collection) -> QdrantServer:
    url = rules.address
    if "://" not in url:
        url = f"{'https' if rules.tls.enabled else 'http'}://{url}"
    api_key = rules.api_key.get_secret_value()
    if api_key and url.startswith("http://"):
        log.warning("memory.qdrant.api_key travels unencrypted: switch memory.qdrant.tls on")
    tls = Tls(rules.tls.ca_file, rules.tls.cert_file, rules.tls.key_file)
    return QdrantServer(url, collection, api_key=api_key, tls=tls)
