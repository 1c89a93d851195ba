"""Contract of every Journal's marks: what was said before an erasure is turned away, what is said after it is not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from sqlalchemy import select

from semmem.backends.sql import tables
from semmem.backends.sql.database import WatchedClock
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Memory, MemoryType, Scope, Source, Turn, TurnEnding
from semmem.ports.memory_records import Uses
from semmem.ports.recording import TurnClosed
from tests.support.empty_journal import empty_journal
from tests.support.examples import examples
from tests.support.journal_samples import EAGER, HOSTILE, Place, answered, change, learnt, rows_of, turn
from tests.support.memories import memory

USER = Scope("ada")


def erased(scope: Scope = USER, at: float = 200.0) -> Forgetting:
    return Forgetting(scope, at)


async def opened(place: Place) -> SqlJournal:
    made = SqlJournal(place)
    await made.open()
    return made


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = await opened(place)
    yield made
    await made.close()


@pytest.fixture
async def other(journal: SqlJournal, place: Place) -> AsyncIterator[SqlJournal]:
    """Another process's view of the same file."""
    made = await opened(place)
    yield made
    await made.close()


async def erase(journal: SqlJournal, what: Forgetting, *turned_away: str) -> None:
    hold, _ = await journal.begin_erasure(what, now=what.at, turned_away=turned_away)
    await journal.finish_erasure(what, hold)


@pytest.mark.parametrize(("opened_at", "kept"), [(199.0, False), (200.0, False), (200.000001, True), (201.0, True)])
async def test_a_half_that_comes_late_is_turned_away_and_what_was_said_later_is_not(
    journal: SqlJournal, other: SqlJournal, opened_at: float, kept: bool
) -> None:
    await erase(journal, erased())
    await other.record([turn("t", opened_at=opened_at), turn("eve", Scope("eve"), opened_at=1.0)], [answered("t")])
    assert await learnt(journal) == ({"t": "Noted."} if kept else {}) | {"eve": None}
    assert (journal.turned_away, other.turned_away) == (0, 0 if kept else 1)


async def test_of_very_many_users_in_one_commit_only_the_erased_are_turned_away(journal: SqlJournal) -> None:
    users = [f"user {number}" for number in range(300)]
    for user in (users[0], users[128], users[299]):
        await erase(journal, erased(Scope(user)))
    await journal.record([turn(user, Scope(user), opened_at=199.0) for user in users], [])
    assert journal.turned_away == 3


@pytest.mark.parametrize("answer_first", [True, False])
async def test_the_answer_of_a_turn_that_was_turned_away_is_turned_away_as_well(
    journal: SqlJournal, answer_first: bool
) -> None:
    await erase(journal, erased())
    if answer_first:
        await journal.record([], [answered("t")])
    await journal.record([turn("t")], [])
    await journal.record([], [answered("t")])
    assert await journal.counts() == {"open": 0, "ready": 0, "leased": 0, "done": 0, "refused": 0, "lonely": 0}


async def test_an_answer_to_what_never_left_the_queue_is_turned_away(journal: SqlJournal) -> None:
    await erase(journal, erased(), "queued")
    await journal.record([], [answered("queued")])
    assert (await journal.counts())["lonely"] == 0


