"""After a DELETE nothing said before it comes back by any path, and what is said after it is learnt as usual."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from semmem.backends.sql.journal import SqlJournal
from semmem.extraction.rules import RulesExtractor
from semmem.memory import Memory, Scope, Turn
from semmem.ports.errors import JournalError
from semmem.ports.events import ErasureEnded
from semmem.ports.learning import Batch, Extracted
from semmem.ports.memory_records import Uses
from tests.core.lifecycle.erased_world import ADMIN, ALICE, ErasedWorld, Store, erased_world
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder
from tests.support.journal_samples import erase

TEXT = "I live in Lisbon and I work as a nurse in house number {}"
ROUNDS = 40


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ErasedWorld]:
    async with erased_world(tmp_path) as made:
        yield made


async def test_forty_erasures_at_once_after_the_answer_are_forty(world: ErasedWorld) -> None:
    users = [f"user-{number}" for number in range(ROUNDS)]
    for number, user in enumerate(users):
        world.say(TEXT.format(number), scope=Scope(user, session="s"))
        deleted = await world.delete(user_id=user)
        assert (deleted.status_code, deleted.json()["success"]) == (200, True)
    await world.quiet()
    assert {user: await world.contents(user) for user in users} == {user: set() for user in users}
    assert world.tables_with("user-", "Lisbon") == set()


async def test_what_waited_in_the_queue_is_on_the_receipt(world: ErasedWorld) -> None:
    world.say("I like tea")
    receipt = (await world.delete()).json()["receipt"]
    assert receipt["halves"] + receipt["turns"] >= 1
    world.say("I live in Porto")
    await world.quiet()
    assert len(await world.contents()) == 1
    receipt = (await world.delete()).json()["receipt"]
    assert (receipt["memories"], receipt["turns"], receipt["halves"]) == (1, 1, 0)


async def test_what_is_said_after_it_is_learnt_as_usual_even_the_very_same(world: ErasedWorld) -> None:
    world.say("I live in Porto")
    await world.quiet()
    before = await world.contents()
    assert before
    for _ in range(3):
        assert (await world.delete()).status_code == 200
        assert await world.contents() == set()
        world.say("I live in Porto")
        await world.quiet()
        assert await world.contents() == before


class SlowExtractor(RulesExtractor):
    """Begins, and ends when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        self.begun.set()
        await self.go_on.wait()
        return await super().extract(batch, notes)


async def test_forty_erasures_during_a_batch_are_forty(tmp_path: Path) -> None:
    slow = SlowExtractor()
    async with erased_world(tmp_path, extractor=slow) as world:
        for number in range(ROUNDS):
            slow.begun.clear()
            slow.go_on.clear()
            world.say(TEXT.format(number))
            await slow.begun.wait()
            receipt = (await world.delete()).json()["receipt"]
            slow.go_on.set()
            await world.quiet()
            assert await world.contents() == set(), number
            assert (receipt["turns"], receipt["batches"]) == (1, 1)
        assert len(world.raw) == 0
        assert world.tables_with("alice", "Lisbon") == set()


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_an_erasure_at_any_moment_of_a_batch_leaves_nothing(tmp_path: Path, delay_s: float) -> None:
    store = Store()
    store.pause_s = 0.005
    async with erased_world(tmp_path, store=store) as world:
        for number in range(10):
            world.say(TEXT.format(number))
            await asyncio.sleep(0.02 + delay_s)
            assert (await world.delete()).status_code == 200
            assert await world.contents() == set()
        await world.quiet()
        assert len(world.raw) == 0
        assert world.tables_with("alice", "Lisbon") == set()


# --- what cannot be completed ----------------------------------------------------------------------------------------


PENDING = 3


async def finished(world: ErasedWorld) -> None:
    async def over() -> bool:
        await world.erasing.erasure.load()
        return not await world.erasing.erasure.finish_pending()

    await world.until(over)


async def test_who_comes_to_a_pending_erasure_that_another_one_has_finished_leaves_it(world: ErasedWorld) -> None:
    world.say("I live in Porto")
    await world.quiet()
    with world.locked():
        for path in ("", *(f"/mem_{number}" for number in range(PENDING))):
            assert (await world.delete(path)).status_code == 503
    erasure = world.erasing.erasure
    assert erasure.pending == 1 + PENDING
    await asyncio.gather(*(erasure.finish_pending() for _ in range(PENDING)))
    assert erasure.pending == 0
    assert await world.contents() == set()


