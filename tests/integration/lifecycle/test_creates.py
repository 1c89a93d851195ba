"""What the API creates is written one after another for each user, and an erasure is not undone by it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from semmem.lifecycle.holds import Busy, Holds
from semmem.memory import Scope
from tests.core.lifecycle.erased_world import ErasedWorld, Store, erased_world

CREATES, AROUND = 24, 12
"""Of one key at once, and before and after an erasure."""
PATIENT_S = 100.0
"""However busy the machine is, all of them have their turn."""


async def versions_of(world: ErasedWorld, memory_id: str) -> list[str]:
    return [memory.content for memory in await world.journal.versions(Scope("alice"), memory_id)]


@pytest.mark.parametrize("pause_s", [0.0, 0.003])
async def test_many_creates_of_one_key_are_one_memory_in_as_many_versions(tmp_path: Path, pause_s: float) -> None:
    store = Store()
    store.pause_s = pause_s
    async with erased_world(tmp_path, store=store) as world:
        world.memories.create_wait_s = PATIENT_S
        said = [f"User lives in house number {number}" for number in range(CREATES)]
        answers = await asyncio.gather(*(world.create(text, key="home") for text in said))
        assert {answer.status_code for answer in answers} == {201}
        [memory] = await world.store.list(Scope("alice"))
        assert memory.version == CREATES
        kept = [*await versions_of(world, memory.id), memory.content]
        assert sorted(kept) == sorted(said)
        assert sorted(answer.json()["version"] for answer in answers) == list(range(1, CREATES + 1))


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.05, 0.1, 0.2])
async def test_an_erasure_among_keyed_creates_leaves_nothing_of_before_and_all_of_after(
    tmp_path: Path, delay_s: float
) -> None:
    store = Store()
    store.pause_s = 0.002
    async with erased_world(tmp_path, store=store) as world:
        world.memories.create_wait_s = PATIENT_S
        tasks = world.erasing.tasks
        first = (await world.create("User lives in the very first house", key="home")).json()
        early = [tasks.spawn("create", world.create(f"User lives in old house {n}", key="home")) for n in range(AROUND)]
        await asyncio.sleep(delay_s)
        over = {task.result().json()["content"] for task in early if task.done()}
        deleted = await world.delete()
        assert deleted.status_code == 200
        late = [tasks.spawn("create", world.create(f"User lives in new house {n}", key="home")) for n in range(AROUND)]
        answers = [await task for task in (*early, *late)]
        assert {answer.status_code for answer in answers} == {201}
        [memory] = await world.raw.list(Scope("alice"))
        kept = {*await versions_of(world, memory.id), memory.content}
        assert {f"User lives in new house {n}" for n in range(AROUND)} <= kept
        assert not kept & (over | {first["content"]})
        gone = await versions_of(world, first["id"])
        assert gone == []
        assert memory.version == len(kept)


async def test_creates_wait_for_a_batch_and_for_no_longer_than_they_are_told(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        held = await world.journal.hold("alice", now=time.time(), lease_s=60.0)
        assert held is not None
        world.memories.create_wait_s = 0.1
        refused = await world.create("User likes tea")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "BUSY")
        assert (await world.create("User likes milk", user_id="bob")).status_code == 201
        world.memories.create_wait_s = 30.0
        waiting = world.erasing.tasks.spawn("create", world.create("User likes tea"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await world.journal.release(held)
        assert (await waiting).status_code == 201


async def test_the_line_is_first_come_first_served_and_bounded(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        holds = Holds(world.journal, clock=time.time, wait_s=30.0, poll_s=0.01, callers_max=20)
        order: list[int] = []

        async def work(number: int) -> None:
            async with holds.held("alice"):
                order.append(number)
                await asyncio.sleep(0.001)

        done = await asyncio.gather(*(work(number) for number in range(25)), return_exceptions=True)
        assert order == list(range(20))
        assert [type(failure) for failure in done if failure is not None] == [Busy] * 5
        assert holds._lines._of == {}


async def test_who_waits_too_long_in_line_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        holds = Holds(world.journal, clock=time.time, wait_s=30.0, poll_s=0.01)
        async with holds.held("alice"):
            with pytest.raises(Busy):
                async with holds.held("alice", wait_s=0.05):
                    raise AssertionError("nobody else may be in here")
        async with holds.held("alice"):
            pass