async def test_an_answer_that_comes_a_second_time_after_the_erasure_is_not_kept(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    await erase(journal, erased())
    await journal.record([], [answered("t", "User likes tea, as they said.")])
    assert (await journal.counts())["lonely"] == 0


async def test_the_same_words_said_again_after_the_erasure_are_learnt(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    await erase(journal, erased())
    await journal.record([turn("t", opened_at=300.0)], [answered("t", "Yes.", at=301.0)])
    await journal.record([turn("t", opened_at=150.0)], [])
    assert await learnt(journal) == {"t": "Yes."}


async def test_a_tool_loop_that_goes_on_brings_nothing_back(journal: SqlJournal) -> None:
    first = turn("t", opened_at=100.0)
    await journal.record([first], [])
    await erase(journal, erased())
    await journal.record([structs.replace(first, opened_at=300.0, resumed=True)], [])
    await journal.record([turn("never arrived", opened_at=301.0, resumed=True)], [])
    assert await learnt(journal) == {}
    assert journal.turned_away == 2


async def test_a_tool_loop_that_began_after_the_erasure_is_learnt_from(journal: SqlJournal) -> None:
    await erase(journal, erased())
    await journal.record([turn("t", opened_at=300.0), turn("t", opened_at=301.0, resumed=True)], [])
    await journal.record([turn("t", opened_at=302.0, resumed=True)], [answered("t", at=303.0)])
    assert await learnt(journal) == {"t": "Noted."}


NARROW = [{"project": "p"}, {"agent": "a"}, {"session": "s"}, {"project": "p", "agent": "a"}, {"project": ""}]


@pytest.mark.parametrize("narrow", NARROW)
async def test_a_mark_is_as_narrow_as_its_scope(journal: SqlJournal, narrow: dict[str, str]) -> None:
    outside = {"project": "q", "agent": "b", "session": "r"}
    await journal.record([turn("out", structs.replace(Scope("ada"), **outside))], [])
    await erase(journal, erased(structs.replace(Scope("ada"), **narrow)))
    late = [
        turn("in", structs.replace(Scope("ada"), **narrow)),
        turn("late out", structs.replace(Scope("ada"), **outside)),
    ]
    await journal.record([*late, turn("eve", structs.replace(Scope("eve"), **narrow))], [])
    assert set(await learnt(journal)) == {"out", "late out", "eve"}


async def test_a_mark_moves_on_and_never_back(journal: SqlJournal) -> None:
    assert await journal.forgotten_at("ada") is None
    await erase(journal, erased(Scope("ada", project="p"), at=500.0))
    for at in (200.0, 100.0, 300.0, 50.0):
        await erase(journal, erased(at=at))
    assert (await journal.forgotten_at("ada"), await journal.forgotten_at("eve")) == (500.0, None)
    await journal.record([turn("t", opened_at=300.0), turn("p", Scope("ada", project="p"), opened_at=400.0)], [])
    assert await learnt(journal) == {}


async def test_marks_go_when_nothing_can_be_under_way_any_more(journal: SqlJournal) -> None:
    await erase(journal, erased())
    await journal.prune_marks(forgotten_before=200.0)
    assert await journal.forgotten_at("ada") == 200.0
    await journal.prune_marks(forgotten_before=200.1)
    assert await journal.forgotten_at("ada") is None


async def test_hostile_names_are_marked_apart(journal: SqlJournal) -> None:
    for number, name in enumerate(HOSTILE):
        await erase(journal, erased(Scope(name), at=float(number)))
    assert [await journal.forgotten_at(name) for name in HOSTILE] == [float(n) for n in range(len(HOSTILE))]


async def test_a_batch_is_cut_and_what_was_said_after_waits_for_another(journal: SqlJournal) -> None:
    await journal.record([turn("old"), turn("new", opened_at=300.0)], [answered("old"), answered("new")])
    batch = await journal.claim(replace(EAGER, size=2), now=400.0)
    assert batch is not None
    assert len(batch.turns) == 2
    hold, counts = await journal.begin_erasure(erased(), now=400.0)
    assert (counts["turns"], counts["batches"]) == (1, 1)
    assert not await journal.allows(batch.id, "m")
    assert not await journal.may_stay(batch.id, memory("ada", "m", source=Source(time=100.0)))
    assert await journal.may_stay(batch.id, memory("ada", "m", source=Source(time=300.0)))
    assert await journal.may_stay(batch.id, memory("bob", "m", source=Source(time=100.0)))
    assert await journal.claim(EAGER, now=401.0) is None, "the erasure holds the user"
    await journal.finish_erasure(erased(), hold)
    assert set(await learnt(journal)) == {"new"}


async def test_another_projects_batch_goes_on_while_a_project_is_erased(journal: SqlJournal) -> None:
    elsewhere = Scope("ada", project="q", session="s")
    await journal.record([turn("q", elsewhere), turn("p", Scope("ada", project="p"))], [answered("q")])
    batch = await journal.claim(EAGER, now=400.0)
    assert batch is not None
    if batch.scope.project != "q":
        await journal.finish(batch.id, "done", now=400.0)
        batch = await journal.claim(EAGER, now=400.0)
        assert batch is not None
    await erase(journal, erased(Scope("ada", project="p"), at=500.0))
    assert await journal.allows(batch.id, "m")


async def test_a_hold_ends_with_the_erasure(journal: SqlJournal) -> None:
    held = await journal.hold("ada", now=100.0, lease_s=60.0)
    assert held is not None
    await erase(journal, erased(Scope("ada", project="p")))
    assert not await journal.allows(held, "m")


def remembered(said_at: float) -> Memory:
    source = Source(time=said_at)
    return Memory("m", 1, MemoryType.SEMANTIC, "User likes tea", "ada", source=source, created_at=said_at)


async def test_no_version_of_what_is_erased_is_kept_and_those_of_later_words_are(journal: SqlJournal) -> None:
    await journal.keep_version(remembered(100.0))
    await journal.keep_version(replace(remembered(300.0), version=2))
    await erase(journal, erased())
    await journal.keep_version(replace(remembered(150.0), version=3))
    assert [memory.version for memory in await journal.versions(USER, "m")] == [2]


async def test_a_version_that_cannot_be_read_is_erased_too(journal: SqlJournal) -> None:
    await journal.keep_version(remembered(100.0))
    await change(journal, "UPDATE versions SET body = '{'")
    _, counts = await journal.begin_erasure(erased(), now=200.0)
    assert counts["versions"] == 1


async def test_uses_that_are_written_late_are_not_kept(journal: SqlJournal) -> None:
    await erase(journal, erased())
    await journal.record_uses([("ada", "m", Uses(1, 150.0)), ("ada", "n", Uses(1, 250.0)), ("eve", "m", Uses(1, 1.0))])
    assert (set(await journal.uses("ada")), set(await journal.uses("eve"))) == ({"n"}, {"m"})


async def test_a_cut_among_erased_turns_leaves_no_name(journal: SqlJournal) -> None:
    await erase(journal, erased())
    await journal.cut_session("ada", "the session", before=150.0)
    assert names_in_clear(await rows_of(journal), "ada", "the session") == set()


def names_in_clear(rows: dict[str, list[tuple[object, ...]]], *names: str) -> set[str]:
    return {table for table, found in rows.items() for row in found for value in row for n in names if n in str(value)}


async def test_after_a_user_is_erased_no_table_names_them_or_their_sessions(journal: SqlJournal) -> None:
    scope = Scope("ada-lovelace", "project-x", "agent-x", "session-x")
    user = Scope("ada-lovelace")
    turns = [turn(f"t{n}", scope, opened_at=100.0 + n, request_id="request-x") for n in range(4)]
    await journal.record(turns, [TurnClosed("t0", TurnEnding.ANSWERED, 101.0, "for ada-lovelace", answer_id="a")])
    await journal.claim(EAGER, now=150.0)
    await journal.end_session("ada-lovelace", "session-x", now=150.0)
    await journal.cut_session("ada-lovelace", "session-x", before=150.0)
    await journal.forget_past("ada-lovelace", ["session-x"], now=150.0)
    await journal.keep_version(replace(remembered(100.0), user="ada-lovelace", session="session-x"))
    await journal.record_uses([("ada-lovelace", "m", Uses(1, 100.0))])
    await journal.forget_memories(user, ["n"])
    before = names_in_clear(await rows_of(journal), "ada-lovelace", "session-x")
    assert before >= {"turns", "batches", "versions", "users", "accesses", "erasures", "session_pasts"}
    await erase(journal, erased(user))
    found = await rows_of(journal)
    assert names_in_clear(found, "ada-lovelace", "project-x", "agent-x", "session-x", "request-x") == set()
    assert len(found["forgotten"]) == 1


async def test_an_erasure_is_remembered_until_it_is_finished(journal: SqlJournal, other: SqlJournal) -> None:
    whole, part = erased(), Forgetting(Scope("eve", project=""), 100.0, (MemoryType.EPISODIC,), "m")
    hold, _ = await journal.begin_erasure(whole, now=200.0)
    await journal.begin_erasure(part, now=200.0)
    assert await other.pending_erasures(limit=10) == [part, whole]
    assert await other.pending_erasures(limit=1) == [part]
    again = replace(whole, at=900.0)
    await other.begin_erasure(again, now=900.0)
    await journal.finish_erasure(whole, hold)
    assert await other.pending_erasures(limit=10) == [part, again], "the later one is not finished by the earlier"
    await other.finish_erasure(again, "")
    await other.finish_erasure(part, "")
    assert await journal.pending_erasures(limit=10) == []


@given(
    marks=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([None, "p", "q"]), st.sampled_from([None, "s"]))),
    said=st.tuples(st.integers(0, 9), st.sampled_from([None, "p", "q"]), st.sampled_from([None, "s", "r"])),
)
@settings(max_examples=examples(40), deadline=None)
async def test_a_turn_is_turned_away_exactly_when_an_erasure_covers_it(
    tmp_path_factory: pytest.TempPathFactory,
    marks: list[tuple[int, str | None, str | None]],
    said: tuple[int, str | None, str | None],
) -> None:
    journal = await opened(empty_journal(tmp_path_factory.mktemp("marks") / "journal.db"))
    at, project, session = said
    half = Turn("t", Scope("ada", project, None, session), 0, "I like tea", opened_at=float(at))
    for when, of_project, of_session in marks:
        await erase(journal, erased(Scope("ada", of_project, None, of_session), at=float(when)))
    await journal.record([half], [])
    covered = any(when >= at and p in (None, project) and s in (None, session) for when, p, s in marks)
    assert (await journal.counts())["open"] == (0 if covered else 1)
    await journal.close()


