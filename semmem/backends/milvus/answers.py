"""What pymilvus answers to a query, as rows and memories: JSON and vectors by whole columns.

Left alone, pymilvus decodes both cell by cell when a row is looked at, some 20 microseconds a row: two thirds of the
processor time of reading a user's memories. The columns lie in the answer as they came. Where another version of
pymilvus keeps them elsewhere, it decodes them itself: the same rows, later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from pymilvus import DataType

from semmem.backends.milvus.rows import Row, memories_of
from semmem.memory import Memory, MemoryType, Scope

INLINE_ROWS_MAX = 300
"""More rows become memories beside the event loop, which they would hold up for some 6 microseconds each."""

Column = Any
"""A FieldData of Milvus' protocol: one field's values of all rows."""


def rows_of(answer: Sequence[Row]) -> list[Row]:
    """Every row with all its fields. A vector is float32 of shape (dimension,), a row of one array of all of them."""
    columns = cast("Iterable[Column] | None", getattr(answer, "_lazy_field_data", None))
    if columns is None or not all(map(_is_known, columns)):
        return list(answer)
    rows = cast("list[dict[str, Any]]", list(list.__iter__(answer)))  # type: ignore[arg-type]  # not its own, which decodes
    for column in columns:
        name = column.field_name
        for row, value in zip(rows, _READERS[column.type](column), strict=True):
            row[name] = value
    return cast("list[Row]", rows)


async def memories_in(rows: Sequence[Row], scope: Scope, types: Sequence[MemoryType]) -> list[Memory]:
    """Those of one user's rows that lie in the scope and are of one of the types; many, beside the loop."""
    if len(rows) <= INLINE_ROWS_MAX:
        return memories_of(rows, scope, types)
    return await asyncio.to_thread(memories_of, rows, scope, types)


def _is_known(column: Column) -> bool:
    """Whether each row has a value in it, of a kind that is read here."""
    return column.type in _READERS and not column.valid_data and not column.is_dynamic


def _json_values(column: Column) -> Iterable[Any]:
    return map(msgspec.json.decode, column.scalars.json_data.data)


def _vectors(column: Column) -> Iterable[Any]:
    return np.array(column.vectors.float_vector.data, dtype=np.float32).reshape(-1, column.vectors.dim)


_READERS: dict[int, Callable[[Column], Iterable[Any]]] = {
    int(DataType.JSON): _json_values,
    int(DataType.FLOAT_VECTOR): _vectors,
}
