"""An observed store passes everything on, measures it, and tells of every write once it is over."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.errors import StoreError, StoreUnavailable
from semmem.ports.store import Store, StoreWrapper
from semmem.telemetry.metering import ObservedStore
from semmem.telemetry.metrics import Metrics
from tests.support.memories import DIMENSION, NOW, memory, towards

ADA = Scope("ada")


class Observed:
    """An observed store, and the changes it told of."""

    def __init__(self) -> None:
        self.inner = InProcessStore(dimension=DIMENSION)
        self.changes: list[tuple[str, str | None]] = []
        self.metrics = Metrics()
        self.store: Store = ObservedStore(self.inner, self.metrics, "milvus", [self._changed])

    def _changed(self, user: str, memory_id: str | None) -> None:
        self.changes.append((user, memory_id))

    def calls(self, operation: str, status: str) -> float | None:
        labels = {"backend": "milvus", "operation": operation, "status": status}
        return self.metrics.registry.get_sample_value("llm_memory_store_operations_total", labels)


async def test_every_write_is_told_of_and_no_read_is() -> None:
    observed = Observed()
    store, kept = observed.store, memory("ada")
    await store.open()
    await store.put(ADA, kept)
    assert observed.changes == [("ada", kept.id)]
    assert await store.get(ADA, kept.id) == kept
    assert await store.list(ADA, types=[MemoryType.SEMANTIC], limit=5) == [kept]
    assert await store.count(ADA) == 1
    [hit] = await store.search(ADA, towards(0), limit=1, now=NOW, as_of=NOW)
    assert hit.memory.id == kept.id
    await store.health()
    assert len(observed.changes) == 1

    assert await store.forget(ADA, kept.id) is True
    assert await store.forget_scope(ADA) == 0
    assert observed.changes[1:] == [("ada", kept.id), ("ada", None)]
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.health()


async def test_it_tells_when_the_store_has_it() -> None:
    happened: list[str] = []

    class Slow(InProcessStore):
        async def put(self, scope: Scope, *memories: Memory) -> None:
            await asyncio.sleep(0)
            await super().put(scope, *memories)
            happened.append("put")

    store = ObservedStore(
        Slow(dimension=DIMENSION),
        Metrics(),
        "milvus",
        [lambda *_: happened.append("told"), lambda *_: happened.append("told another")],
    )
    await store.open()
    await store.put(ADA, memory("ada"))
    assert happened == ["put", "told", "told another"]


async def test_a_write_that_fails_may_have_been_done() -> None:
    observed = Observed()
    await observed.store.open()
    with pytest.raises(StoreError):
        await observed.store.put(ADA, memory("somebody-else"))
    assert observed.changes == [("ada", "mem_1")]
    assert (observed.calls("put", "error"), observed.calls("put", "ok")) == (1.0, None)


async def test_every_call_is_counted_once() -> None:
    observed = Observed()
    store = observed.store
    await store.open()
    await store.put(ADA, memory("ada"))
    await store.get(ADA, "mem_1")
    await store.list(ADA)
    await store.search(ADA, towards(0), limit=1, now=NOW)
    await store.count(ADA)
    await store.forget(ADA, "mem_1")
    await store.forget_scope(ADA)
    await store.health()
    every = ("open", "put", "get", "list", "search", "count", "forget", "forget_scope", "health")
    assert [observed.calls(operation, "ok") for operation in every] == [1.0] * len(every)


def test_what_wraps_a_store_has_every_call_of_one() -> None:
    calls = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert calls <= vars(StoreWrapper).keys()