# --- a clock that was ahead ------------------------------------------------------------------------------------------

DAY_S = 86_400.0


class Walls:
    """The clocks of a machine: what the wall says, and what nobody sets."""

    def __init__(self) -> None:
        self.wall, self.passed_s = time.time(), 1000.0
        self.clock = WatchedClock(lambda: self.wall, lambda: self.passed_s)

    def wait(self, seconds: float) -> float:
        self.wall, self.passed_s = self.wall + seconds, self.passed_s + seconds
        return self.wall


@pytest.fixture
def walls() -> Walls:
    return Walls()


@pytest.fixture
async def watched(place: Place, walls: Walls) -> AsyncIterator[SqlJournal]:
    """A journal of which the process is on that machine."""
    made = SqlJournal(place, clock=walls.clock)
    await made.open()
    yield made
    await made.close()


async def said(journal: SqlJournal, *ids: str, at: float) -> None:
    await journal.record([turn(each, opened_at=at) for each in ids], [])


async def waiting(journal: SqlJournal) -> list[str]:
    turns = await journal._database.read(
        lambda conn: conn.execute(select(tables.turns.c.id).where(tables.WAITING)).all()
    )
    return sorted(row.id for row in turns)


async def test_what_is_said_after_a_clock_that_was_ahead_is_set_right_is_kept(
    watched: SqlJournal, walls: Walls
) -> None:
    early = walls.wall
    walls.wall += DAY_S
    late = walls.wait(1.0)
    await erase(watched, erased(at=walls.wait(1.0)))
    walls.wall -= DAY_S
    await said(watched, "after", at=walls.wait(5.0))
    await said(watched, "before", at=early)
    await said(watched, "before, by the clock that was ahead", at=late)
    assert await waiting(watched) == ["after"]
    assert watched.turned_away == 2


