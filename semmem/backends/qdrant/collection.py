"""The collection: how it is made, what an existing one must be like, and how it is searched."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from qdrant_client import models

from semmem.backends.qdrant.points import VECTOR
from semmem.ports.errors import StoreError
from semmem.ports.store import check_same

Index = Literal["FLAT", "HNSW"]
Quantisation = Literal["none", "int8", "binary"]
Ask = Callable[..., Awaitable[Any]]
"""Calls an operation of the client by its name, with its arguments."""

SCHEMA_VERSION = 1
METRIC = models.Distance.COSINE
LINKS = 16
"""Neighbours of each point in a user's graph, Qdrant's own default."""
QUANTILE = 0.99
"""Share of a vector's numbers that int8 covers; outliers would cost the others precision (Qdrant's own example)."""
QUANTISED: dict[Quantisation, models.QuantizationConfig | None] = {
    "none": None,
    "int8": models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=QUANTILE, always_ram=True)
    ),
    "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
}
OTHERS_POLLS = 20
OTHERS_POLL_S = 0.1
INDEXED: dict[str, models.PayloadSchemaType | models.KeywordIndexParams] = {
    "user_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    **dict.fromkeys(("type", "status", "project", "agent", "session"), models.PayloadSchemaType.KEYWORD),
    "version": models.PayloadSchemaType.INTEGER,
    "expires_at": models.PayloadSchemaType.FLOAT,
}
"""What is filtered on. A server in strict mode refuses filters on anything else."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What a collection shall be like. ``signature`` names the embedding. ``index``: FLAT compares a request with every
    vector of its user; HNSW with a graph per user, and may miss some. ``quantisation``: what is compared; with
    ``rescore`` the best (``oversampling`` times as many as asked for) are compared again by their whole vectors, which
    then lie on disk."""

    name: str
    dimension: int
    signature: str
    index: Index = "FLAT"
    quantisation: Quantisation = "none"
    rescore: bool = True
    oversampling: float = 3.0
    shards: int = 1
    copies: int = 1


def search_params(wanted: Collection) -> models.SearchParams:
    """For a server. ``exact`` would leave out the quantised vectors too."""
    if wanted.quantisation == "none":
        return models.SearchParams(exact=wanted.index == "FLAT")
    rescoring = models.QuantizationSearchParams(
        rescore=wanted.rescore, oversampling=wanted.oversampling if wanted.rescore else None
    )
    return models.SearchParams(quantization=rescoring)


async def ensure(ask: Ask, wanted: Collection, *, on_server: bool) -> None:
    """Make the collection when there is none, and check the one that is there. Raises StoreMismatch when it was made
    for something else, and what ``ask`` raises."""
    if not await ask("collection_exists", collection_name=wanted.name):
        await _make(ask, wanted, on_server)
    if on_server:  # each time: they may be missing when a replica was stopped while it made them
        for name, schema in INDEXED.items():
            await ask("create_payload_index", collection_name=wanted.name, field_name=name, field_schema=schema)
    _check(wanted, await ask("get_collection", collection_name=wanted.name), on_server)


async def _make(ask: Ask, wanted: Collection, on_server: bool) -> None:
    """When another replica is making it at the same time, wait until it is there."""
    try:
        await ask("create_collection", **(_creation(wanted) if on_server else _local_creation(wanted)))
    except StoreError:
        for _ in range(OTHERS_POLLS):
            if await ask("collection_exists", collection_name=wanted.name):
                return
            await asyncio.sleep(OTHERS_POLL_S)
        raise


def _local_creation(wanted: Collection) -> dict[str, Any]:
    return {
        "collection_name": wanted.name,
        "vectors_config": {VECTOR: models.VectorParams(size=wanted.dimension, distance=METRIC)},
        "metadata": {"semmem.schema": str(SCHEMA_VERSION), "semmem.signature": wanted.signature},
    }


def _creation(wanted: Collection) -> dict[str, Any]:
    """No graph over all users: it would be of no use to a search that is always one user's."""
    quantised = wanted.quantisation != "none"
    vectors = models.VectorParams(size=wanted.dimension, distance=METRIC, on_disk=quantised)
    return {
        **_local_creation(wanted),
        "vectors_config": {VECTOR: vectors},
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=LINKS if wanted.index == "HNSW" else 0),
        "quantization_config": QUANTISED[wanted.quantisation],
        "shard_number": wanted.shards,
        "replication_factor": wanted.copies,
    }


def described(present: models.CollectionInfo) -> tuple[str, int]:
    """Signature and dimension of the embedding; what is not semmem's has none."""
    found = _described(present)
    return found["embedding signature"], int(found["dimension"] or 0)


def _check(wanted: Collection, present: models.CollectionInfo, on_server: bool) -> None:
    expected = {
        "schema version": str(SCHEMA_VERSION),
        "embedding signature": wanted.signature,
        "dimension": str(wanted.dimension),
        "metric": METRIC.value,
    }
    if on_server:
        expected |= {"index": wanted.index, "quantisation": wanted.quantisation}
    found = _described(present)
    remedy = "Configure what it was made with, or name another collection."
    compared = {name: (value, found[name]) for name, value in expected.items()}
    check_same(f"the Qdrant collection {wanted.name}", compared, remedy)


def _described(present: models.CollectionInfo) -> dict[str, str]:
    config, vectors = present.config, present.config.params.vectors
    metadata = config.metadata or {}
    params = vectors.get(VECTOR) if isinstance(vectors, dict) else None
    present_kind = type(config.quantization_config)
    return {
        "schema version": str(metadata.get("semmem.schema", "")),
        "embedding signature": str(metadata.get("semmem.signature", "")),
        "dimension": str(params.size) if params else "",
        "metric": params.distance.value if params else "",
        "index": "HNSW" if config.hnsw_config.payload_m else "FLAT",
        "quantisation": next((name for name, kind in QUANTISED.items() if type(kind) is present_kind), "another"),
    }
