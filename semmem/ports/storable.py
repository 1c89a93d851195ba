"""What any store keeps of a memory at most. Asked before anything is changed, so that a memory that will never be
taken neither supersedes another nor is tried again. The stores themselves ask as well."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np

from semmem.memory import PASSAGES, Hit, Memory, MemoryStatus, MemoryType, Scope, Vector
from semmem.ports.errors import StoreError, StoreRefused
from semmem.ports.names import NAME_BYTES_MAX

CONTENT_BYTES_MAX = 8192
META_BYTES_MAX = 60_000
"""UTF-8 bytes of metadata, source and key as JSON. Milvus refuses JSON values above 65,536 bytes."""
METADATA_DEPTH_MAX = 64
"""Levels of objects and lists. Reading a value costs stack for each of them, which ends at about 1,000 calls."""
TOO_DEEP = "(nested too deep)"
TIME_MAX = 3.2e12
"""About 100,000 years in seconds; in milliseconds it still fits 64 bits."""

_NAMES = ("user", "id", "project", "agent", "session")
_TIMES = ("created_at", "updated_at", "occurred_at", "expires_at")


def check_storable(memory: Memory) -> None:
    """Raises StoreRefused, naming the field, for what no store will ever take. Nothing is cut off to make it fit."""
    for name in _NAMES:
        _check_text(name, getattr(memory, name) or "", NAME_BYTES_MAX)
    _check_text("content", memory.content, CONTENT_BYTES_MAX)
    for name in _TIMES:
        _check_time(name, getattr(memory, name) or 0.0)
    _check_time("source", memory.source.time)
    if not math.isfinite(memory.importance):
        raise StoreRefused("importance", "is not a finite number")
    told = {"key": memory.key, "source": asdict(memory.source), "metadata": metadata_text(memory)}
    _check_text("metadata, source and key", json.dumps(told, ensure_ascii=False), META_BYTES_MAX)


def metadata_text(memory: Memory) -> str:
    """The metadata as JSON text. Raises StoreRefused when it is not JSON (NaN, sets, lone surrogates, ...)."""
    if depth_exceeds(memory.metadata, METADATA_DEPTH_MAX):
        raise StoreRefused("metadata", f"is nested more than {METADATA_DEPTH_MAX} levels deep")
    try:
        text = json.dumps(memory.metadata, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise StoreRefused("metadata", f"is not JSON: {type(error).__name__}") from None
    return text


def depth_exceeds(value: Any, depth_max: int) -> bool:
    """Whether objects and lists are nested more than so many levels deep; a value that holds itself is."""
    level = [value]
    for _ in range(depth_max + 1):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def shallow(value: Any, depth: int = METADATA_DEPTH_MAX) -> Any:
    """A value that was kept before there was a limit, without what lies deeper than it: copying it, or writing the
    next version, must not fail for one memory."""
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {name: shallow(child, depth - 1) for name, child in value.items()}
    return [shallow(child, depth - 1) for child in value]


def _children(value: Any) -> Iterator[Any]:
    """What a container holds; a container is one level, even an empty one."""
    if isinstance(value, dict):
        yield from value.values() or (None,)
    elif isinstance(value, list | tuple):
        yield from value or (None,)


def _check_text(field: str, text: str, bytes_max: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise StoreRefused(field, "is not valid Unicode") from None
    if size > bytes_max:
        raise StoreRefused(field, f"has {size} bytes, the store keeps at most {bytes_max}")


def _check_time(field: str, seconds: float) -> None:
    if not abs(seconds) <= TIME_MAX:  # also NaN
        raise StoreRefused(field, "is not a time within 100,000 years")


# --- what every store must decide alike: who may write what, which vectors are usable, what a scope holds ------------


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


def nearest(memories: Iterable[Memory], vector: Vector, limit: int, now: float) -> list[Hit]:
    """As a store's search has them, of memories with vectors of the same model."""
    found = [memory for memory in memories if memory.is_retrievable(now)]
    if not found or limit < 1:
        return []
    matrix = np.stack([memory.embedding for memory in found if memory.embedding is not None])
    cosines = np.clip(matrix @ vector, -1.0, 1.0).tolist()
    return best((Hit(memory, cosine, cosine) for memory, cosine in zip(found, cosines, strict=True)), limit)


def best(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The best hits, highest cosine first, ties by id."""
    return sorted(hits, key=lambda hit: (-hit.cosine, hit.memory.id))[:limit]


# --- what database engines keep alike: by which key, and what under the same names in a row or a payload -------------


def memory_digest(user: str, memory_id: str) -> bytes:
    """16 bytes to key a memory by. The user is part of it: an id chosen by one user must never replace another's."""
    digest = blake2b(digest_size=16)
    for part in (user, memory_id):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def kept_fields(memory: Memory) -> dict[str, Any]:
    """Whose the memory is, what it is, and its text; "" where it has no project, agent or session."""
    return {
        "user_id": memory.user,
        "memory_id": memory.id,
        "version": memory.version,
        "type": memory.type.value,
        "status": memory.status.value,
        "project": memory.project or "",
        "agent": memory.agent or "",
        "session": memory.session or "",
        "content": memory.content,
    }


def read_fields(kept: Mapping[str, Any]) -> dict[str, Any]:
    """What ``kept_fields`` made, as Memory's arguments."""
    return {
        "user": kept["user_id"],
        "id": kept["memory_id"],
        "version": int(kept["version"]),
        "type": MemoryType(kept["type"]),
        "status": MemoryStatus(kept["status"]),
        "project": kept["project"] or None,
        "agent": kept["agent"] or None,
        "session": kept["session"] or None,
        "content": kept["content"],
    }
