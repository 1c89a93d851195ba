"""Memories and vectors for the tests of stores."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from semmem.memory import Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.errors import StoreError
from semmem.ports.store import Store

DIMENSION = 16
NOW = 1_700_000_000.0


def towards(axis: int, *, leaning: int = 0, by: float = 0.0) -> Vector:
    """A unit vector along one axis; its cosine to another axis is ``by`` when it leans towards that."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[axis] = np.sqrt(1.0 - by * by)
    vector[leaning] += by
    return vector


def memory(user: str, id: str = "mem_1", **fields: Any) -> Memory:
    defaults: dict[str, Any] = {
        "version": 1,
        "type": MemoryType.SEMANTIC,
        "content": f"content of {id}",
        "created_at": NOW,
        "updated_at": NOW,
        "embedding": towards(0),
    }
    return Memory(id=id, user=user, **{**defaults, **fields})


async def put(store: Store, *memories: Memory) -> None:
    for one in memories:
        await store.put(Scope(one.user), one)


async def found(store: Store, scope: Scope, vector: Vector | None = None, **options: Any) -> list[Hit]:
    """A search that sees every write that finished before."""
    settings: dict[str, Any] = {"limit": 10, "now": NOW, "as_of": math.inf, **options}
    return await store.search(scope, towards(0) if vector is None else vector, **settings)


async def found_ids(store: Store, scope: Scope, vector: Vector | None = None, **options: Any) -> list[str]:
    return [hit.memory.id for hit in await found(store, scope, vector, **options)]


async def answering(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What the store says as soon as it answers again, by itself."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await ask()
            except StoreError:
                await asyncio.sleep(0.05)
