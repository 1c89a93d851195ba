"""A row as a memory, where an earlier version wrote what this one would refuse."""

from __future__ import annotations

import json
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.backends.milvus.rows import memory_of, row_of
from semmem.memory import Scope
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