async def test_the_same_words_are_said_again_after_the_clock_is_set_right(watched: SqlJournal, walls: Walls) -> None:
    walls.wall += DAY_S
    await said(watched, "words", at=walls.wait(1.0))
    await erase(watched, erased(at=walls.wait(1.0)))
    walls.wall -= DAY_S
    await said(watched, "words", at=walls.wait(1.0))
    assert await waiting(watched) == ["words"]


async def test_the_next_process_keeps_what_is_said_and_turns_away_what_was(place: Place, walls: Walls) -> None:
    first = SqlJournal(place)
    await first.open()
    await erase(first, erased(at=walls.wall + DAY_S))
    await first.close()
    second = SqlJournal(place, clock=walls.clock)
    await second.open()
    walls.wall = time.time()  # as the server's
    await said(second, "after", at=walls.wait(0.1))
    await said(second, "before", at=walls.wall - 5.0)
    await said(second, "before, by the clock that was ahead", at=walls.wall + DAY_S / 2)
    assert await waiting(second) == ["after"]
    await second.close()


async def test_an_erasure_after_the_clock_is_set_right_counts_as_any(watched: SqlJournal, walls: Walls) -> None:
    walls.wall += DAY_S
    first = walls.wait(1.0)
    await erase(watched, erased(at=first))
    walls.wall -= DAY_S
    between = walls.wait(5.0)
    await said(watched, "between", at=between)
    hold, _ = await watched.begin_erasure(
        erased(at=first + 0.001), now=walls.wait(1.0)
    )  # after what this process knows
    await watched.finish_erasure(erased(at=first + 0.001), hold)
    await said(watched, "late", at=between)
    await said(watched, "after", at=walls.wait(1.0))
    assert await waiting(watched) == ["after"]


