"""What every memory store must decide alike: who may write what, which vectors are usable, what a scope contains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from semmem.memory import PASSAGES, Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.errors import StoreError
from semmem.ports.storable import check_storable

NORM_TOLERANCE = 1e-3
"""A vector whose L2 norm is this close to 1 is taken as it is; any other is normalised."""


def check_memory(scope: Scope, memory: Memory) -> None:
    """Raises StoreError when this scope may not write this memory, StoreRefused when nobody ever can."""
    if memory.user != scope.user:
        raise StoreError("a memory can only be written in its own user's scope")
    if memory.version < 1:
        raise StoreError("versions count from 1")
    check_storable(memory)


def usable_vector(vector: Vector, dimension: int) -> Vector:
    """The vector as float32 of shape (dimension,) and length 1. Raises StoreError for any other shape, NaN or zero."""
    array = np.asarray(vector, dtype=np.float32)
    if array.shape != (dimension,):
        raise StoreError(f"a vector of shape {array.shape} does not fit a store of dimension {dimension}")
    norm = float(np.linalg.norm(array.astype(np.float64)))
    if not math.isfinite(norm) or norm == 0.0:
        raise StoreError("a vector must be finite and not zero")
    return array if abs(norm - 1.0) <= NORM_TOLERANCE else (array / norm).astype(np.float32)


def contains(scope: Scope, memory: Memory, types: Sequence[MemoryType] | None = None) -> bool:
    """Whether the memory lies in the scope and is what a call means that names these types (None: whatever it is). An
    empty name is the same as none."""
    narrowed = ((scope.agent, memory.agent), (scope.session, memory.session))
    return (
        memory.user == scope.user
        and (scope.projects is None or (memory.project or "") in scope.projects)
        and all(wanted is None or wanted == (present or "") for wanted, present in narrowed)
        and (types is None or is_of(memory.type, types))
    )


def is_of(kind: MemoryType, types: Sequence[MemoryType]) -> bool:
    """Whether a call that names these types means this one: without any it means all but passages."""
    return kind in types if types else kind not in PASSAGES


def page(memories: Iterable[Memory], *, limit: int, offset: int) -> list[Memory]:
    """One page, newest ``created_at`` first, ties by id."""
    ordered = sorted(memories, key=lambda memory: (-memory.created_at, memory.id))
    return ordered[max(offset, 0) :][: max(limit, 0)]


def best(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The best hits, highest cosine first, ties by id."""
    return sorted(hits, key=lambda hit: (-hit.cosine, hit.memory.id))[:limit]