async def test_with_a_locked_journal_the_answer_is_503_and_the_rest_is_done_later(world: ErasedWorld) -> None:
    world.say("I live in Porto")
    await world.quiet()
    assert await world.contents()
    loaded = await world.store.index("alice", wait_s=5.0)
    assert loaded is not None
    assert len(loaded.memories) == 1
    with world.locked():
        world.say("I work as a nurse")
        answer = await world.delete()
        body = answer.json()
        assert (answer.status_code, body["error"]["code"], body["success"]) == (503, "ERASURE_PENDING", False)
        assert (body["pending"], body["outlives_restart"], body["receipt"]["halves"]) == (True, False, 2)
        assert await world.contents() == set(), "what is pending is not shown"
        shown = await world.store.index("alice", wait_s=5.0)
        assert shown is not None
        assert len(shown.memories) == 0, "nor put into prompts"
        world.say("I like tea")
        assert await world.erasing.erasure.finish_pending() == 1
    await finished(world)
    await world.quiet()
    assert await world.contents() == {"User likes tea"}
    assert [event.result for event in world.erasing.announced if isinstance(event, ErasureEnded)] == [
        "pending",
        "finished",
    ]
    assert {memory.content for memory in await world.raw.list(Scope("alice"))} == {"User likes tea"}


async def test_a_commit_in_flight_while_the_journal_is_locked_brings_nothing_back(world: ErasedWorld) -> None:
    with world.locked():
        world.say("I live in Porto")
        await asyncio.sleep(0.1)  # the writer has begun to commit it
        assert (await world.delete()).status_code == 503
    await finished(world)
    await world.quiet()
    assert await world.contents() == set()
    assert world.tables_with("Porto", "alice") == set()


async def fill_the_journal(world: ErasedWorld) -> None:
    """With ever smaller turns of somebody else, until not even the smallest is written."""
    for size in (20_000, 4_000, 1_000, 300, 30):
        for number in range(1000):
            filler = Turn(f"{size}-{number}", Scope("mallory", session="m"), number, "x" * size, 1e12)
            try:
                await world.journal.record([filler], [])
            except JournalError:
                break


async def test_with_a_full_journal_nothing_appears_when_there_is_space_again(tmp_path: Path) -> None:
    async with erased_world(tmp_path, size_bytes_max=280 * 1024) as world:
        await world.create("User likes tea")
        await fill_the_journal(world)
        for number in range(ROUNDS):
            world.say(TEXT.format(number))
        await asyncio.sleep(0.2)
        assert len(world.writer) == 2 * ROUNDS
        answer = await world.delete()
        assert (answer.status_code, answer.json()["receipt"]["halves"]) == (503, 2 * ROUNDS)
        assert (len(world.writer), await world.contents()) == (0, set())
        await erase(world.journal, Scope("mallory"), at=1e12)
        await finished(world)
        await world.quiet()
        assert len(world.raw) == 0
        assert world.tables_with("alice", "Lisbon") == set()
        world.say("I live in Porto")
        await world.quiet()
        assert await world.contents() == {"User lives in Porto"}


@pytest.mark.parametrize("path", ["", "/{id}"])
async def test_with_the_store_down_it_is_pending_hidden_and_survives_the_process(tmp_path: Path, path: str) -> None:
    store = Store()
    async with erased_world(tmp_path, store=store) as world:
        created = (await world.create("User likes tea")).json()
        await world.create("User likes milk", user_id="bob")
        store.down = True
        answer = await world.delete(path.format(**created))
        assert (answer.status_code, answer.json()["outlives_restart"]) == (503, True)
        assert await world.contents() == set()
        assert await world.contents("bob") == {"User likes milk"}
    store.down = False
    async with erased_world(tmp_path, store=store) as world:
        await world.erasing.erasure.load()
        assert world.erasing.erasure.pending == 1
        assert await world.contents() == set(), "hidden before it is finished"
        await world.create("User likes juice")
        await finished(world)
        assert await world.contents() == {"User likes juice"}
        assert len(world.raw) == 2
        assert world.rows()["pending_erasures"] == []


