"""What other replicas have just written, while a store moves to another model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from semmem.backends.in_process import InProcessStore
from semmem.ports.store import Lagging
from tests.core.reindex.world import World, memory


class Slow(InProcessStore):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def written_elsewhere(self, user: str) -> None:
        self.told.append(user)


async def test_every_collection_that_lags_is_told_of_others_writes() -> None:
    world = World()
    await world.told_before(memory("ada", "mem_1"))
    store = world.opened_with("new", 16)
    store.written_elsewhere("ada")  # it is not open, and nobody reads
    await store.open()
    live, beside, *_ = store._parts()
    slow = Slow()
    store._live, store.beside = live, (replace(beside, store=cast(Any, slow)),)
    assert isinstance(store, Lagging)
    store.written_elsewhere("ada")
    assert slow.told == ["ada"]
