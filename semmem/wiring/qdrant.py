"""Settings -> the collections of a Qdrant. Imported only where it is configured: its package is an extra."""

from __future__ import annotations

import logging
from typing import Any

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.collections import QdrantCollections
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer, Tls
from semmem.backends.qdrant.store import LocalQdrantStore, QdrantStore
from semmem.config.settings import Settings
from semmem.config.stores_section import QdrantSection
from semmem.ports.store import Described

log = logging.getLogger(__name__)


def qdrant_collections(settings: Settings, *, rows_per_user_max: int) -> QdrantCollections:
    """At the address of a server, or in the client's local mode."""
    rules = settings.memory.qdrant
    options: dict[str, Any] = {
        "is_lent": True,
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "rows_per_user_max": rows_per_user_max,
    }
    if rules.address:
        server = _server(rules)
        return QdrantCollections(
            rules.collection, server, lambda about: QdrantStore(server, _collection(rules, about), **options)
        )
    log.warning(
        "Qdrant's local mode keeps the memories: the client's own Python, no Qdrant engine, for trying out; every"
        " search looks at all memories of all users, and index and quantisation (%s, %s) mean nothing to it",
        rules.index,
        rules.quantisation,
    )
    local = LocalQdrant(settings.qdrant_dir)
    options["purge_timeout_s"] = rules.purge_timeout_s
    return QdrantCollections(
        rules.collection, local, lambda about: LocalQdrantStore(local, _collection(rules, about), **options)
    )


def _collection(rules: QdrantSection, about: Described) -> Collection:
    return rules.fill(Collection, name=about.name, dimension=about.dimension, signature=about.signature)


def _server(rules: QdrantSection) -> QdrantServer:
    url = rules.address
    if "://" not in url:
        url = f"{'https' if rules.tls.enabled else 'http'}://{url}"
    api_key = rules.api_key.get_secret_value()
    if api_key and url.startswith("http://"):
        log.warning("memory.qdrant.api_key travels unencrypted: switch memory.qdrant.tls on")
    return QdrantServer(url, api_key=api_key, tls=rules.tls.fill(Tls))
