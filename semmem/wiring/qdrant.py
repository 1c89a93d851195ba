"""Settings -> the collections of a Qdrant. Imported only where it is configured: its package is an extra."""

from __future__ import annotations

import logging
from typing import Any

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer, Tls
from semmem.backends.qdrant.store import QdrantCollections
from semmem.config.settings import Settings
from semmem.config.stores_section import QdrantSection

log = logging.getLogger(__name__)


def qdrant_collections(settings: Settings, *, rows_per_user_max: int) -> QdrantCollections:
    """At the address of a server, or in the client's local mode."""
    rules = settings.memory.qdrant
    options: dict[str, Any] = {
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "purge_timeout_s": rules.purge_timeout_s,
        "rows_per_user_max": rows_per_user_max,
    }
    first = rules.fill(Collection, name=rules.collection, dimension=0, signature="")
    if rules.address:
        return QdrantCollections(_server(rules), first, options=options)
    log.warning(
        "Qdrant's local mode keeps the memories: the client's own Python, no Qdrant engine, for trying out; every"
        " search looks at all memories of all users, and index and quantisation (%s, %s) mean nothing to it",
        rules.index,
        rules.quantisation,
    )
    return QdrantCollections(LocalQdrant(settings.qdrant_dir), first, options=options)


def _server(rules: QdrantSection) -> QdrantServer:
    url = rules.address
    if "://" not in url:
        url = f"{'https' if rules.tls.enabled else 'http'}://{url}"
    api_key = rules.api_key.get_secret_value()
    if api_key and url.startswith("http://"):
        log.warning("memory.qdrant.api_key travels unencrypted: switch memory.qdrant.tls on")
    return QdrantServer(url, api_key=api_key, tls=rules.tls.fill(Tls))
