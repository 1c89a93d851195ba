"""How memories lie in a Qdrant collection: a memory as a point and back, and the filters.

One memory is one point: a write replaces the point only where its version is lower, which the engine decides while it
writes. Ids of points are numbers or UUIDs, so one is derived from user and memory id, and both are kept in the payload.
Filters are values, not text: nothing has to be quoted."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any
from uuid import UUID

import numpy as np
from qdrant_client import models

from semmem.memory import MEMORY_TYPES, Memory, MemoryStatus, Scope, Source, Types, Vector
from semmem.ports.storable import kept_fields, memory_digest, metadata_text, read_fields, shallow

VECTOR = "embedding"
OWNER_FIELDS = ["user_id", "memory_id"]
SAID_FIELDS = [*OWNER_FIELDS, "version", "source", "created_at"]
NO_POINT = str(UUID(int=0))
"""The id of no memory."""


def point_id(user: str, memory_id: str) -> str:
    return str(UUID(bytes=memory_digest(user, memory_id)))


def point_of(memory: Memory, vector: Vector | None) -> models.PointStruct:
    """The point of a memory that was found storable (``semmem.ports.storable.check_memory``)."""
    return models.PointStruct(
        id=point_id(memory.user, memory.id),
        vector={} if vector is None else {VECTOR: vector.tolist()},
        payload=_payload(memory),
    )


def memory_of(record: models.Record | models.ScoredPoint) -> Memory:
    """The memory of a point with its whole payload; its embedding only when the point was read with that too."""
    payload: dict[str, Any] = record.payload or {}
    vectors = record.vector if isinstance(record.vector, dict) else {}
    return Memory(
        **read_fields(payload),
        source=Source(**payload["source"]),
        key=payload.get("key"),
        metadata=shallow(json.loads(payload["metadata"])),
        importance=float(payload["importance"]),
        created_at=float(payload["created_at"]),
        updated_at=float(payload["updated_at"]),
        occurred_at=_time(payload, "occurred_at"),
        expires_at=_time(payload, "expires_at"),
        embedding=np.asarray(vectors[VECTOR], dtype=np.float32) if VECTOR in vectors else None,
    )


def owner_of(record: models.Record) -> tuple[str, str]:
    """(user, memory id) of a point with OWNER_FIELDS."""
    payload = record.payload or {}
    return payload["user_id"], payload["memory_id"]


def version_of(record: models.Record) -> tuple[str, int]:
    """(point id, version) of a point with SAID_FIELDS."""
    return str(record.id), int((record.payload or {})["version"])


def said_at(record: models.Record) -> float:
    """When the words of a point with SAID_FIELDS were said; as ``Memory.said_at``."""
    payload = record.payload or {}
    return Source(**payload["source"]).time or float(payload["created_at"])


def in_scope(scope: Scope, types: Types = ()) -> models.Filter:
    """The same question as ``semmem.ports.storable.contains``."""
    return models.Filter(must=_scope_conditions(scope, types))


def retrievable(scope: Scope, types: Types, now: float) -> models.Filter:
    """Active, unexpired points in the scope and of the types."""
    active = _is("status", MemoryStatus.ACTIVE.value)
    return models.Filter(must=[*_scope_conditions(scope, types), active], must_not=[_expired(now)])


def one_memory(scope: Scope, memory_id: str) -> models.Filter:
    chosen = models.HasIdCondition(has_id=[point_id(scope.user, memory_id)])
    return models.Filter(must=[chosen, *_scope_conditions(scope, None)])


def exactly(user: str, chosen: Iterable[tuple[str, int]]) -> models.Filter:
    """These (point id, version) of one user: a version that was written since is not among them."""
    each: list[models.Condition] = [
        models.Filter(must=[models.HasIdCondition(has_id=[id]), _is("version", version)]) for id, version in chosen
    ]
    return models.Filter(must=[_is("user_id", user)], should=each)


def expired(now: float) -> models.Filter:
    """Of every user."""
    return models.Filter(must=[_expired(now)])


def older_than(user: str, version: int) -> models.Filter:
    """What this version of a memory may replace."""
    lower = models.FieldCondition(key="version", range=models.Range(lt=version))
    return models.Filter(must=[_is("user_id", user), lower])


def nothing() -> models.Filter:
    return models.Filter(must=[models.HasIdCondition(has_id=[NO_POINT])])


def _scope_conditions(scope: Scope, types: Types | None) -> list[models.Condition]:
    """``types`` None: whatever it is."""
    named = (("agent", scope.agent), ("session", scope.session))
    conditions: list[models.Condition] = [_is("user_id", scope.user)]
    if scope.projects is not None:
        any_project = models.MatchAny(any=list(scope.projects))
        conditions.append(models.FieldCondition(key="project", match=any_project))
    conditions += [_is(name, wanted) for name, wanted in named if wanted is not None]
    if types is not None:
        any_of = models.MatchAny(any=[kind.value for kind in types or MEMORY_TYPES])
        conditions.append(models.FieldCondition(key="type", match=any_of))
    return conditions


def _is(field: str, value: str | int) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _expired(now: float) -> models.FieldCondition:
    """Points without an end have no such field, and are in no range."""
    return models.FieldCondition(key="expires_at", range=models.Range(lte=now))


def _payload(memory: Memory) -> dict[str, Any]:
    times = {"occurred_at": memory.occurred_at, "expires_at": memory.expires_at}
    return {
        **kept_fields(memory),
        "key": memory.key,
        "source": asdict(memory.source),
        # As text: an engine's JSON has 64-bit integers only and may reorder members.
        "metadata": metadata_text(memory),
        "importance": float(memory.importance),
        "created_at": float(memory.created_at),
        "updated_at": float(memory.updated_at),
        **{name: float(at) for name, at in times.items() if at is not None},
    }


def _time(payload: dict[str, Any], name: str) -> float | None:
    at = payload.get(name)
    return None if at is None else float(at)
