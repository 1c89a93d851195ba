"""Dense search: the query as a vector, the user's nearest memories, and a cut."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from semmem.memory import Hit, MemoryType, Scope, Vector
from semmem.ports import Embedder, EmbedderError, Store, StoreTimeout

OVERFETCH = 2
"""Hits asked of the store for each memory wanted, since ranking drops duplicates and what was already said."""
FETCH_MAX = 200


async def retrieve(
    store: Store,
    embedder: Embedder,
    scope: Scope,
    query: str,
    *,
    limit: int,
    threshold: float,
    types: Sequence[MemoryType] = (),
    now: float,
    embed_timeout_s: float = 0.2,
    store_timeout_s: float = 0.2,
) -> list[Hit]:
    """The scope's memories whose cosine with the query is at least ``threshold``, best first.

    Up to OVERFETCH times ``limit`` (a count of memories), at most FETCH_MAX. An empty query finds nothing. Raises
    EmbedderError and StoreError; too late counts as failed: EmbedderError or StoreTimeout.
    """
    if limit < 1 or not query:
        return []
    vector = await embed_query(embedder, query, timeout_s=embed_timeout_s)
    return await nearest(
        store, scope, vector, limit=limit, threshold=threshold, types=types, now=now, timeout_s=store_timeout_s
    )


async def embed_query(embedder: Embedder, query: str, *, timeout_s: float = 0.2) -> Vector:
    """The query's vector. Raises EmbedderError, also when it is too late."""
    try:
        async with asyncio.timeout(timeout_s):
            return await embedder.embed(query)
    except TimeoutError as late:
        raise EmbedderError(f"no vector within {timeout_s} s") from late


async def nearest(
    store: Store,
    scope: Scope,
    vector: Vector,
    *,
    limit: int,
    threshold: float,
    types: Sequence[MemoryType] = (),
    now: float,
    timeout_s: float = 0.2,
) -> list[Hit]:
    """``retrieve`` for a query that is a vector already. Raises StoreError, StoreTimeout when it is too late."""
    try:
        async with asyncio.timeout(timeout_s):
            hits = await store.search(scope, vector, limit=min(OVERFETCH * limit, FETCH_MAX), now=now, types=types)
    except TimeoutError as late:
        raise StoreTimeout(f"no hits within {timeout_s} s") from late
    return [hit for hit in hits if hit.cosine >= threshold]
