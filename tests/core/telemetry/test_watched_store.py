"""A watched store passes everything on, and tells of every write once it is over."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.errors import StoreError, StoreUnavailable
from semmem.ports.store import Store
from semmem.telemetry.watched_store import WatchedStore
from tests.support.memories import DIMENSION, NOW, memory, towards

ADA = Scope("ada")


class Watched:
    """A watched store, and the changes it told of."""

    def __init__(self) -> None:
        self.inner = InProcessStore(dimension=DIMENSION)
        self.changes: list[tuple[str, str | None]] = []
        self.store: Store = WatchedStore(self.inner, lambda user, memory_id: self.changes.append((user, memory_id)))


async def test_every_write_is_told_of_and_no_read_is() -> None:
    watched = Watched()
    store, kept = watched.store, memory("ada")
    await store.open()
    await store.put(ADA, kept)
    assert watched.changes == [("ada", kept.id)]
    assert await store.get(ADA, kept.id) == kept
    assert await store.list(ADA, types=[MemoryType.SEMANTIC], limit=5) == [kept]
    assert await store.count(ADA) == 1
    [hit] = await store.search(ADA, towards(0), limit=1, now=NOW, fresh=True)
    assert hit.memory.id == kept.id
    await store.health()
    assert len(watched.changes) == 1

    assert await store.forget(ADA, kept.id) is True
    assert await store.forget_scope(ADA) == 0
    assert watched.changes[1:] == [("ada", kept.id), ("ada", None)]
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.health()


async def test_it_tells_when_the_store_has_it() -> None:
    happened: list[str] = []

    class Slow(InProcessStore):
        async def put(self, scope: Scope, memory: Memory) -> None:
            await asyncio.sleep(0)
            await super().put(scope, memory)
            happened.append("put")

    store = WatchedStore(Slow(dimension=DIMENSION), lambda *_: happened.append("told"))
    await store.open()
    await store.put(ADA, memory("ada"))
    assert happened == ["put", "told"]


async def test_a_write_that_fails_may_have_been_done() -> None:
    watched = Watched()
    await watched.store.open()
    with pytest.raises(StoreError):
        await watched.store.put(ADA, memory("somebody-else"))
    assert watched.changes == [("ada", "mem_1")]


def test_it_has_every_call_of_a_store() -> None:
    calls = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert calls <= vars(WatchedStore).keys()
