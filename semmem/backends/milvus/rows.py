"""How memories lie in a Milvus collection: the fields, the filters, and a memory as a row and back.

One row is one version of one memory. The layout is the intersection of Milvus Lite 3.2 and Milvus 2.3 and later: no
nullable fields ("" and 0 mean none), no filter templates (values are quoted here), everything that is never filtered
on in one JSON field. Times are kept as whole milliseconds where they are filtered on (created, updated, expires).

JSON and vectors are read by whole columns. Left alone, pymilvus decodes both cell by cell when a row is looked at, some
20 microseconds a row: two thirds of the processor time of reading a user's memories."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
from pymilvus import CollectionSchema, DataType, MilvusClient

from semmem.memory import Memory, MemoryStatus, MemoryType, Scope, Source, Types, Vector
from semmem.ports import storable
from semmem.ports.names import NAME_BYTES_MAX

VECTOR_FIELD = "embedding"
NO_METADATA = "{}"
VERSION_FIELDS = ["user_id", "memory_id", "version"]
SCOPE_FIELDS = ["id", *VERSION_FIELDS, "type", "project", "agent", "session"]
FOUND_FIELDS = [*SCOPE_FIELDS, "status", "content", "created_at", "updated_at", "expires_at", "meta"]
ALL_FIELDS = [*FOUND_FIELDS, "has_embedding", VECTOR_FIELD]
INLINE_ROWS_MAX = 300
"""More rows become memories beside the event loop, which they would hold up for some 6 microseconds each."""

T = TypeVar("T")
Row = Mapping[str, Any]
Column = Any
"""A FieldData of Milvus' protocol: one field's values of all rows."""

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def schema(dimension: int) -> CollectionSchema:
    """The collection's fields. VARCHAR lengths are bytes on a server and characters on Lite."""
    fields = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    fields.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    fields.add_field("user_id", DataType.VARCHAR, max_length=NAME_BYTES_MAX, is_partition_key=True)
    for name in ("memory_id", "project", "agent", "session"):
        fields.add_field(name, DataType.VARCHAR, max_length=NAME_BYTES_MAX)
    for name in ("type", "status"):
        fields.add_field(name, DataType.VARCHAR, max_length=32)
    fields.add_field("content", DataType.VARCHAR, max_length=storable.CONTENT_BYTES_MAX)
    for name in ("version", "created_at", "updated_at", "expires_at"):
        fields.add_field(name, DataType.INT64)
    fields.add_field("has_embedding", DataType.BOOL)
    fields.add_field("meta", DataType.JSON)
    fields.add_field(VECTOR_FIELD, DataType.FLOAT_VECTOR, dim=dimension)
    return fields


def quote(text: str) -> str:
    """A string literal of the filter language, the same value for Lite's parser and the server's."""
    return f'"{text.translate(_ESCAPES)}"'


def user_filter(user: str) -> str:
    return f"user_id == {quote(user)}"


def memories_filter(user: str, memory_ids: Iterable[str]) -> str:
    return f"{user_filter(user)} and memory_id in [{', '.join(map(quote, memory_ids))}]"


def rows_filter(row_ids: Iterable[str]) -> str:
    """Ids are one user's (``row_id``). With nothing else in it a server deletes by it without a query of its own, which
    would wait for a time tick."""
    return f"id in [{', '.join(map(quote, row_ids))}]"


def older_filter(user: str, newest: Iterable[tuple[str, int]]) -> str:
    """Every version of these (memory id, version) that is lower than the one given."""
    lower = (f"(memory_id == {quote(memory_id)} and version < {version})" for memory_id, version in newest)
    return f"{user_filter(user)} and ({' or '.join(lower)})"


def expired_filter(now: float) -> str:
    return f"expires_at > 0 and expires_at <= {_milliseconds(now)}"


def search_filter(scope: Scope, types: Types, now: float) -> str:
    """Active, unexpired rows with a vector, in the scope and of the types."""
    clauses = [user_filter(scope.user), 'status == "active"', "has_embedding == true"]
    clauses.append(f"(expires_at == 0 or expires_at > {_milliseconds(now)})")
    if scope.projects is not None:
        clauses.append(f"project in [{', '.join(map(quote, scope.projects))}]")
    for name, wanted in (("agent", scope.agent), ("session", scope.session)):
        if wanted is not None:
            clauses.append(f"{name} == {quote(wanted)}")
    if types:
        clauses.append(f"type in [{', '.join(quote(kind.value) for kind in types)}]")
    return " and ".join(clauses)


def row_id(user: str, memory_id: str, version: int) -> str:
    return f"{storable.memory_digest(user, memory_id).hex()}:{version}"


def row_of(memory: Memory, vector: Vector | None, dimension: int) -> dict[str, Any]:
    """The row of a memory that was found storable (``semmem.ports.storable.check_memory``)."""
    return {
        "id": row_id(memory.user, memory.id, memory.version),
        **storable.kept_fields(memory),
        "created_at": _milliseconds(memory.created_at),
        "updated_at": _milliseconds(memory.updated_at),
        "expires_at": 0 if memory.expires_at is None else max(1, _milliseconds(memory.expires_at)),
        "meta": _meta(memory),
        "has_embedding": vector is not None,
        VECTOR_FIELD: _unused_vector(dimension) if vector is None else vector,
    }


