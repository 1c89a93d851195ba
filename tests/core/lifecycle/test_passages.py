"""What was said goes with what is erased, and the oldest of it where there is too much."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.lifecycle.quota import PASSAGE_QUOTA, PassageQuota
from semmem.memory import PASSAGES, MemoryType, Scope, Turn
from semmem.ports.events import Event, MemoriesRemoved
from semmem.ports.request_log import LoggedRequest
from tests.core.lifecycle.erased_world import ALICE, ErasedWorld, erased_world
from tests.support.memories import memory, put

BOAT = "We looked at a green boat in Ghent."
BEES = "I keep bees."


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ErasedWorld]:
    async with erased_world(tmp_path, passages=True) as made:
        yield made


async def said(world: ErasedWorld, *texts: str, **options: object) -> None:
    for text in texts:
        world.say(text, answer="Take a look at the engine first.", **options)  # type: ignore[arg-type]
        await world.quiet()


def quotes(*texts: str) -> set[str]:
    return {f'"{text}"' for text in texts}


GIST = {"Take a look at the engine first."}


async def test_with_a_user_goes_all_they_said(world: ErasedWorld) -> None:
    await said(world, BOAT)
    await said(world, "I have another boat in Bruges.", scope=Scope("bob", session="b"))
    assert await world.passages() == quotes(BOAT) | GIST
    answer = await world.delete()
    assert answer.json()["receipt"]["passages"] == 2
    assert await world.passages() == set()
    assert len(await world.passages("bob")) == 2


async def test_with_a_project_goes_what_was_said_in_it(world: ErasedWorld) -> None:
    await said(world, BOAT, scope=Scope("alice", project="p", session="s1"))
    await said(world, BEES)
    await world.delete(project_id="p")
    assert await world.passages() == quotes(BEES), "any answer may repeat what was said in it"


async def test_with_a_memory_goes_what_says_it_and_every_gist_since(world: ErasedWorld) -> None:
    await said(world, BOAT, opened_at=time.time() - 100.0)  # its answer could not repeat it
    await said(world, BEES, f"By the way, {BEES}", "The weather was fine on Sunday.")
    bees = next(one for one in await world.store.list(ALICE) if "bees" in one.content)
    answer = await world.delete(f"/{bees.id}")
    assert answer.json()["receipt"]["passages"] == 5
    assert await world.passages() == quotes(BOAT, "The weather was fine on Sunday.") | GIST


@pytest.mark.parametrize("goes", ["a memory", "a project"])
async def test_with_what_was_said_go_the_requests_that_had_it(world: ErasedWorld, goes: str) -> None:
    await said(world, BEES, scope=Scope("alice", project="p", session="s1"))
    [bees] = await world.store.list(Scope("alice"))
    asked = Scope("alice", session="s2")
    for one in await world.store.list(Scope("alice"), types=PASSAGES):
        half = LoggedRequest(key=one.id, id=one.id, scope=asked, at=time.time(), outcome="injected", shown=(one.id,))
        await world.journal.log_requests([half])
    answer = await (world.delete(f"/{bees.id}") if goes == "a memory" else world.delete(project_id="p"))
    assert answer.json()["receipt"]["requests"] == 2
    assert await world.journal.logged("alice", outcome=None, limit=9) == []


async def test_a_passage_goes_by_its_id_and_the_memory_of_it_stays(world: ErasedWorld) -> None:
    await said(world, BEES)
    [one] = [each for each in await world.store.list(ALICE, types=PASSAGES) if each.type is MemoryType.PASSAGE]
    answer = await world.delete(f"/{one.id}")
    assert answer.json()["deleted"] == 1
    assert await world.passages() == set()
    assert await world.contents() == {"User keeps bees"}


async def test_a_batch_that_was_about_to_keep_it_keeps_nothing(world: ErasedWorld) -> None:
    await said(world, BEES)
    [bees] = await world.store.list(ALICE)
    turn = Turn(bees.source.turn, ALICE, 1, BEES, bees.said_at)
    async with world.erasing.holds.held("alice") as hold_id:
        await world.delete(f"/{bees.id}")
        assert await world.keeping.keep([turn], hold_id) == {"forgotten": 1}
    assert await world.passages() == set()


async def test_an_erasure_that_broke_off_is_finished_with_its_passages(world: ErasedWorld) -> None:
    await said(world, BEES)
    [bees] = await world.store.list(ALICE)
    world.raw.down = True
    assert (await world.delete(f"/{bees.id}")).status_code == 503
    assert world.erasing.hidden.marks.lately("alice"), "nothing that was said is shown meanwhile"
    world.raw.down = False
    assert await world.erasing.erasure.finish_pending() == 0
    assert await world.passages() == set()


async def test_a_type_is_no_way_to_erase_them_alone(world: ErasedWorld) -> None:
    assert (await world.delete(type="passage")).status_code == 400
    assert (await world.create("I row on Mondays", type="passage")).status_code == 400


async def test_where_there_are_too_many_the_oldest_go_and_are_counted(world: ErasedWorld) -> None:
    kind = {"type": MemoryType.PASSAGE}
    await put(world.store, *(memory("alice", f"psg_{n}", created_at=float(n), **kind) for n in range(5)))
    announced: list[Event] = []
    quota = PassageQuota(world.store, world.journal, 3, announced.append)
    assert await quota.make_room("alice") == 2
    assert {one.id for one in await world.store.list(Scope("alice"), types=PASSAGES)} == {"psg_2", "psg_3", "psg_4"}
    assert announced == [MemoriesRemoved(PASSAGE_QUOTA, 2)]
    assert await quota.make_room("alice") == 0


def test_a_user_is_shown_no_passages_for_a_while_after_an_erasure() -> None:
    from semmem.lifecycle.hiding_store import LAG_S, Marks
    from semmem.memory import Forgetting

    now = 100.0
    marks = Marks(clock=lambda: now)
    what = Forgetting(Scope("ada"), 5.0, memory_id="mem_1")
    assert not marks.lately("ada")
    marks.hold(what)
    assert marks.lately("ada")
    marks.release(what)
    assert marks.lately("ada")
    assert not marks.lately("eve")
    now += LAG_S + 1
    assert not marks.lately("ada")
