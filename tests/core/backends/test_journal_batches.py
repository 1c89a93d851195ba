"""What every Journal must do with batches: when a session is due, what a batch holds, who holds it, how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Fact, MemoryType, Scope, Standing, Turn, TurnEnding
from semmem.ports.learning import Batch, BatchRules, WaitingSession
from semmem.ports.recording import TurnClosed
from tests.support.journal_samples import (
    ADA,
    EAGER,
    HOSTILE,
    Place,
    answered,
    erase,
    learn_all,
    lost,
    refused,
    rows_of,
    turn,
)

RULES = BatchRules(size=3, context_turns=2, idle_s=50.0, answer_wait_s=20.0, lease_s=10.0)
ROOMY = replace(RULES, size=9)
TEA = Fact(
    MemoryType.SEMANTIC,
    "likes tea",
    "t0",
    importance=0.75,
    occurred_at=12.5,
    standing=Standing.STYLE,
    expires_at=99.5,
    topic="food",
)
MILK = Fact(MemoryType.PROCEDURAL, "milk first\ud800", "t1")


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def add(
    journal: SqlJournal,
    number: int,
    scope: Scope = ADA,
    *,
    start: float = 100.0,
    name: str = "t",
    close: Callable[..., TurnClosed] = answered,
) -> None:
    """``number`` closed turns, a second apart."""
    opened = [turn(f"{name}{n}", scope, opened_at=start + n) for n in range(number)]
    await journal.record(opened, [close(each.id, at=each.opened_at + 0.5) for each in opened])


async def claim(journal: SqlJournal, *, now: float, rules: BatchRules = RULES) -> Batch:
    batch = await journal.claim(rules, now=now)
    assert batch is not None
    return batch


def ids(turns: tuple[Turn, ...]) -> list[str]:
    return [each.id for each in turns]


# --- when a session is due -------------------------------------------------------------------------------------------


async def test_enough_ready_turns_make_a_session_due(journal: SqlJournal) -> None:
    await add(journal, 2)
    assert await journal.claim(RULES, now=103.0) is None
    await add(journal, 3)
    batch = await claim(journal, now=103.0)
    assert (ids(batch.turns), batch.trigger, batch.attempt) == (["t0", "t1", "t2"], "size", 1)
    assert (batch.scope, batch.facts, batch.applied) == (ADA, None, 0)


async def test_turns_of_two_sessions_do_not_add_up(journal: SqlJournal) -> None:
    await add(journal, 2)
    await add(journal, 2, Scope("ada", session="s2"), name="u")
    assert await journal.claim(RULES, now=110.0) is None


async def test_a_turn_is_ready_when_its_answer_was_waited_for_long_enough(journal: SqlJournal) -> None:
    await journal.record([turn(f"t{n}", opened_at=100.0) for n in range(3)], [])
    assert await journal.claim(RULES, now=119.0) is None
    batch = await claim(journal, now=120.0)
    assert [each.answer for each in batch.turns] == [None] * 3


async def test_an_open_turn_is_left_for_the_next_batch(journal: SqlJournal) -> None:
    await add(journal, 3)
    await journal.record([turn("asking", opened_at=103.0)], [])
    assert ids((await claim(journal, now=104.0)).turns) == ["t0", "t1", "t2"]


async def test_an_idle_session_is_due(journal: SqlJournal) -> None:
    await add(journal, 1)
    assert await journal.claim(RULES, now=150.0) is None
    batch = await claim(journal, now=150.5)
    assert (ids(batch.turns), batch.trigger) == (["t0"], "idle")


async def test_a_late_answer_and_a_retry_are_activity(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t", at=140.0)])
    assert await journal.claim(RULES, now=189.0) is None
    await journal.record([turn("t", opened_at=180.0)], [])
    assert await journal.claim(RULES, now=229.0) is None
    assert (await claim(journal, now=230.0)).trigger == "idle"


async def test_a_session_is_not_idle_while_an_answer_is_awaited(journal: SqlJournal) -> None:
    patient = BatchRules(size=3, idle_s=50.0, answer_wait_s=500.0)
    await journal.record([turn("a"), turn("b", opened_at=101.0)], [answered("a")])
    assert await journal.claim(patient, now=500.0) is None
    await journal.record([], [lost("b", at=102.0)])
    batch = await claim(journal, now=500.0, rules=patient)
    assert [(each.id, each.answer) for each in batch.turns] == [("a", "Noted."), ("b", None)]


async def test_the_session_that_waits_longest_goes_first(journal: SqlJournal) -> None:
    for start, user in ((300.0, "c"), (100.0, "a"), (200.0, "b")):
        await add(journal, 2, Scope(user, session="s"), start=start, name=user)
    assert [batch.scope.user for batch in await learn_all(journal)] == ["a", "b", "c"]


async def test_a_due_session_behind_many_that_are_not_due_is_found(journal: SqlJournal) -> None:
    early = [turn(f"e{n}", Scope(f"user{n}", session="s"), opened_at=99.0) for n in range(700)]
    await journal.record(early, [])
    await add(journal, 3)
    assert (await claim(journal, now=104.0)).scope.user == "ada"


async def test_what_was_said_before_a_cut_is_a_batch_of_its_own_and_the_rest_waits(journal: SqlJournal) -> None:
    await add(journal, 2)
    await add(journal, 1, start=104.0, name="u")
    assert await journal.claim(ROOMY, now=105.0) is None
    await journal.cut_session("ada", "s1", before=104.0)
    batch = await claim(journal, now=105.0, rules=ROOMY)
    assert (ids(batch.turns), batch.trigger) == (["t0", "t1"], "drift")
    await journal.finish(batch.id, "stored", now=106.0)
    assert await journal.claim(ROOMY, now=107.0) is None
    assert ids((await claim(journal, now=200.0, rules=ROOMY)).turns) == ["u0"]


async def test_a_cut_waits_for_answers_and_takes_turns_that_come_late(journal: SqlJournal) -> None:
    await journal.record([turn("t0", opened_at=100.0)], [])
    await journal.cut_session("ada", "s1", before=104.0)
    assert await journal.claim(ROOMY, now=105.0) is None
    await journal.record([turn("t1", opened_at=101.0)], [answered("t0"), answered("t1")])
    assert ids((await claim(journal, now=105.0, rules=ROOMY)).turns) == ["t0", "t1"]


async def test_cuts_at_two_places_are_one_at_the_later(journal: SqlJournal) -> None:
    await add(journal, 4)
    for before in (102.0, 103.0, 101.0, 103.0):
        await journal.cut_session("ada", "s1", before=before)
    assert ids((await claim(journal, now=105.0, rules=ROOMY)).turns) == ["t0", "t1", "t2"]


async def test_a_cut_of_one_session_touches_no_other(journal: SqlJournal) -> None:
    await add(journal, 2)
    await journal.cut_session("ada", "s2", before=200.0)
    await journal.cut_session("bob", "s1", before=200.0)
    assert await journal.claim(ROOMY, now=105.0) is None


async def test_an_end_says_more_than_a_cut_and_a_cut_more_than_a_size(journal: SqlJournal) -> None:
    await add(journal, 3)
    await journal.cut_session("ada", "s1", before=102.0)
    batch = await claim(journal, now=103.0)
    assert (ids(batch.turns), batch.trigger) == (["t0", "t1"], "drift")
    await journal.finish(batch.id, "stored", now=103.0)
    await add(journal, 3, start=110.0, name="u")
    await journal.cut_session("ada", "s1", before=112.0)
    await journal.end_session("ada", "s1", now=113.0)
    assert (await claim(journal, now=113.0)).trigger == "end"


async def test_sessions_that_wait_are_listed_newest_first_until_they_are_cut_or_learnt_from(
    journal: SqlJournal,
) -> None:
    await add(journal, 3)
    await add(journal, 2, Scope("ada", session="s2"), start=200.0, name="u")
    await add(journal, 2, Scope("bob", session="s1"), start=300.0, name="b")
    listed = await journal.waiting_sessions(turns_min=2, opened_after=0.0)
    assert listed == [
        WaitingSession("bob", "s1", 301.0),
        WaitingSession("ada", "s2", 201.0),
        WaitingSession("ada", "s1", 102.0),
    ]
    assert await journal.waiting_sessions(turns_min=3, opened_after=0.0) == listed[2:]
    assert await journal.waiting_sessions(turns_min=2, opened_after=201.0) == listed[:1]
    await journal.cut_session("ada", "s1", before=101.0)
    assert [each.id for each in await journal.waiting_turns("ada", "s1")] == ["t1", "t2"]
    await journal.cut_session("ada", "s1", before=102.0)
    assert [each.id for each in await journal.waiting_turns("ada", "s1")] == ["t2"]
    assert await journal.waiting_sessions(turns_min=2, opened_after=0.0) == listed[:2]
    await learn_all(journal)
    assert await journal.waiting_sessions(turns_min=1, opened_after=0.0) == []
    assert await journal.waiting_turns("bob", "s1") == []


async def test_of_a_forgotten_session_no_cut_and_no_end_is_left(journal: SqlJournal) -> None:
    for session in ("s1", "s2"):
        await journal.cut_session("ada", session, before=200.0)
        await journal.end_session("ada", session, now=200.0)
    await erase(journal, Scope("ada", session="s1"))
    left = await rows_of(journal)
    assert [("ada", "s2", 200.0)] == left["session_drifts"] == left["session_ends"]


async def test_a_cut_goes_when_nothing_waits_any_more(journal: SqlJournal) -> None:
    await journal.cut_session("ada", "s1", before=200.0)
    await journal.prune(done_before=300.0)
    await add(journal, 2)
    assert await journal.claim(ROOMY, now=105.0) is None


# --- the end of a session --------------------------------------------------------------------------------------------


async def test_an_ended_session_is_due_at_once(journal: SqlJournal) -> None:
    await add(journal, 1)
    assert await journal.end_session("ada", "s1", now=101.0) == 1
    batch = await claim(journal, now=101.0)
    assert (ids(batch.turns), batch.trigger) == (["t0"], "end")


async def test_the_end_does_not_wait_for_an_answer(journal: SqlJournal) -> None:
    await journal.record([turn("asking")], [])
    await journal.end_session("ada", "s1", now=101.0)
    assert ids((await claim(journal, now=101.0)).turns) == ["asking"]


async def test_ending_counts_only_what_waits_in_that_session(journal: SqlJournal) -> None:
    await add(journal, 2)
    await add(journal, 1, Scope("ada", session="s2"), name="u")
    await add(journal, 1, Scope("eve", session="s1"), name="v")
    await journal.record([turn("no")], [refused("no")])
    assert await journal.end_session("ada", "s1", now=200.0) == 2
    assert await journal.end_session("ada", "unknown", now=200.0) == 0
    batch = await claim(journal, now=110.0)
    await journal.finish(batch.id, "done", now=110.0)
    assert await journal.end_session("ada", "s1", now=201.0) == 0


async def test_turns_after_the_end_are_not_ended(journal: SqlJournal) -> None:
    await add(journal, 1)
    await add(journal, 2, start=106.0, name="later")
    assert await journal.end_session("ada", "s1", now=105.0) == 1
    batch = await claim(journal, now=110.0)
    assert ids(batch.turns) == ["t0"]
    await journal.finish(batch.id, "done", now=110.0)
    assert await journal.claim(RULES, now=110.0) is None


async def test_a_turn_that_arrives_late_is_still_ended(journal: SqlJournal) -> None:
    await journal.end_session("ada", "s1", now=105.0)
    await journal.end_session("ada", "s1", now=50.0)
    await add(journal, 1)
    assert (await claim(journal, now=105.0)).trigger == "end"


async def test_an_old_end_is_kept_until_its_turns_are_learnt(journal: SqlJournal) -> None:
    await add(journal, 1)
    await journal.end_session("ada", "s1", now=105.0)
    await journal.prune(done_before=1e6)
    batch = await claim(journal, now=105.0)
    await journal.finish(batch.id, "done", now=105.0)
    await journal.prune(done_before=1e6)
    await add(journal, 1, name="u")
    assert await journal.claim(RULES, now=105.0) is None


# --- what a batch holds ----------------------------------------------------------------------------------------------


async def test_a_batch_holds_at_most_twice_the_size_oldest_first(journal: SqlJournal) -> None:
    await journal.record([Turn(f"t{n}", ADA, 9 - n, "hello", 100.0 - n // 4) for n in range(8)], [])
    batch = await claim(journal, now=200.0)
    assert ids(batch.turns) == ["t7", "t6", "t5", "t4", "t3", "t2"]
    await journal.finish(batch.id, "done", now=200.0)
    assert ids((await claim(journal, now=200.0)).turns) == ["t1", "t0"]


async def test_a_batch_holds_turns_of_one_project_and_agent(journal: SqlJournal) -> None:
    mine, other = Scope("ada", "p", "a", "s1"), Scope("ada", "p", "b", "s1")
    for n, scope in enumerate([mine, other, mine, ADA]):
        await add(journal, 1, scope, start=100.0 + n, name=f"{n}-")
    held = [(batch.scope, ids(batch.turns)) for batch in await learn_all(journal)]
    assert held == [(mine, ["0-0", "2-0"]), (other, ["1-0"]), (ADA, ["3-0"])]


async def test_the_turns_before_a_batch_are_its_context(journal: SqlJournal) -> None:
    await add(journal, 3)
    await add(journal, 3, Scope("ada", session="s2"), name="other")
    await learn_all(journal)
    await journal.record([turn("no", opened_at=110.0)], [refused("no", at=110.0)])
    await add(journal, 3, start=120.0, name="u")
    batch = await claim(journal, now=130.0)
    assert (ids(batch.turns), ids(batch.context)) == (["u0", "u1", "u2"], ["t1", "t2"])
    assert batch.context[0].answer == "Noted."


async def test_the_first_batch_of_a_session_has_no_context(journal: SqlJournal) -> None:
    await add(journal, 3)
    assert (await claim(journal, now=110.0)).context == ()


async def test_a_refused_turn_is_in_no_batch(journal: SqlJournal) -> None:
    await add(journal, 3, close=lost)
    await journal.record([], [refused("t1", at=102.0)])
    assert await journal.claim(RULES, now=104.0) is None
    assert ids((await claim(journal, now=500.0)).turns) == ["t0", "t2"]


async def test_a_turn_refused_later_leaves_its_batch_with_its_facts(journal: SqlJournal) -> None:
    await add(journal, 3, close=lost)
    batch = await claim(journal, now=110.0)
    await journal.save_facts(batch.id, [MILK, TEA, MILK, TEA])
    await journal.mark_applied(batch.id, 3)
    await journal.record([], [refused("t1", at=111.0)])
    again = await claim(journal, now=120.0)
    assert (ids(again.turns), again.facts, again.applied) == (["t0", "t2"], (TEA, TEA), 1)
    await journal.mark_applied(batch.id, 2)
    assert (await claim(journal, now=130.0)).applied == 2


async def test_a_batch_of_which_nothing_is_left_ends(journal: SqlJournal) -> None:
    await add(journal, 3, close=lost)
    batch = await claim(journal, now=110.0)
    await journal.record([], [refused(each.id, at=111.0) for each in batch.turns])
    await add(journal, 3, start=105.0, name="u")
    assert ids((await claim(journal, now=120.0)).turns) == ["u0", "u1", "u2"]


async def test_an_answer_that_comes_during_a_lease_is_there_on_the_next_try(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [])
    assert (await claim(journal, now=500.0)).turns[0].answer is None
    await journal.record([], [answered("t", "At last.", at=501.0)])
    assert (await claim(journal, now=510.0)).turns[0].answer == "At last."


# --- who holds it ----------------------------------------------------------------------------------------------------


async def test_one_users_batches_never_overlap(journal: SqlJournal) -> None:
    await add(journal, 3)
    await add(journal, 3, Scope("ada", session="s2"), name="u")
    await add(journal, 3, Scope("eve", session="s1"), name="v")
    claimed = [await claim(journal, now=110.0), await claim(journal, now=110.0)]
    by_user = {batch.scope.user: batch for batch in claimed}  # a server may pass over whom somebody is still at
    assert by_user.keys() == {"ada", "eve"}
    assert await journal.claim(RULES, now=110.0) is None
    await journal.finish(by_user["ada"].id, "done", now=111.0)
    assert (await claim(journal, now=111.0)).scope.session == "s2"


async def test_an_expired_lease_makes_the_same_batch_claimable(journal: SqlJournal) -> None:
    await add(journal, 3)
    await add(journal, 3, Scope("ada", session="s2"), start=50.0, name="u")
    batch = await claim(journal, now=110.0)
    await journal.save_facts(batch.id, [TEA, MILK])
    await journal.mark_applied(batch.id, 1)
    assert await journal.claim(RULES, now=119.9) is None
    again = await claim(journal, now=120.0)
    assert (again.id, again.attempt, again.facts, again.applied) == (batch.id, 2, (TEA, MILK), 1)
    assert (again.turns, again.context, again.trigger) == (batch.turns, batch.context, batch.trigger)
    assert await journal.claim(RULES, now=129.9) is None
    assert (await claim(journal, now=130.0)).attempt == 3


async def test_a_postponed_batch_waits_and_its_user_with_it(journal: SqlJournal) -> None:
    await add(journal, 3)
    await add(journal, 3, Scope("ada", session="s2"), name="u")
    batch = await claim(journal, now=110.0)
    await journal.postpone(batch.id, until=500.0)
    assert await journal.claim(RULES, now=499.0) is None
    again = await claim(journal, now=500.0)
    assert (again.id, again.attempt) == (batch.id, 2)


async def test_postponing_to_now_gives_the_lease_back(journal: SqlJournal) -> None:
    await add(journal, 3)
    batch = await claim(journal, now=110.0)
    await journal.postpone(batch.id, until=110.0)
    assert (await claim(journal, now=110.0)).id == batch.id


# --- how it ends -----------------------------------------------------------------------------------------------------


async def test_the_first_facts_that_are_saved_stay(journal: SqlJournal) -> None:
    await add(journal, 3)
    batch = await claim(journal, now=110.0)
    await journal.save_facts(batch.id, [])
    await journal.save_facts(batch.id, [TEA])
    assert (await claim(journal, now=120.0)).facts == ()


async def test_progress_only_rises(journal: SqlJournal) -> None:
    await add(journal, 3)
    batch = await claim(journal, now=110.0)
    await journal.save_facts(batch.id, [TEA, MILK])
    for count in (2, 1, 0):
        await journal.mark_applied(batch.id, count)
    assert (await claim(journal, now=120.0)).applied == 2


async def test_a_finished_batch_is_never_claimed_again(journal: SqlJournal) -> None:
    await add(journal, 3)
    batch = await claim(journal, now=110.0)
    await journal.finish(batch.id, "failed", now=111.0)
    await journal.finish(batch.id, "done", now=999.0)
    await journal.postpone(batch.id, until=0.0)
    await journal.save_facts(batch.id, [TEA])
    await journal.mark_applied(batch.id, 1)
    assert await journal.claim(RULES, now=9000.0) is None
    assert (await journal.counts())["done"] == 3
    assert await journal.prune(done_before=112.0) == 3


async def test_a_finished_batch_that_was_refused_meanwhile_is_done(journal: SqlJournal) -> None:
    await add(journal, 3, close=lost)
    batch = await claim(journal, now=110.0)
    await journal.record([], [refused("t0", at=111.0)])
    await journal.finish(batch.id, "done", now=112.0)
    assert await journal.claim(EAGER, now=9000.0) is None
    assert (await journal.counts())["refused"] == 1


async def test_a_turn_refused_in_a_batch_and_answered_later_is_learnt_then(journal: SqlJournal) -> None:
    await add(journal, 3, close=lost)
    batch = await claim(journal, now=110.0)
    await journal.record([], [refused("t0", at=111.0)])
    await journal.finish(batch.id, "done", now=112.0)
    await journal.record([], [answered("t0", at=120.0)])
    assert [ids(each.turns) for each in await learn_all(journal)] == [["t0"]]


async def test_an_unknown_batch_is_nobodys(journal: SqlJournal) -> None:
    await add(journal, 3)
    await journal.save_facts("none", [TEA])
    await journal.mark_applied("none", 1)
    await journal.postpone("none", until=0.0)
    await journal.finish("none", "done", now=1.0)
    assert len((await claim(journal, now=110.0)).turns) == 3


async def test_a_retry_of_a_turn_in_a_batch_changes_nothing(journal: SqlJournal) -> None:
    await add(journal, 3)
    batch = await claim(journal, now=110.0)
    moved = turn("t0", Scope("ada", "p", "a", "s1"), opened_at=1.0)
    await journal.record([moved], [TurnClosed("t0", TurnEnding.ANSWERED, 200.0, answer="again")])
    assert (await claim(journal, now=120.0)).turns == batch.turns


async def test_turns_with_hostile_names_are_learnt_from_like_any(journal: SqlJournal) -> None:
    for number, name in enumerate(HOSTILE):
        await add(journal, 2, Scope(name, session=name), start=100.0 + number, name=name)
    batches = [await claim(journal, now=1000.0) for _ in HOSTILE]
    assert sorted(ids(batch.turns) for batch in batches) == sorted([f"{name}0", f"{name}1"] for name in HOSTILE)
    for batch in batches:
        assert ids(tuple(await journal.session_turns(batch.turns[-1], limit=9))) == ids(batch.turns)


@pytest.mark.parametrize(("turns", "triggers"), [(3, ["idle"]), (6, ["idle"]), (7, ["size", "idle"])])
async def test_a_session_that_fell_silent_while_its_turns_waited_ends_with_its_last_batch(
    journal: SqlJournal, turns: int, triggers: list[str]
) -> None:
    await add(journal, turns)
    found = []
    while (batch := await journal.claim(RULES, now=1000.0)) is not None:
        found.append(batch.trigger)
        await journal.finish(batch.id, "done", now=1000.0)
    assert found == triggers