def memory_of(row: Row) -> Memory:
    """The memory of a row with FOUND_FIELDS; its embedding only when the row has that too."""
    meta = row["meta"]
    return Memory(
        **storable.read_fields(row),
        source=Source(**meta["source"]),
        key=meta["key"],
        metadata=storable.shallow(json.loads(meta["metadata"])) if meta["metadata"] != NO_METADATA else {},
        importance=meta["importance"],
        created_at=row["created_at"] / 1000,
        updated_at=row["updated_at"] / 1000,
        occurred_at=meta["occurred_at"],
        expires_at=row["expires_at"] / 1000 or None,
        embedding=np.asarray(row[VECTOR_FIELD], dtype=np.float32) if row.get("has_embedding") else None,
    )


def newest(rows: Iterable[Row]) -> list[Row]:
    """The highest version of each memory among the rows of one user."""
    highest: dict[str, Row] = {}
    for row in rows:
        present = highest.get(row["memory_id"])
        if present is None or present["version"] < row["version"]:
            highest[row["memory_id"]] = row
    return list(highest.values())


def row_in_scope(row: Row, scope: Scope, types: Types | None) -> bool:
    """The same question as ``semmem.ports.storable.contains``, of a row with SCOPE_FIELDS."""
    narrowed = ((scope.agent, "agent"), (scope.session, "session"))
    return (
        row["user_id"] == scope.user
        and (scope.projects is None or row["project"] in scope.projects)
        and all(wanted is None or wanted == row[name] for wanted, name in narrowed)
        and (types is None or storable.is_of(MemoryType(row["type"]), types))
    )


def is_retrievable(row: Row, scope: Scope, types: Types, now: float) -> bool:
    """The same question as ``search_filter``, of a whole row."""
    return (
        row["status"] == MemoryStatus.ACTIVE.value
        and row["has_embedding"]
        and (row["expires_at"] == 0 or row["expires_at"] > _milliseconds(now))
        and row_in_scope(row, scope, types)
    )


def with_cosine(row: Row, query: Vector) -> Row:
    return {**row, "cosine": min(1.0, max(-1.0, float(row[VECTOR_FIELD] @ query)))}


def ranked(rows: Sequence[Row], query: Vector, scope: Scope, types: Types, now: float) -> list[Row]:
    """Every memory that may be found, with its cosine."""
    return [with_cosine(row, query) for row in newest(rows) if is_retrievable(row, scope, types, now)]


async def over(rows: Sequence[Row], work: Callable[..., T], *args: Any) -> T:
    """What ``work`` makes of the rows; of many, beside the event loop."""
    return work(rows, *args) if len(rows) <= INLINE_ROWS_MAX else await asyncio.to_thread(work, rows, *args)


def memories_of(rows: Iterable[Row], scope: Scope, types: Types) -> list[Memory]:
    """Those of one user's rows that lie in the scope and are of one of the types."""
    return [memory_of(row) for row in newest(rows) if row_in_scope(row, scope, types)]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _meta(memory: Memory) -> dict[str, Any]:
    return {
        "key": memory.key,
        "source": asdict(memory.source),
        # As text: the engines' JSON has 64-bit integers only and may reorder members.
        "metadata": storable.metadata_text(memory),
        "importance": memory.importance,
        "occurred_at": memory.occurred_at,
    }


def _unused_vector(dimension: int) -> Vector:
    """Stands in for a missing embedding, which Milvus 2.3 cannot leave out; ``has_embedding`` keeps it unfound."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[0] = 1.0
    return vector


def rows_of(answer: Sequence[Row]) -> list[Row]:
    """Every row with all its fields. A vector is float32 of shape (dimension,), a row of one array of all of them.
    Where another version of pymilvus keeps columns elsewhere, it decodes them itself: the same rows, later."""
    columns = cast("Iterable[Column] | None", getattr(answer, "_lazy_field_data", None))
    if columns is None or not all(map(_is_known, columns)):
        return list(answer)
    rows = cast("list[dict[str, Any]]", list(list.__iter__(answer)))  # type: ignore[arg-type]  # not its own, which decodes
    for column in columns:
        name = column.field_name
        for row, value in zip(rows, _READERS[column.type](column), strict=True):
            row[name] = value
    return cast("list[Row]", rows)


def _is_known(column: Column) -> bool:
    """Whether each row has a value in it, of a kind that is read here."""
    return column.type in _READERS and not column.valid_data and not column.is_dynamic


def _vectors(column: Column) -> Iterable[Any]:
    return np.array(column.vectors.float_vector.data, dtype=np.float32).reshape(-1, column.vectors.dim)


_READERS: dict[int, Callable[[Column], Iterable[Any]]] = {
    int(DataType.JSON): lambda column: map(msgspec.json.decode, column.scalars.json_data.data),
    int(DataType.FLOAT_VECTOR): _vectors,
}