async def test_a_replica_whose_clock_is_right_goes_on_while_the_one_that_erased_is_ahead(
    watched: SqlJournal, other: SqlJournal, walls: Walls
) -> None:
    early = walls.wall
    what = erased(at=walls.wait(1.0) + DAY_S)
    hold, _ = await other.begin_erasure(what, now=what.at)
    await watched.obey(what, [])
    await other.finish_erasure(what, hold)
    await said(watched, "before", at=early)
    walls.wall = time.time()  # as the server's
    await said(watched, "after", at=walls.wait(1.0))
    assert await waiting(watched) == ["after"]


async def test_an_older_copy_of_what_was_dated_ahead_stays_erased(watched: SqlJournal, walls: Walls) -> None:
    at = walls.wall + DAY_S
    copied = memory("ada", source=Source("user", "s", "t", time=at - 10.0), created_at=at - 10.0)
    await erase(watched, erased(at=at))
    walls.wall -= DAY_S
    await watched.record([], [answered("whatever")])
    assert await watched.erased_among([copied]) == {copied.id}
    assert [mark.at for mark in await watched.marks()] == [at]


async def test_a_clock_that_goes_evenly_lowers_no_mark(watched: SqlJournal, walls: Walls) -> None:
    at = walls.wait(100.0)
    await erase(watched, erased(at=at + 30.0))  # a replica's clock that is a little ahead
    walls.wait(10.0)
    await said(watched, "t", at=at + 20.0)
    assert await waiting(watched) == []


async def test_of_a_user_who_was_erased_words_that_came_before_and_are_dated_ahead_go_too(
    watched: SqlJournal, walls: Walls
) -> None:
    await said(watched, "ahead", at=walls.wall + DAY_S)
    hold, counts = await watched.begin_erasure(erased(at=walls.wall), now=walls.wall)
    await watched.finish_erasure(erased(at=walls.wall), hold)
    assert counts["turns"] == 1
    assert await waiting(watched) == []