async def test_no_read_shows_what_is_pending(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        old = (await world.create("User likes green tea", key="drink")).json()
        await world.store.index("alice", wait_s=5.0)
        world.raw.down = True
        assert (await world.delete()).status_code == 503
        world.raw.down = False
        await world.create("User likes green apples", key="fruit")
        asked = {"user_id": "alice", "query": "What green things do I like?"}
        for route in ("search", "preview"):
            found = (await world.http.post(f"/v1/memory/{route}", json=asked, headers=ADMIN)).json()
            assert [memory["content"] for memory in found["memories"]] == ["User likes green apples"]
        params = {"user_id": "alice"}
        listed = (await world.http.get("/v1/memory", params=params, headers=ADMIN)).json()
        assert (listed["total"], [m["content"] for m in listed["memories"]]) == (1, ["User likes green apples"])
        assert (await world.http.get(f"/v1/memory/{old['id']}", params=params, headers=ADMIN)).status_code == 404
        asked_for = await HashEmbedder().embed("User likes green tea")
        [hit] = await world.store.search(Scope("alice"), asked_for, limit=1, now=time.time())
        assert hit.memory.content == "User likes green apples"


async def test_pending_erasures_are_bounded_and_one_too_many_is_not_promised(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        world.erasing.erasure.pending_max = 2
        world.raw.down = True
        answers = [(await world.delete(user_id=user)).json()["error"]["code"] for user in ("a", "a", "b", "c")]
        assert answers == ["ERASURE_PENDING", "ERASURE_PENDING", "ERASURE_PENDING", "MEMORY_NOT_AVAILABLE"]
        assert world.erasing.erasure.pending == 2, "the same again is one"


async def test_a_caller_who_leaves_does_not_stop_it(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        await world.create("User likes tea")
        world.raw.pause_s = 0.2
        caller = world.erasing.tasks.spawn("caller", world.delete())
        await asyncio.sleep(0.1)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        world.raw.pause_s = 0.0
        await finished(world)
        assert len(world.raw) == 0


# --- at the same time ------------------------------------------------------------------------------------------------


async def test_two_erasures_at_once_are_both_done(world: ErasedWorld) -> None:
    for number in range(20):
        await world.create(f"User has memory {number}")
    answers = await asyncio.gather(*(world.delete() for _ in range(5)), world.delete(project_id="p"))
    assert {answer.status_code for answer in answers} == {200}
    assert await world.contents() == set()
    assert await world.journal.hold("alice", now=time.time(), lease_s=1.0), "no hold is left behind"


async def test_a_project_is_erased_while_another_is_learnt(tmp_path: Path) -> None:
    slow = SlowExtractor()
    async with erased_world(tmp_path, extractor=slow) as world:
        kept, gone = structs.replace(ALICE, project="kept"), structs.replace(ALICE, project="gone")
        world.say("I live in Porto", scope=kept)
        await slow.begun.wait()
        world.say("I work as a nurse", scope=gone)
        answer = await world.delete(project_id="gone")
        assert answer.status_code == 200
        assert answer.json()["receipt"]["batches"] == 0
        slow.go_on.set()
        world.say("I like tea", scope=gone)
        await world.quiet()
        assert await world.contents() == {"User lives in Porto", "User likes tea"}


async def test_a_load_under_way_does_not_bring_erased_memories_into_the_index(tmp_path: Path) -> None:
    class SlowReads(Store):
        reading = asyncio.Event()
        go_on = asyncio.Event()

        async def list(self, scope: Scope, **page: Any) -> list[Memory]:
            found = await super().list(scope, **page)
            self.reading.set()
            await self.go_on.wait()
            return found

    store = SlowReads()
    store.go_on.set()
    async with erased_world(tmp_path, store=store) as world:
        await world.create("User likes tea")
        store.reading.clear()
        store.go_on.clear()
        world.store.warm("alice")
        await store.reading.wait()
        deleting = world.erasing.tasks.spawn("delete", world.delete())
        await asyncio.sleep(0.1)
        store.go_on.set()
        assert (await deleting).status_code == 200
        index = await world.store.index("alice", wait_s=10.0)
        assert index is not None
        assert len(index.memories) == 0


async def test_statistics_that_are_being_written_do_not_stay(world: ErasedWorld) -> None:
    created = (await world.create("User likes tea")).json()
    world.erasing.notes.note("alice", [created["id"]], time.time())
    flushing = world.erasing.tasks.spawn("flush", world.erasing.notes.flush())
    assert (await world.delete()).status_code == 200
    await flushing
    world.erasing.notes.note("alice", [created["id"]], 1.0)
    await world.erasing.notes.flush()
    assert world.tables_with("alice") == set()


async def test_one_memory_goes_with_its_statistics_and_its_waiting_uses(world: ErasedWorld) -> None:
    created = (await world.create("User likes tea")).json()
    await world.journal.record_uses([("alice", created["id"], Uses(1, 1.0))])
    world.erasing.notes.note("alice", [created["id"]], time.time())
    receipt = (await world.delete(f"/{created['id']}")).json()["receipt"]
    assert (receipt["memories"], receipt["statistics"], receipt["turns"]) == (1, 1, 0)
    await world.erasing.notes.flush()
    assert await world.journal.uses("alice") == {}
    assert world.rows()["pending_erasures"] == []


async def test_the_clock_may_be_set_back_after_an_erasure(world: ErasedWorld) -> None:
    now = time.time()
    await world.delete()
    world.memories.clock = lambda: now - 3600.0
    assert (await world.create("User likes tea")).status_code == 201
    assert await world.contents() == {"User likes tea"}
    at = world.erasing.after("alice", now - 3600.0)
    world.say("I live in Porto", opened_at=at)
    await world.quiet()
    assert await world.contents() == {"User likes tea", "User lives in Porto"}
    assert world.erasing.after("bob", 5.0) == 5.0


async def test_sessions_of_an_erased_user_are_not_gone_on_from(world: ErasedWorld) -> None:
    sessions = world.erasing.sessions
    for user in ("alice", "bob"):
        sessions.opened(f"t-{user}", Scope(user, session="s"))
        sessions.closed(f"t-{user}", "answer", 1.0)
    await world.delete()
    assert (await sessions.answered("alice", "answer"), await sessions.latest(ALICE)) == (None, None)
    assert await sessions.answered("bob", "answer") is not None


# --- two processes on one file ---------------------------------------------------------------------------------------


async def test_what_waits_in_another_process_is_turned_away(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as here:
        there = SqlJournal(empty_journal(tmp_path / "journal.db"))
        await there.open()
        late = [Turn(f"late-{n}", ALICE, n, TEXT.format(n), time.time()) for n in range(ROUNDS)]
        assert (await here.delete()).status_code == 200
        await there.record(late, [])
        await there.record([Turn("new", ALICE, 99, "I like tea", time.time())], [])
        await here.quiet()
        assert await here.contents() == {"User likes tea"}
        assert there.turned_away == ROUNDS
        await there.close()


async def test_what_another_process_could_not_finish_is_hidden_and_finished_here(tmp_path: Path) -> None:
    store = Store()
    async with erased_world(tmp_path, store=store) as here, erased_world(tmp_path, store=store) as there:
        await here.create("User likes tea")
        store.down = True
        assert (await here.delete()).status_code == 503
        store.down = False
        assert await there.contents() == {"User likes tea"}
        await there.erasing.erasure.load()
        assert await there.contents() == set()
        await finished(there)
        assert len(store) == 0
        await finished(here)


async def test_what_its_own_writer_takes_out_first_is_deleted_all_the_same(tmp_path: Path) -> None:
    """Whoever writes a memory while it is erased sees the mark, and removes it before the erasure comes to it."""

    class Outrun(Store):
        async def forget(self, scope: Scope, memory_id: str) -> bool:
            await super().forget(scope, memory_id)
            return await super().forget(scope, memory_id)

    async with erased_world(tmp_path, store=Outrun()) as world:
        memory = (await world.create("User likes tea")).json()
        gone = await world.delete(f"/{memory['id']}")
        assert (gone.status_code, gone.json()["deleted"], gone.json()["receipt"]["memories"]) == (200, 1, 1)
        assert (await world.delete(f"/{memory['id']}")).status_code == 404
