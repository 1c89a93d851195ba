"""Memories of one model, and vectors of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from semmem.memory import Hit, Memory, MemoryStatus, Vector
from semmem.ports.storable import best


def with_vector_of(memory: Memory, other: Memory | None) -> Memory:
    """The memory, with the vector that the other one has, if it is the same."""
    same = other is not None and other.version == memory.version
    return replace(memory, embedding=other.embedding if same and other is not None else None)


def has_vector_if_needed(memory: Memory) -> bool:
    """What is not recalled needs none."""
    return memory.embedding is not None or memory.status is not MemoryStatus.ACTIVE


def nearest(memories: Sequence[Memory], vector: Vector, limit: int, now: float) -> list[Hit]:
    """As a store's search has them, of memories with vectors of the same model."""
    found = [memory for memory in memories if memory.is_retrievable(now)]
    if not found or limit < 1:
        return []
    matrix = np.stack([memory.embedding for memory in found if memory.embedding is not None])
    cosines = np.clip(matrix @ vector, -1.0, 1.0).tolist()
    return best((Hit(memory, cosine, cosine) for memory, cosine in zip(found, cosines, strict=True)), limit)
