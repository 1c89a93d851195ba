"""Writes that are held off for a moment, and whose memories were changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from semmem.background import Tasks
from semmem.lifecycle.write_gate import WriteGate
from semmem.memory import Scope
from tests.core.lifecycle.erased_world import Store
from tests.support.memories import memory

ADA = Scope("ada")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = Store()
    await made.open()
    yield made
    await made.close()


async def test_a_closed_gate_waits_for_writes_under_way_and_holds_new_ones_but_no_reads(store: Store) -> None:
    gate, tasks = WriteGate(store), Tasks()
    store.pause_s = 0.02
    early = tasks.spawn("early", gate.put(ADA, memory("ada", "early")))
    await asyncio.sleep(0)
    async with gate.closed():
        assert early.done()
        late = tasks.spawn("late", gate.put(ADA, memory("ada", "late")))
        gone = tasks.spawn("gone", gate.forget_scope(Scope("eve")))
        await asyncio.sleep(0.1)
        assert [found.id for found in await gate.list(ADA)] == ["early"]
        assert not late.done()
        assert not gone.done()
    await asyncio.gather(late, gone)
    assert await gate.count(ADA) == 2


async def test_every_write_names_its_user_also_one_that_failed(store: Store) -> None:
    gate = WriteGate(store)
    await gate.put(ADA, memory("ada"))
    with gate.noting() as changed, gate.noting() as others:
        await gate.put(Scope("eve"), memory("eve"))
        await gate.forget(ADA, "mem_1")
        await gate.forget_scope(Scope("bob"))
        assert changed == {"eve", "ada", "bob"}
        changed.clear()
        store.down = True
        with pytest.raises(Exception, match="down"):
            await gate.put(Scope("mia"), memory("mia"))
        assert changed == {"mia"}
        assert others == {"eve", "ada", "bob", "mia"}
    store.down = False
    await gate.put(ADA, memory("ada", "later"))
    assert changed == {"mia"}
