"""The one filter: what is being erased is neither shown nor taken, and everything else is untouched."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.memory import Forgetting, Memory, MemoryType, Scope, Source
from semmem.ports.errors import Erased
from tests.support.examples import examples
from tests.support.fakes import HashEmbedder

ALICE = Scope("alice")
EMBEDDER = HashEmbedder(16)


async def memory(name: str, said_at: float, project: str | None = None, **rest: Any) -> Memory:
    text = f"User likes {name}"
    fields: dict[str, Any] = {"user": "alice", "version": 1, "created_at": said_at, **rest}
    source, vector = Source(time=said_at), await EMBEDDER.embed(text)
    return Memory(
        name, type=MemoryType.SEMANTIC, content=text, project=project, source=source, embedding=vector, **fields
    )


async def hiding() -> tuple[InProcessStore, HidingStore, Marks]:
    store, marks = InProcessStore(), Marks()
    await store.open()
    return store, HidingStore(store, marks), marks


async def test_what_is_written_late_is_refused_and_what_was_said_later_is_not() -> None:
    store, shown, marks = await hiding()
    marks.hold(Forgetting(ALICE, 100.0))
    with pytest.raises(Erased):
        await shown.put(ALICE, await memory("tea", 100.0))
    await shown.put(ALICE, await memory("milk", 100.5))
    await shown.put(Scope("bob"), await memory("tea", 1.0, user="bob"))
    assert (await store.count(ALICE), await store.count(Scope("bob"))) == (1, 1)


@given(
    said=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([None, "p", "q"])), max_size=12),
    at=st.integers(0, 9),
    project=st.sampled_from([None, "p"]),
    limit=st.integers(1, 5),
    offset=st.integers(0, 3),
)
@settings(max_examples=examples(60), deadline=None)
async def test_every_read_shows_what_a_store_without_the_erased_would_show(
    said: list[tuple[int, str | None]], at: int, project: str | None, limit: int, offset: int
) -> None:
    store, shown, marks = await hiding()
    bare, _, _ = await hiding()
    what = Forgetting(Scope("alice", project), float(at))
    for number, (said_at, where) in enumerate(said):
        each = await memory(f"m{number}", float(said_at), where)
        await store.put(ALICE, each)
        if not what.covers(each):
            await bare.put(ALICE, each)
    marks.hold(what)
    query = await EMBEDDER.embed("User likes m1")
    for scope in (ALICE, Scope("alice", "p")):
        assert await shown.count(scope) == await bare.count(scope)
        pages = [await each.list(scope, limit=limit, offset=offset) for each in (shown, bare)]
        assert pages[0] == pages[1]
        found = [await each.search(scope, query, limit=limit, now=50.0) for each in (shown, bare)]
        assert [hit.memory.id for hit in found[0]] == [hit.memory.id for hit in found[1]]
    for number in range(len(said)):
        assert await shown.get(ALICE, f"m{number}") == await bare.get(ALICE, f"m{number}")


async def test_it_knows_which_writes_are_under_way() -> None:
    class Slow(InProcessStore):
        go_on = asyncio.Event()

        async def put(self, scope: Scope, *memories: Memory) -> None:
            await self.go_on.wait()
            await super().put(scope, *memories)

    store = Slow()
    await store.open()
    shown = HidingStore(store, Marks())
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(shown.put(ALICE, await memory("tea", 1.0)))
        await asyncio.sleep(0)
        await asyncio.wait_for(shown.puts_ended("bob"), 5)
        waiting = group.create_task(shown.puts_ended("alice"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        store.go_on.set()
        await waiting
        assert writing.done()
    assert not shown._putting._ends


def test_marks_are_kept_for_as_long_as_they_are_told() -> None:
    now = 0.0
    marks = Marks(clock=lambda: now)
    first, second = Forgetting(ALICE, 1.0), Forgetting(ALICE, 2.0, memory_id="m")
    marks.hold(first)
    marks.hold(second)
    marks.release(second)
    marks.release(first, after_s=10.0)
    assert (marks.any_of("alice"), marks.after("alice", 0.5) > 1.0) == (True, True)
    now = 10.0
    assert (marks.any_of("alice"), marks.after("alice", 0.5)) == (False, 0.5)
