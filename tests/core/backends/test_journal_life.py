"""What the journal's database keeps beside memories: uses, users, holds, and what a batch may no longer write."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.memory_records import Uses
from tests.support.journal_samples import EAGER, HOSTILE, Place, answered, erase, turn

BOB = Scope("bob", session="s")


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def other(journal: SqlJournal, place: Place) -> AsyncIterator[SqlJournal]:
    """Another replica on the same file."""
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


def memory(memory_id: str, user: str = "ada", version: int = 1, project: str | None = None) -> Memory:
    return Memory(
        id=memory_id, version=version, type=MemoryType.SEMANTIC, content="User likes tea", user=user, project=project
    )


# --- uses ------------------------------------------------------------------------------------------------------------


async def test_uses_add_up_across_replicas_and_the_latest_stays(journal: SqlJournal, other: SqlJournal) -> None:
    await journal.record_uses([("ada", "m", Uses(2, 50.0)), ("ada", "n", Uses(1, 10.0)), ("bob", "m", Uses(9, 9.0))])
    await other.record_uses([("ada", "m", Uses(3, 40.0))])
    assert await journal.uses("ada") == {"m": Uses(5, 50.0), "n": Uses(1, 10.0)}
    assert await journal.uses("nobody") == {}


async def test_nothing_to_count_is_fine(journal: SqlJournal) -> None:
    await journal.record_uses([])
    assert await journal.users_due(maintained_before=1.0, limit=10) == []


async def test_the_uses_of_hostile_names_stay_apart(journal: SqlJournal) -> None:
    await journal.record_uses([(name, name, Uses(number, 1.0)) for number, name in enumerate(HOSTILE, start=1)])
    for number, name in enumerate(HOSTILE, start=1):
        assert await journal.uses(name) == {name: Uses(number, 1.0)}


async def test_uses_go_with_their_memory(journal: SqlJournal) -> None:
    await journal.record_uses([("ada", "m", Uses(1, 1.0)), ("ada", "n", Uses(1, 1.0)), ("bob", "m", Uses(1, 1.0))])
    await journal.keep_version(memory("m"))
    assert await journal.forget_memories(Scope("ada"), ["m"], shuts_turns=False) == 1
    assert (set(await journal.uses("ada")), set(await journal.uses("bob"))) == ({"n"}, {"m"})
    assert await journal.recorded_ids("ada") == {"n"}


async def test_many_memories_are_forgotten_at_once(journal: SqlJournal) -> None:
    ids = [f"m{number}" for number in range(1200)]
    await journal.record_uses([("ada", memory_id, Uses(1, 1.0)) for memory_id in ids])
    for memory_id in ids[:3]:
        await journal.keep_version(memory(memory_id))
    assert await journal.forget_memories(Scope("ada"), ids) == 3
    assert await journal.recorded_ids("ada") == set()


async def test_a_user_who_is_forgotten_leaves_no_uses_and_no_name(journal: SqlJournal) -> None:
    await journal.record_uses([("ada", "m", Uses(1, 1.0)), ("bob", "m", Uses(1, 1.0))])
    await erase(journal, Scope("ada", project="p"))
    assert await journal.uses("ada") == {"m": Uses(1, 1.0)}
    await erase(journal, Scope("ada"))
    assert await journal.uses("ada") == {}
    assert await journal.users_due(maintained_before=1.0, limit=10) == ["bob"]


# --- users -----------------------------------------------------------------------------------------------------------


async def test_users_are_known_by_their_batches_their_uses_and_by_name(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    assert await journal.users_due(maintained_before=1.0, limit=10) == []
    await journal.claim(EAGER, now=1000.0)
    await journal.record_uses([("bob", "m", Uses(1, 1.0))])
    await journal.register_user("eve")
    assert sorted(await journal.users_due(maintained_before=1.0, limit=10)) == ["ada", "bob", "eve"]


async def test_users_come_up_again_longest_ago_first(journal: SqlJournal) -> None:
    for number, user in enumerate(("ada", "bob", "eve")):
        await journal.register_user(user)
        await journal.mark_maintained(user, now=100.0 - number)
    await journal.register_user("bob")
    assert await journal.users_due(maintained_before=100.0, limit=10) == ["eve", "bob"]
    assert await journal.users_due(maintained_before=100.0, limit=1) == ["eve"]


async def test_who_talked_last_comes_first_whether_or_not_a_batch_has_learnt_from_it(journal: SqlJournal) -> None:
    told = {"ada": 10.0, "bob": 30.0, "eve": 20.0}
    for user, at in told.items():
        await journal.record([turn(f"t of {user}", Scope(user, session="s"), opened_at=at)], [answered(f"t of {user}")])
    assert await journal.users_active(limit=10) == ["bob", "eve", "ada"]
    assert await journal.users_active(limit=2) == ["bob", "eve"]
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.finish(batch.id, "learnt", now=1001.0)
    assert sorted(await journal.users_active(limit=10)) == ["ada", "bob", "eve"]
    assert (await journal.users_active(limit=10))[-1] == batch.scope.user
    await erase(journal, Scope("eve"))
    assert "eve" not in await journal.users_active(limit=10)


async def test_a_user_without_memories_can_be_forgotten_and_keeps_their_turns(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [])
    await journal.keep_version(memory("m"))
    await journal.record_uses([("ada", "m", Uses(1, 1.0)), ("bob", "m", Uses(1, 1.0))])
    await journal.forget_user("ada")
    assert (await journal.recorded_ids("ada"), await journal.recorded_ids("bob")) == (set(), {"m"})
    assert await journal.users_due(maintained_before=1.0, limit=10) == ["bob"]
    assert (await journal.counts())["open"] == 1


# --- holds -----------------------------------------------------------------------------------------------------------


async def test_a_hold_keeps_batches_and_other_holds_of_the_user_away(journal: SqlJournal, other: SqlJournal) -> None:
    await journal.record([turn("t"), turn("u", BOB)], [answered("t"), answered("u")])
    held = await journal.hold("ada", now=1000.0, lease_s=60.0)
    assert held is not None
    assert await other.hold("ada", now=1000.0, lease_s=60.0) is None
    batch = await other.claim(EAGER, now=1000.0)
    assert batch is not None
    assert batch.scope.user == "bob"
    assert await journal.hold("bob", now=1000.0, lease_s=60.0) is None
    assert await other.claim(EAGER, now=1000.0) is None
    await journal.release(held)
    await journal.release(held)
    assert (await other.claim(EAGER, now=1000.0) or batch).scope.user == "ada"


async def test_a_hold_whose_holder_died_ends_by_itself(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    assert await journal.hold("ada", now=1000.0, lease_s=60.0)
    assert await journal.claim(EAGER, now=1059.0) is None
    batch = await journal.claim(EAGER, now=1060.0)
    assert batch is not None
    assert [each.id for each in batch.turns] == ["t"]


async def test_letting_go_ends_no_batch(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.release(batch.id)
    assert await journal.allows(batch.id, "m")


async def test_a_postponed_batch_keeps_no_hold_away_and_waits_for_it(journal: SqlJournal, other: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    assert await journal.hold("ada", now=1000.0, lease_s=60.0) is None
    await journal.postpone(batch.id, until=1010.0)
    held = await journal.hold("ada", now=1000.0, lease_s=60.0)
    assert held is not None
    assert await journal.allows(held, "m")
    assert await other.hold("ada", now=1000.0, lease_s=60.0) is None, "one hold at a time"
    assert await other.claim(EAGER, now=1059.0) is None
    await journal.release(held)
    again = await other.hold("ada", now=1020.0, lease_s=1.0)
    assert again is not None
    await other.release(again)
    retried = await journal.claim(EAGER, now=1100.0)
    assert retried is not None
    assert (retried.id, retried.attempt) == (batch.id, 2)
    await journal.release(again)
    assert await journal.hold("ada", now=1100.0, lease_s=60.0) is None, "the batch is under way again"


async def test_a_hold_puts_a_postponed_batch_off_for_no_longer_than_it_lasts(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.postpone(batch.id, until=1010.0)
    for now in (1000.0, 1005.0, 1009.0):
        held = await journal.hold("ada", now=now, lease_s=60.0)
        assert held is not None
        assert await journal.claim(EAGER, now=1015.0) is None
        await journal.release(held)
    retried = await journal.claim(EAGER, now=1015.0)
    assert retried is not None
    assert retried.id == batch.id


async def test_a_hold_whose_holder_died_in_the_place_of_a_batch_ends_by_itself(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.postpone(batch.id, until=1010.0)
    assert await journal.hold("ada", now=1000.0, lease_s=60.0)
    retried = await journal.claim(EAGER, now=1060.0)
    assert retried is not None
    assert retried.id == batch.id


async def test_a_batch_that_is_set_aside_keeps_no_hold_away_and_is_taken_up_after_it(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await journal.record([turn("t"), turn("late")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.set_aside(batch.id)
    held = await other.hold("ada", now=1000.0, lease_s=60.0)
    assert held is not None
    assert await journal.claim(EAGER, now=1001.0) is None, "its lease stays"
    assert not await journal.take_up(batch.id, now=1001.0)
    assert await journal.hold("ada", now=1000.0, lease_s=60.0) is None, "one hold at a time"
    await other.release(held)
    assert await journal.take_up(batch.id, now=1001.0)
    assert await other.hold("ada", now=1000.0, lease_s=60.0) is None, "the batch is in hand again"
    assert await journal.allows(batch.id, "m")
    await journal.finish(batch.id, "done", now=1002.0)
    assert await other.hold("ada", now=1002.0, lease_s=60.0) is not None


async def test_a_batch_that_is_postponed_while_it_is_aside_leaves_the_hold_in_its_place(
    journal: SqlJournal, other: SqlJournal
) -> None:
    """Whoever has it could not take it up, since the journal failed."""
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.set_aside(batch.id)
    held = await other.hold("ada", now=1000.0, lease_s=60.0)
    assert held is not None
    await journal.postpone(batch.id, until=1010.0)
    assert await journal.hold("ada", now=1001.0, lease_s=60.0) is None, "one hold at a time"
    assert await journal.claim(EAGER, now=1059.0) is None
    await other.release(held)
    again = await journal.claim(EAGER, now=1010.0)
    assert again is not None
    assert again.id == batch.id


async def test_a_batch_whose_worker_died_while_it_was_aside_comes_back_when_its_lease_is_over(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.set_aside(batch.id)
    held = await other.hold("ada", now=1000.0, lease_s=1.0)
    assert held is not None
    await other.release(held)
    assert await other.claim(EAGER, now=1000.0 + EAGER.lease_s - 1.0) is None
    again = await other.claim(EAGER, now=1000.0 + EAGER.lease_s)
    assert again is not None
    assert (again.id, again.attempt) == (batch.id, 2)
    assert await other.hold("ada", now=2000.0, lease_s=1.0) is None, "nobody knows of the one before"


async def test_a_batch_waits_for_a_holder_that_died_until_its_lease_is_over(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.set_aside(batch.id)
    assert await other.hold("ada", now=1000.0, lease_s=5.0) is not None
    assert not await journal.take_up(batch.id, now=1000.0 + EAGER.lease_s - 0.5)
    assert await journal.take_up(batch.id, now=1000.0 + EAGER.lease_s)
    assert await other.hold("ada", now=1000.0, lease_s=5.0) is None, "the batch is in hand again"


@pytest.mark.parametrize("ended", ["done", "erased", "never there"])
async def test_a_batch_that_is_no_more_is_neither_set_aside_nor_waited_for(journal: SqlJournal, ended: str) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    batch_id = batch.id if ended != "never there" else "none"
    if ended == "done":
        await journal.finish(batch_id, "done", now=1001.0)
    elif ended == "erased":
        await erase(journal, Scope("ada"))
    await journal.set_aside(batch_id)
    assert await journal.take_up(batch_id, now=1001.0)


# --- what was forgotten meanwhile ------------------------------------------------------------------------------------


async def test_a_batch_may_not_write_what_was_forgotten_while_it_was_under_way(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await journal.record([turn("t"), turn("u", BOB)], [answered("t"), answered("u")])
    batches = [await journal.claim(EAGER, now=1000.0), await journal.claim(EAGER, now=1000.0)]
    adas, bobs = sorted((batch for batch in batches if batch), key=lambda batch: batch.scope.user)
    await other.forget_memories(Scope("ada"), ["m"], shuts_turns=False)
    assert await journal.allows(adas.id, "m", "n") == {"n"}
    assert await journal.allows(bobs.id, "m")


async def test_an_erased_batch_may_write_nothing(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    held = await journal.hold("bob", now=1000.0, lease_s=60.0)
    assert batch is not None
    assert held is not None
    for user in ("ada", "bob"):
        await erase(journal, Scope(user))
    assert [await journal.allows(each, "m") for each in (batch.id, held)] == [set(), set()]


async def test_what_was_forgotten_under_a_batch_is_left_over_when_it_is_done(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await journal.forget_memories(Scope("ada"), ["m", "n"])
    assert await journal.orphans(limit=10) == []
    await journal.finish(batch.id, "stored", now=1001.0)
    await journal.forget_memories(Scope("ada"), ["nobody is writing"], shuts_turns=False)
    assert sorted(await journal.orphans(limit=10)) == [("ada", "m"), ("ada", "n")]
    assert len(await journal.orphans(limit=1)) == 1
    assert not await journal.allows(batch.id, "m")
    await journal.settle("ada", "m")
    assert await journal.orphans(limit=10) == [("ada", "n")]


async def test_what_was_said_before_a_memory_of_the_session_was_forgotten_is_in_no_summary(
    journal: SqlJournal, other: SqlJournal
) -> None:
    turns = [turn(f"t{number}", BOB, opened_at=100.0 + number) for number in range(6)]
    elsewhere = turn("u", Scope("bob", session="other"))
    await journal.record([*turns, elsewhere, turn("a", Scope("ada", session="s"))], [])
    await other.forget_past("bob", ["s", ""], now=102.0)
    await other.forget_past("bob", ["s"], now=101.0)
    assert [each.id for each in await journal.session_turns(turns[-1], limit=10)] == ["t3", "t4", "t5"]
    assert await journal.session_turns(turns[2], limit=10) == []
    assert len(await journal.session_turns(elsewhere, limit=10)) == 1
    assert len(await journal.session_turns(turn("a", Scope("ada", session="s")), limit=10)) == 1


async def test_that_something_was_forgotten_is_known_as_long_as_a_turn_of_the_session_is_there(
    journal: SqlJournal,
) -> None:
    last = turn("t1", BOB, opened_at=101.0)
    await journal.record([turn("t0", BOB, opened_at=100.0), last], [answered("t0"), answered("t1", at=102.0)])
    await journal.forget_past("bob", ["s"], now=100.5)
    await journal.prune(done_before=1e9)
    assert [each.id for each in await journal.session_turns(last, limit=10)] == ["t1"]
    while (batch := await journal.claim(EAGER, now=1000.0)) is not None:
        await journal.finish(batch.id, "stored", now=1000.0)
    await journal.prune(done_before=1e9)
    early = turn("t2", BOB, opened_at=50.0)
    assert await journal.session_turns(early, limit=10) == [early]
