"""Whatever comes between, and wherever it is killed: what is erased stays so, what is newer wins, nothing is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Memory, Scope
from tests.core.reindex.world import NEW, World, memory
from tests.support.examples import examples
from tests.support.fakes import bag_of_words

USERS, IDS = ("alice", "bob"), ("a", "b", "c")

acts = st.lists(
    st.tuples(
        st.sampled_from(["write", "write at once", "erase", "read"]), st.sampled_from(USERS), st.sampled_from(IDS)
    ),
    min_size=1,
    max_size=4,
)


class Story:
    """What others do while memories move. ``versions``: the newest of each memory; ``erased``: those that may not be
    there at the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.versions: dict[tuple[str, str], int] = {}
        self.erased: set[tuple[str, str]] = set()
        self.wrong: list[Memory] = []

    def next_version(self, user: str, id: str) -> Memory:
        self.erased.discard((user, id))
        self.versions[user, id] = self.versions.get((user, id), 0) + 1
        return memory(user, id, self.versions[user, id])

    async def act(self, acts: list[tuple[str, str, str]]) -> None:
        for what, user, id in acts:
            await self.world.turns.turn()
            if what == "read":
                self.wrong += [one for one in await self.world.store.list(Scope(user)) if not _is_right(one)]
            elif what == "erase":
                await self.world.erase(user, id)
                self.versions.pop((user, id), None)
                self.erased.add((user, id))
            elif what == "write":
                if not await self.world.write(self.next_version(user, id)):
                    self.versions[user, id] -= 1
            else:
                new = self.next_version(user, id)
                await self.world.store.put(Scope(user), new)


def _is_right(one: Memory) -> bool | np.bool_:
    """No vector, or the new model's of these very words."""
    return one.embedding is None or (one.embedding == bag_of_words(one.content, NEW)).all()


async def play(data: st.DataObject, first: Any, acts: list[tuple[str, str, str]], stop_after: int | None) -> None:
    world = World(lambda waiting: data.draw(st.integers(0, waiting - 1)))
    await world.told_before(*(memory(user, id) for user in USERS for id in IDS[:2]))
    await world.started()
    story = Story(world)
    story.versions = {(user, id): 1 for user in USERS for id in IDS[:2]}
    world.turns.free = False

    async def moving() -> None:
        with suppress(asyncio.CancelledError):
            await first(world)

    await world.turns.play(moving(), story.act(acts), stop_after=stop_after)
    world.turns.free = True
    await world.started()  # after a kill, and without one
    while world.store.live.about.name == "memories":
        await world.reindexing.step()
    expected = {key: (version, memory(*key, version).content) for key, version in story.versions.items() if version}
    assert await world.contents("memories_g2") == expected
    assert await world.contents("memories") == expected
    assert await world.vectors_are_right("memories_g2", NEW)
    assert story.wrong == []


@settings(max_examples=examples(150))
@given(st.data(), acts)
def test_whatever_comes_between_slices(data: st.DataObject, acts: list[tuple[str, str, str]]) -> None:
    async def slices(world: World) -> None:
        for user in USERS:
            await world.mover.move(user)

    asyncio.run(play(data, slices, acts, None))


@settings(max_examples=examples(150))
@given(st.data(), acts, st.integers(0, 40))
def test_killed_anywhere_it_goes_on(data: st.DataObject, acts: list[tuple[str, str, str]], stop_after: int) -> None:
    async def everything(world: World) -> None:
        await world.reindexing.step()

    asyncio.run(play(data, everything, acts, stop_after))


@settings(max_examples=examples(100))
@given(st.data(), acts)
def test_what_is_erased_while_a_slice_is_under_way_is_not_in_the_new_collection_when_it_ends(
    data: st.DataObject, acts: list[tuple[str, str, str]]
) -> None:
    """Without a look at the whole afterwards: two processes may see each other's writes late."""

    async def story() -> None:
        world = World(lambda waiting: data.draw(st.integers(0, waiting - 1)))
        await world.told_before(*(memory("alice", id) for id in IDS))
        await world.started()
        erasing = [world.erase("alice", id) for id in {id for _, _, id in acts}]
        world.turns.free = False
        await world.turns.play(world.mover.move("alice"), *erasing)
        world.turns.free = True
        assert await world.contents("memories_g2") == await world.contents("memories")

    asyncio.run(story())
