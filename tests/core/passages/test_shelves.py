"""Memories and passages in one store, and apart in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from semmem.backends.in_process import InProcessCollections, InProcessStore
from semmem.memory import PASSAGES, Memory, MemoryType, Scope
from semmem.passages.shelves import ShelvedCollections, Shelves, everything
from semmem.ports.store import Described
from tests.support.memories import DIMENSION, NOW, found_ids, memory, put

ADA = Scope("ada")


def passage(user: str, id: str = "psg_1", **fields: object) -> Memory:
    return memory(user, id, **{"type": MemoryType.PASSAGE, **fields})


@pytest.fixture
async def store() -> AsyncIterator[Shelves]:
    made = Shelves(InProcessStore(dimension=DIMENSION), InProcessStore(dimension=DIMENSION))
    await made.open()
    await put(made, memory("ada"), passage("ada"), passage("ada", "psg_2", type=MemoryType.GIST), passage("eve"))
    yield made
    await made.close()


async def test_a_call_without_types_means_memories(store: Shelves) -> None:
    assert await found_ids(store, ADA) == ["mem_1"]
    assert [one.id for one in await store.list(ADA)] == ["mem_1"]
    assert await store.count(ADA) == 1
    assert await store.forget_scope(ADA) == 1
    assert await store.count(ADA, types=PASSAGES) == 2


async def test_passages_are_found_by_their_types(store: Shelves) -> None:
    assert await found_ids(store, ADA, types=(MemoryType.PASSAGE,)) == ["psg_1"]
    assert {one.id for one in await store.list(ADA, types=PASSAGES)} == {"psg_1", "psg_2"}
    assert await store.forget_scope(ADA, types=PASSAGES) == 2
    assert await store.count(ADA) == 1
    assert await store.count(Scope("eve"), types=PASSAGES) == 1


async def test_by_its_id_either_is_found_and_goes(store: Shelves) -> None:
    for id in ("mem_1", "psg_1"):
        assert (await store.get(ADA, id)) is not None
        assert await store.forget(ADA, id)
        assert await store.get(ADA, id) is None
    assert await store.get(ADA, "psg_2") is not None


async def test_whoever_has_passages_alone_is_a_user_too(store: Shelves) -> None:
    assert await store.users() == {"ada", "eve"}
    assert [one.id for one in await everything(store, "ada")][:1] == ["mem_1"]
    assert len(await everything(store, "ada")) == 3


async def test_what_is_over_its_time_is_found_on_both_shelves(store: Shelves) -> None:
    await put(store, memory("ada", "mem_2", expires_at=NOW), passage("ada", "psg_3", expires_at=NOW))
    assert set(await store.expired(NOW, limit=9)) == {("ada", "mem_2"), ("ada", "psg_3")}
    assert len(await store.expired(NOW, limit=1)) == 1
    assert await store.sweep(NOW) == 2


async def test_a_copy_is_put_on_the_shelves_it_belongs_to(store: Shelves) -> None:
    await store.fill([memory("bob"), passage("bob", "psg_9")])
    assert await store.memories.count(Scope("bob")) == 1
    assert await store.passages.count(Scope("bob"), types=PASSAGES) == 1


async def test_collections_have_their_passages_beside_them_and_go_with_them() -> None:
    collections = ShelvedCollections(InProcessCollections())
    live = collections.collection(Described("memories", "model/16", DIMENSION))
    other = collections.collection(Described("memories_g2", "other/16", DIMENSION))
    for each in (live, other):
        await each.open()
    await put(other, passage("ada"))
    told, beside = await collections.found()
    assert told is not None
    assert (told.name, [each.name for each in beside]) == ("memories", ["memories_g2"])
    await collections.drop("memories_g2")
    again = collections.collection(Described("memories_g2", "other/16", DIMENSION))
    await again.open()
    assert await again.count(ADA, types=PASSAGES) == 0
