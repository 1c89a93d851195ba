"""Settings -> where memories are kept: the collections of the configured store, and the store that is one of them, or
two while it is moved to another embedding model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semmem.backends.in_process import InProcessCollections
from semmem.backends.milvus.collection import WINDOW_MAX
from semmem.backends.milvus.collections import LiteCollections, MilvusCollections
from semmem.backends.milvus.connection import tls_options
from semmem.backends.milvus.embedded import EmbeddedMilvus
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.backends.sql.journal import SqlJournal
from semmem.config.settings import Settings
from semmem.config.stores_section import MilvusSection
from semmem.passages.shelves import ShelvedCollections
from semmem.ports.collections import Collection, Collections, Described
from semmem.ports.embedder import Embedder
from semmem.ports.errors import StoreError
from semmem.reindex.movable_store import MovableStore
from semmem.wiring.models import has_no_model

ROWS_PER_MEMORY = 5
"""Room for versions that are being replaced while a user's rows are read."""
PASSAGES_SPARE = 1000
"""Passages of a user that may come before room is made for them."""


def movable(settings: Settings, embedder: Embedder, journal: SqlJournal, *, may_move: bool) -> MovableStore:
    """The configured store, for this embedder's vectors. ``may_move``: another model's is opened, to be reindexed."""
    return MovableStore(collections(settings), embedder, journal, may_move=may_move)


def may_begin(settings: Settings, embedder: Embedder) -> bool:
    """Whether semmem reindexes what another model has made without being told. Not where ``source: auto`` found no
    model: it may be there again at the next start."""
    found_none = settings.memory.embedding.source == "auto" and has_no_model(embedder.signature)
    return settings.memory.reindex.start == "auto" and not found_none


def collections(settings: Settings) -> ShelvedCollections:
    """Where the configured store keeps memories. Raises StoreError when a package for it is not installed."""
    made = {"in_process": lambda _settings: InProcessCollections(), "qdrant": _qdrant, "milvus": _milvus}
    return ShelvedCollections(made[settings.memory.backend](settings))


def _milvus(settings: Settings) -> Collections:
    rules, options = settings.memory.milvus, _options(settings, "")
    if not rules.address:
        lite = _lite(settings)
        return LiteCollections(rules.collection, lite, purge_timeout_s=rules.purge_timeout_s, options=options)
    client = _client(settings)

    def collection(about: Described) -> Collection:
        described = {"collection": about.name, "signature": about.signature, "dimension": about.dimension}
        return MilvusStore(**client, **{**options, **described})

    return MilvusCollections(rules.collection, collection, client_options=_for_pymilvus(client))


def _for_pymilvus(client: dict[str, Any]) -> dict[str, Any]:
    """MilvusStore's own names for the same."""
    tls = {name: value for name, value in client.items() if name not in ("uri", "token", "database")}
    named = {"uri": client["uri"], "token": client["token"], "db_name": client["database"]}
    return {**named, **tls_options(tls)}  # type: ignore[arg-type]  # what is left of client is TlsOptions


def _qdrant(settings: Settings) -> Collections:
    """Raises StoreError when its package is not installed."""
    try:
        from semmem.wiring.qdrant import qdrant_collections  # an optional package, which takes half a second to import
    except ModuleNotFoundError:
        raise StoreError("memory.backend qdrant needs a package: pip install 'semmem[qdrant]'") from None
    return qdrant_collections(settings, rows_per_user_max=_rows_per_user_max(settings))


def milvus(settings: Settings, signature: str) -> MilvusStore:
    """A store at the address of a server, or the embedded one with its child process."""
    rules, options = settings.memory.milvus, _options(settings, signature)
    if rules.address:
        return MilvusStore(**_client(settings), **options)
    return EmbeddedMilvus(_lite(settings), purge_timeout_s=rules.purge_timeout_s, **options)


def _lite(settings: Settings) -> MilvusLiteProcess:
    """The child process, not started."""
    return MilvusLiteProcess(Path(settings.data_dir) / settings.memory.milvus.data_dir)


def _client(settings: Settings) -> dict[str, Any]:
    """Where the server is, and what it asks for."""
    rules = settings.memory.milvus
    return {
        "uri": _uri(rules.address, rules),
        "token": rules.token.get_secret_value(),
        "database": rules.database,
        "secure": rules.tls.enabled,
        "ca_pem_path": rules.tls.ca_file,
        "client_pem_path": rules.tls.cert_file,
        "client_key_path": rules.tls.key_file,
        "server_name": rules.tls.server_name,
    }


def _options(settings: Settings, signature: str) -> dict[str, Any]:
    """What is asked of a collection, and how long."""
    rules = settings.memory.milvus
    return {
        "collection": rules.collection,
        "dimension": rules.dimension,
        "signature": signature,
        "index": rules.index,
        "num_partitions": rules.num_partitions,
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "rows_per_user_max": min(WINDOW_MAX - 1, _rows_per_user_max(settings)),
    }


def _rows_per_user_max(settings: Settings) -> int:
    memories, passages = ROWS_PER_MEMORY * settings.memory.max_memories_per_user, settings.passages.per_user_max
    return max(memories, passages + PASSAGES_SPARE)


def _uri(address: str, rules: MilvusSection) -> str:
    if "://" in address:
        return address
    return f"{'https' if rules.tls.enabled else 'http'}://{address}"
