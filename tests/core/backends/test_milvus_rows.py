"""A row as a memory, also where an earlier version wrote what this one would refuse; and columns as the rows that
pymilvus itself would give."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymilvus import DataType
from pymilvus.client.types import HybridExtraList
from pymilvus.grpc_gen import schema_pb2

from semmem.backends.in_process import InProcessStore
from semmem.backends.milvus import rows as milvus_rows
from semmem.backends.milvus.rows import memories_of, memory_of, row_of, rows_of
from semmem.memory import Memory, Scope
from semmem.ports.storable import TOO_DEEP, check_storable
from tests.support.memories import DIMENSION, memory


async def test_metadata_of_before_the_limit_can_be_read_copied_and_written_again() -> None:
    kept = memory("alice", metadata={"flat": [1, {"a": None}]})
    row = row_of(kept, kept.embedding, DIMENSION)
    assert memory_of(row) == kept
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    row["meta"]["metadata"] = json.dumps({"flat": 1, "deep": deep})
    read = memory_of(row)
    check_storable(read)
    assert read.metadata["flat"] == 1
    assert TOO_DEEP in json.dumps(read.metadata)
    store = InProcessStore()
    await store.open()
    await store.put(Scope("alice"), read)
    assert await store.list(Scope("alice")) == [read]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FLOATS = st.lists(st.floats(width=32, allow_nan=False), min_size=3, max_size=3)


def json_column(values: list[Any], **more: Any) -> Any:
    column = schema_pb2.FieldData(field_name="meta", type=int(DataType.JSON), **more)
    column.scalars.json_data.data.extend(json.dumps(value).encode() for value in values)
    return column


def vector_column(vectors: list[list[float]]) -> Any:
    column = schema_pb2.FieldData(field_name="embedding", type=int(DataType.FLOAT_VECTOR))
    column.vectors.dim = 3
    column.vectors.float_vector.data.extend(number for vector in vectors for number in vector)
    return column


def answer(columns: list[Any], count: int) -> HybridExtraList:
    """As a query gives it: names are there, and what is in the columns is not decoded yet."""
    return HybridExtraList(columns, [{"id": f"row {row}"} for row in range(count)], dynamic_fields=[])


@given(st.lists(st.tuples(JSON, FLOATS), max_size=4))
def test_rows_are_those_that_pymilvus_gives(cells: list[tuple[Any, list[float]]]) -> None:
    columns = [json_column([value for value, _ in cells]), vector_column([vector for _, vector in cells])]
    its_own, ours = list(answer(columns, len(cells))), rows_of(answer(columns, len(cells)))
    assert [(row["id"], row["meta"]) for row in ours] == [(row["id"], row["meta"]) for row in its_own]
    for row, other in zip(ours, its_own, strict=True):
        assert row["embedding"].dtype == np.float32
        assert row["embedding"].tolist() == list(other["embedding"])


def test_vectors_are_read_all_at_once() -> None:
    one, other = rows_of(answer([vector_column([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])], 2))
    assert one["embedding"].base is other["embedding"].base is not None


def test_what_is_read_otherwise_is_left_to_pymilvus() -> None:
    absent = json_column([{"a": 1}, None], valid_data=[True, False])
    assert [row["meta"] for row in rows_of(answer([absent], 2))] == [{"a": 1}, None]
    dynamic = json_column([{"a": 1}], is_dynamic=True)
    assert rows_of(answer([dynamic], 1)) == [{"id": "row 0", "a": 1}]


def test_an_answer_of_another_form_is_taken_as_it_is() -> None:
    class Others(list[dict[str, Any]]):
        def __getitem__(self, place: Any) -> Any:
            return {"id": place, "decoded": True}

        def __iter__(self) -> Any:
            of: Callable[[int], Any] = self.__getitem__
            return map(of, range(len(self)))

    assert rows_of(Others([{}, {}])) == [{"id": 0, "decoded": True}, {"id": 1, "decoded": True}]


def test_rows_without_such_columns_are_rows() -> None:
    assert rows_of(answer([], 2)) == [{"id": "row 0"}, {"id": "row 1"}]


async def test_many_rows_become_memories_beside_the_event_loop_and_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = [memory("alice", f"m{number}", metadata={"n": number} if number else {}) for number in range(4)]
    rows = [row_of(one, one.embedding, DIMENSION) for one in stored]
    threads: list[int] = []

    def told(*given: Any) -> list[Memory]:
        threads.append(get_ident())
        return memories_of(*given)

    for limit in (4, 3):
        monkeypatch.setattr(milvus_rows, "INLINE_ROWS_MAX", limit)
        assert await milvus_rows.over(rows, told, Scope("alice"), ()) == stored
    assert [thread == get_ident() for thread in threads] == [True, False]
