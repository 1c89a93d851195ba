"""From a collection of one model to one of another: what is refused, read, written, kept, and in which order."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from semmem.background import Tasks
from semmem.memory import MemoryStatus, Scope
from semmem.ports.errors import EmbedderError, StoreError, StoreMismatch
from semmem.ports.reindexing import Reindex, ReindexState
from semmem.reindex.movable_store import WithVectors
from tests.core.reindex.world import NEW, OLD, World, memory
from tests.support.fakes import bag_of_words

ALICE, BOB = "alice", "bob"
TEA, DOG = memory(ALICE, "tea"), memory(BOB, "dog")


async def test_another_models_collection_is_refused_and_it_is_said_what_to_run() -> None:
    world = World()
    await world.told_before(TEA)
    with pytest.raises(StoreMismatch, match=r"vectors of old, 8 numbers .* names new, 16 .* `semmem reindex`"):
        await world.opened_with("new", NEW, may_move=False).open()
    assert (await world.collections.found())[1] == []


async def test_the_same_model_has_nothing_to_do() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started("old", OLD)
    await world.reindexing.step()
    assert (await world.reindexing.status())["state"] == "none"
    assert world.embedder.embedded == 0


async def test_all_memories_are_in_the_new_collection_with_new_vectors() -> None:
    world = World()
    await world.told_before(TEA, memory(ALICE, "cat", 3), DOG)
    store = await world.started()
    before = await world.contents("memories")
    await world.reindexing.step()
    assert store.live.about.name == "memories_g2"
    assert await world.contents("memories_g2") == before
    assert await world.vectors_are_right("memories_g2", NEW)
    status = await world.reindexing.status()
    assert (status["state"], status["users_done"], status["memories_done"], status["embedded"]) == ("kept", 2, 3, 3)


async def test_until_they_have_new_vectors_memories_are_read_without_any() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    [read] = await store.list(Scope(ALICE))
    assert (read.content, read.embedding) == (TEA.content, None)
    await world.mover.move(ALICE)
    [read] = await store.list(Scope(ALICE))
    assert read.embedding is not None
    assert len(read.embedding) == NEW
    one = await store.get(Scope(ALICE), "tea")
    assert one is not None
    assert one.embedding is not None
    assert len(one.embedding) == NEW


async def test_a_user_of_whom_some_have_new_vectors_is_read_without_any() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    await store.put(Scope(ALICE), memory(ALICE, "cat"))
    assert [one.embedding for one in await store.list(Scope(ALICE))] == [None, None]


async def test_memories_without_vectors_are_read_where_nobody_makes_them_any() -> None:
    world = World()
    await world.told_before(TEA)
    store = world.opened_with("new", NEW)
    await store.open()
    assert [one.embedding for one in await store.list(Scope(ALICE))] == [None]


async def test_whoever_is_asked_for_is_moved_first() -> None:
    world = World()
    users = [f"user{number}" for number in range(9)]
    await world.told_before(*(memory(user, "m") for user in users))
    store = await world.started()
    await world.reindexing.step()
    last = world.moved[-1]
    world = World()
    await world.told_before(*(memory(user, "m") for user in users))
    store = await world.started()
    await store.list(Scope(last))
    await world.reindexing.step()
    assert world.moved[0] == last
    assert (await world.reindexing.status())["embedded"] == len(users)


async def test_dedup_compares_with_memories_that_have_no_new_vectors_yet() -> None:
    world = World()
    await world.told_before(TEA, memory(ALICE, "cat"))
    store = await world.started()
    hits = await store.search(Scope(ALICE), bag_of_words(TEA.content, NEW), limit=1, now=0.0, as_of=0.0)
    assert [hit.memory.id for hit in hits] == ["tea"]
    assert hits[0].cosine == pytest.approx(1.0)


async def test_a_search_by_new_vectors_shows_nothing_that_is_not_in_the_collection_that_is_read() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    await world.mover.move(ALICE)
    await world.collections.named("memories").forget(Scope(ALICE), "tea")  # by a process that knows of no reindex
    assert await store.search(Scope(ALICE), bag_of_words(TEA.content, NEW), limit=5, now=0.0) == []


async def test_what_is_written_meanwhile_is_in_both() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started()
    await world.write(memory(ALICE, "tea", 2, "the tea must be green"))
    await world.write(memory(ALICE, "new"))
    assert await world.contents("memories") == {
        (ALICE, "tea"): (2, "the tea must be green"),
        (ALICE, "new"): (1, memory(ALICE, "new").content),
    }
    await world.reindexing.step()
    assert await world.contents("memories_g2") == await world.contents("memories")
    assert await world.vectors_are_right("memories_g2", NEW)


async def test_what_is_erased_goes_everywhere_as_long_as_the_former_collection_is_kept() -> None:
    world = World()
    await world.told_before(TEA, memory(ALICE, "cat"), DOG)
    await world.started()
    await world.mover.move(ALICE)
    await world.erase(ALICE, "tea")
    await world.reindexing.step()
    await world.erase(ALICE, "cat")
    await world.store.forget_scope(Scope(BOB))
    assert await world.contents("memories") == await world.contents("memories_g2") == {}


async def test_a_version_that_was_written_without_its_vector_gets_one() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    await store.put(Scope(ALICE), memory(ALICE, "tea", 2, embedding=None))
    await world.reindexing.step()
    assert await world.vectors_are_right("memories_g2", NEW)


async def test_an_older_version_in_the_new_collection_is_replaced() -> None:
    world = World()
    await world.told_before(memory(ALICE, "tea", 2))
    store = await world.started()
    assert store.target is not None
    await store.target.store.put(Scope(ALICE), TEA)
    assert [one.embedding for one in await store.list(Scope(ALICE))] == [None]
    await world.reindexing.step()
    assert await world.contents("memories_g2") == {(ALICE, "tea"): (2, memory(ALICE, "tea", 2).content)}


async def test_what_an_earlier_try_left_in_the_new_collection_goes() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    assert store.target is not None
    await store.target.store.put(Scope(ALICE), memory(ALICE, "erased"))
    await store.target.store.put(Scope(BOB), memory(BOB, "of nobody"))
    await world.mover.move(ALICE)
    assert set(await world.contents("memories_g2")) == {(ALICE, "tea"), (BOB, "of nobody")}
    await world.reindexing.step()
    assert set(await world.contents("memories_g2")) == {(ALICE, "tea")}


async def test_a_text_that_has_no_vector_does_not_hold_up_the_others() -> None:
    world = World()
    await world.told_before(TEA, memory(ALICE, "odd", content="odd"))
    await world.started()
    embed = world.embedder.embed

    async def odd_fails(text: str, *, within_s: float | None = None) -> object:
        if text == "odd":
            raise EmbedderError("no")
        return await embed(text)

    world.embedder.embed = odd_fails  # type: ignore[method-assign, assignment]
    await world.reindexing.step()
    kept = await world.store.list(Scope(ALICE))
    assert {one.id: one.embedding is None for one in kept} == {"tea": False, "odd": True}


async def test_without_an_embedder_nothing_is_switched() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started()

    async def fails(text: str, *, within_s: float | None = None) -> object:
        raise EmbedderError("down")

    world.embedder.embed = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(EmbedderError):
        await world.reindexing.step()
    assert world.store.live.about.name == "memories"


async def test_it_goes_on_where_it_was() -> None:
    world = World()
    await world.told_before(*(memory(f"user{number}", "m") for number in range(5)))
    await world.started()
    await world.reindexing.start(limit=2)
    await world.reindexing.step()
    status = await world.reindexing.status()
    assert (status["state"], status["users_done"], status["embedded"]) == ("paused", 2, 2)
    await world.started()
    await world.reindexing.step()  # paused is paused, also after a restart
    assert world.store.live.about.name == "memories"
    await world.reindexing.start()
    await world.reindexing.step()
    assert world.embedder.embedded == 3
    assert world.store.live.about.name == "memories_g2"


async def test_the_switch_waits_for_replicas_that_do_not_write_to_the_new_collection() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started()
    world.records.others_not_writing = 1
    await world.reindexing.step()
    assert (await world.reindexing.status())["state"] == "waiting"
    await world.collections.named("memories").put(Scope(BOB), memory(BOB, "late", embedding=None))
    world.records.others_not_writing = 0
    await world.reindexing.step()
    assert set(await world.contents("memories_g2")) == {(ALICE, "tea"), (BOB, "late")}
    assert world.store.live.about.name == "memories_g2"


async def test_one_process_does_it_and_the_others_follow() -> None:
    world = World()
    await world.told_before(TEA)
    doing = await world.started()
    reindexing = world.reindexing
    following = await world.started(settle_s=0.001)
    world.records.claimed_elsewhere = True
    await world.reindexing.step()
    assert following.live.about.name == "memories"
    world.records.claimed_elsewhere = False
    await reindexing.step()
    assert doing.live.about.name == "memories_g2"
    assert [one.embedding is not None for one in await following.list(Scope(ALICE))] == [True]
    await world.reindexing.step()
    assert following.live.about.name == "memories_g2"
    await reindexing.drop_former()
    await world.reindexing.step()
    assert following.beside == ()


async def test_a_process_of_the_former_model_says_that_everybody_reads_another_now() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started("old", OLD, settle_s=0.001)
    former = world.reindexing
    await world.started()
    await world.reindexing.step()
    with pytest.raises(StoreMismatch, match="names old"):
        await former.step()


async def test_a_process_of_the_former_model_goes_on_until_then_and_what_it_writes_is_not_lost() -> None:
    world = World()
    await world.told_before(TEA)
    former = await world.started("old", OLD, settle_s=0.001)
    serving = world.reindexing
    await world.started(settle_s=0.001)
    world.records.others_not_writing = 1
    await world.reindexing.step()
    await serving.step()
    await former.put(Scope(BOB), replace(DOG, embedding=bag_of_words(DOG.content, OLD)))
    assert (await world.reindexing.status())["state"] == "waiting"
    world.records.others_not_writing = 0
    await world.reindexing.step()
    assert set(await world.contents("memories_g2")) == {(ALICE, "tea"), (BOB, "dog")}
    assert await world.vectors_are_right("memories_g2", NEW)


async def test_by_force_another_process_writes_to_the_new_collection_too() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started("old", OLD, settle_s=0.001)
    asked = world.reindexing
    other = await world.started("old", OLD, settle_s=0.001)
    await asked.start(force=True)
    world.records.claimed_elsewhere = True
    await world.reindexing.step()
    assert [part.about.name for part in other.beside] == ["memories_g2"]
    assert other.target is not None


async def test_back_to_the_former_model_only_what_changed_is_embedded() -> None:
    world = World()
    await world.told_before(TEA, memory(ALICE, "cat"), DOG)
    await world.started()
    await world.reindexing.step()
    await world.write(memory(ALICE, "new"))
    await world.erase(BOB, "dog")
    store = await world.started("old", OLD)
    await world.reindexing.step()
    assert store.live.about.name == "memories"
    assert world.embedder.embedded == 1
    assert set(await world.contents("memories")) == {(ALICE, "tea"), (ALICE, "cat"), (ALICE, "new")}
    assert await world.vectors_are_right("memories", OLD)


async def test_the_former_collection_goes_when_told_and_after_its_time() -> None:
    for told in (True, False):
        world = World()
        await world.told_before(TEA)
        store = await world.started(keep_s=100.0)
        await world.reindexing.step()
        world.now = 99.0
        await world.reindexing.step()
        assert [part.about.name for part in store.beside] == ["memories"]
        if told:
            assert await world.reindexing.drop_former() == 1
        else:
            world.now = 100.0
            await world.reindexing.step()
        assert await world.collections.found() == (store.live.about, [])
        assert (await world.reindexing.status())["state"] == "none"


async def test_by_force_every_vector_is_made_anew_by_the_same_model() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started("old", OLD)
    await store.put(Scope(ALICE), memory(ALICE, "bare", embedding=None))
    await world.reindexing.start(force=True)
    assert [one.embedding is None for one in await store.list(Scope(ALICE))] == [True, False]
    await world.reindexing.step()
    assert (store.live.about.name, world.embedder.embedded) == ("memories_g2", 2)
    assert await world.vectors_are_right("memories_g2", OLD)


async def test_a_write_that_began_before_is_waited_for_and_not_missed() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started("old", OLD)
    world.turns.free = False
    late = replace(DOG, embedding=None)
    beginning: list[object] = []

    async def begin() -> None:
        beginning.append(await store.begin())

    tasks = Tasks()
    writing, begun = tasks.spawn("write", store.put(Scope(BOB), late)), tasks.spawn("begin", begin())
    await asyncio.sleep(0.01)
    assert beginning == []
    world.turns.free = True
    world.turns.let_go()
    await asyncio.gather(writing, begun)
    await world.reindexing.step()
    assert (BOB, "dog") in await world.contents("memories_g2")


async def test_one_that_was_begun_by_force_goes_on_after_a_restart() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started("old", OLD)
    await world.reindexing.start(force=True)
    store = await world.started("old", OLD)
    await world.reindexing.step()
    assert store.live.about.name == "memories_g2"


async def test_what_is_not_recalled_needs_no_vector_to_be_read() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    await world.mover.move(ALICE)
    await store.put(Scope(ALICE), memory(ALICE, "old", status=MemoryStatus.SUPERSEDED, embedding=None))
    read = {one.id: one.embedding is not None for one in await store.list(Scope(ALICE))}
    assert read == {"tea": True, "old": False}


async def test_no_backup_is_taken_of_memories_without_vectors() -> None:
    world = World()
    await world.told_before(TEA)
    store = await world.started()
    view = WithVectors(store, store)
    with pytest.raises(StoreError, match="are being reindexed"):
        await view.list(Scope(ALICE))
    await world.reindexing.step()
    assert [one.id for one in await view.list(Scope(ALICE))] == ["tea"]


async def test_a_journal_of_earlier_that_knows_of_another_collection_is_set_right() -> None:
    world = World()
    await world.told_before(TEA)
    world.records.known = Reindex("memories", "memories_g2", "new")
    await world.started("old", OLD)
    await world.reindexing.step()
    assert (await world.reindexing.status())["state"] == "none"


async def test_the_switch_is_noted_and_told() -> None:
    world = World()
    await world.told_before(TEA)
    await world.started()
    await world.reindexing.step()
    assert world.records.known is not None
    assert world.records.known.state is ReindexState.KEPT
    assert world.told == [
        "from memories to memories_g2, for new",
        "everybody reads memories_g2; memories is kept",
    ]
