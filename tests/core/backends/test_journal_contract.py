"""What every Journal must do with turns: take them in any order, look sessions up, erase, prune, count.

Batches have their own file, test_journal_batches.py.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from semmem.backends.sql.database import JournalLimits
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.errors import JournalError
from semmem.ports.learning import BatchRules
from semmem.ports.recording import TurnClosed
from tests.support.empty_journal import empty_journal
from tests.support.examples import examples
from tests.support.journal_samples import (
    EAGER,
    HOSTILE,
    Place,
    answered,
    erase,
    learn_all,
    learnt,
    lost,
    refused,
    turn,
)


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


# --- record ----------------------------------------------------------------------------------------------------------


async def test_a_turn_comes_back_as_it_was_recorded(journal: SqlJournal) -> None:
    scope = Scope("ada", project="p", agent="a", session="s1")
    opened = Turn(
        id="t", scope=scope, ordinal=7, user_text="I like tea", opened_at=100.25, request_id="r1", trace="00-a-b-01"
    )
    await journal.record([opened], [answered("t", "Noted.")])
    [batch] = await learn_all(journal)
    [found] = batch.turns
    assert batch.scope == scope
    assert found == Turn("t", scope, 7, "I like tea", 100.25, "r1", "Noted.", trace="00-a-b-01")


@pytest.mark.parametrize("order", ["open then close", "close then open", "together"])
async def test_the_halves_of_a_turn_join_in_any_order(journal: SqlJournal, order: str) -> None:
    if order == "close then open":
        await journal.record([], [answered("t")])
        assert await learnt(journal) == {}
        await journal.record([turn("t")], [])
    elif order == "open then close":
        await journal.record([turn("t")], [])
        await journal.record([], [answered("t")])
    else:
        await journal.record([turn("t")], [answered("t")])
    assert await learnt(journal) == {"t": "Noted."}


async def test_the_same_halves_twice_change_nothing(journal: SqlJournal) -> None:
    for _ in range(2):
        await journal.record([turn("t"), turn("t")], [answered("t"), answered("t")])
        assert (await journal.counts())["ready"] == 1
    assert await learnt(journal) == {"t": "Noted."}


async def test_a_turn_that_was_learnt_from_is_not_learnt_from_again(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    await learn_all(journal)
    await journal.record([turn("t", opened_at=500.0)], [answered("t", at=501.0)])
    assert await learnt(journal) == {}


async def test_the_first_opened_half_wins(journal: SqlJournal) -> None:
    await journal.record([turn("t", opened_at=100.0, request_id="first")], [])
    await journal.record([turn("t", opened_at=150.0, request_id="retry")], [answered("t")])
    [batch] = await learn_all(journal)
    assert (batch.turns[0].opened_at, batch.turns[0].request_id) == (100.0, "first")


async def test_nobody_takes_a_turn_over_by_its_id(journal: SqlJournal) -> None:
    await journal.record([turn("t", opened_at=100.0)], [answered("t")])
    await journal.record([turn("t", Scope("eve", session="s1"), opened_at=50.0, text="I like lies")], [])
    [batch] = await learn_all(journal)
    assert (batch.scope.user, batch.turns[0].user_text) == ("ada", "I like tea")


@pytest.mark.parametrize(
    ("closes", "answer"),
    [
        ([answered("t", "one", at=101), answered("t", "two", at=102)], "one"),
        ([lost("t", at=101), answered("t", "one", at=102)], "one"),
        ([answered("t", "one", at=101), lost("t", at=100)], "one"),
        ([lost("t")], None),
    ],
)
async def test_the_first_answered_close_wins(journal: SqlJournal, closes: list[TurnClosed], answer: str | None) -> None:
    await journal.record([turn("t")], [])
    for close in closes:
        await journal.record([], [close])
    assert await learnt(journal) == {"t": answer}


@pytest.mark.parametrize("when", ["first", "last", "before it was opened"])
@pytest.mark.parametrize(
    ("closes", "expected"),
    [
        ([lost("t", at=90.0), refused("t")], {}),
        ([refused("t", at=90.0), lost("t")], {}),
        ([refused("t", at=90.0), answered("t")], {"t": "Noted."}),
        ([answered("t", at=90.0), refused("t")], {"t": "Noted."}),
    ],
)
async def test_a_refusal_wins_until_the_same_turn_is_answered(
    journal: SqlJournal, when: str, closes: list[TurnClosed], expected: dict[str, str | None]
) -> None:
    if when == "before it was opened":
        await journal.record([], closes)
    await journal.record([turn("t")], [])
    for close in reversed(closes) if when == "first" else closes:
        await journal.record([], [close])
    assert await learnt(journal) == expected


async def test_an_answer_without_status_answered_is_not_kept(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [TurnClosed("t", TurnEnding.ANSWER_LOST, 101.0, answer="half of an ans")])
    assert await learnt(journal) == {"t": None}


async def test_nothing_to_record_is_fine(journal: SqlJournal) -> None:
    await journal.record([], [])
    assert sum((await journal.counts()).values()) == 0


@pytest.mark.parametrize("text", ["\ud83d", "a\x00b", "c:\\0041", "猫😀", "", "x" * 200_000])
async def test_any_text_comes_back(journal: SqlJournal, text: str) -> None:
    await journal.record([turn("t", text=text)], [answered("t", text)])
    [batch] = await learn_all(journal)
    assert (batch.turns[0].user_text, batch.turns[0].answer) == (text, text)


HALVES: list[Turn | TurnClosed] = [
    *(turn(t, opened_at=at, request_id=r) for t in "xy" for at in (100.0, 103.0) for r in ("r1", "r2")),
    *(answered(t, answer, at=at) for t in "xy" for answer in ("one", "two") for at in (99.0, 102.0)),
    *(lost(t, at=at) for t in "xy" for at in (98.0, 104.0)),
    *(refused(t, at=at) for t in "xy" for at in (98.0, 105.0)),
]


@given(st.data())
@settings(max_examples=examples(40), deadline=None)
def test_any_order_repetition_and_grouping_of_halves_ends_in_the_same_rows(data: st.DataObject) -> None:
    halves = data.draw(st.lists(st.sampled_from(HALVES), max_size=8))
    again = data.draw(st.permutations(halves + data.draw(st.lists(st.sampled_from(halves)) if halves else st.just([]))))
    groups = data.draw(st.integers(1, 4))
    assert rows_after(halves, 8) == rows_after(again, groups)


def rows_after(halves: list[Turn | TurnClosed], group: int) -> list[tuple[Any, ...]]:
    async def run(path: Path) -> None:
        journal = SqlJournal(empty_journal(path))
        await journal.open()
        for start in range(0, len(halves), group):
            part = halves[start : start + group]
            opened = [half for half in part if isinstance(half, Turn)]
            await journal.record(opened, [half for half in part if isinstance(half, TurnClosed)])
        await journal.close()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        asyncio.run(run(path))
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT * FROM turns ORDER BY id").fetchall()
        connection.close()
    return rows


# --- sessions --------------------------------------------------------------------------------------------------------


async def test_a_derived_session_is_found_by_its_key(journal: SqlJournal) -> None:
    await journal.record([turn("t", Scope("ada", session="k.1700000000"), opened_at=100.0)], [])
    assert await journal.session_start("ada", "k", seen_since=100.0) == 1700000000.0
    assert await journal.session_start("ada", "k", seen_since=100.5) is None
    assert await journal.session_start("eve", "k", seen_since=0.0) is None
    assert await journal.session_start("ada", "k.1700000000", seen_since=0.0) is None


async def test_the_newest_of_several_sessions_is_found(journal: SqlJournal) -> None:
    monday = turn("a", Scope("ada", session="k.1000"), opened_at=1000.0)
    tuesday = turn("b", Scope("ada", session="k.2000"), opened_at=2000.0)
    await journal.record([tuesday, monday], [])
    assert await journal.session_start("ada", "k", seen_since=0.0) == 2000.0


async def test_a_learnt_turn_still_shows_when_its_session_began(journal: SqlJournal) -> None:
    await journal.record([turn("t", Scope("ada", session="k.90"))], [answered("t")])
    await learn_all(journal)
    assert await journal.session_start("ada", "k", seen_since=0.0) == 90.0


async def test_a_retry_keeps_its_session_alive(journal: SqlJournal) -> None:
    scope = Scope("ada", session="k.90")
    await journal.record([turn("t", scope, opened_at=100.0)], [])
    await journal.record([turn("t", scope, opened_at=900.0)], [])
    assert await journal.session_start("ada", "k", seen_since=800.0) == 90.0


@pytest.mark.parametrize("session", ["k", "k.", "k.x", ".5", "k.1e5", "k.-5", "k.٣", "k.99999999999999999999"])
async def test_a_session_named_otherwise_is_not_a_derived_one(journal: SqlJournal, session: str) -> None:
    await journal.record([turn("t", Scope("ada", session=session))], [])
    for key in (session, session.rpartition(".")[0], ""):
        assert await journal.session_start("ada", key, seen_since=0.0) is None


async def test_session_keys_are_not_patterns(journal: SqlJournal) -> None:
    keys = [*HOSTILE, "k%", "k_", "k", "kk"]
    await journal.record([turn(str(n), Scope("ada", session=f"{key}.{n}")) for n, key in enumerate(keys)], [])
    assert [await journal.session_start("ada", key, seen_since=0.0) for key in keys] == list(range(len(keys)))
    assert await journal.session_start("ada", "%", seen_since=0.0) is None


async def test_a_session_up_to_a_turn_is_read_oldest_first_without_refused_turns(journal: SqlJournal) -> None:
    opened = [turn(f"t{n}", opened_at=100.0 + n, text=f"I like tea {n}") for n in range(6)]
    other = turn("other", Scope("ada", session="s2"), opened_at=100.0)
    await journal.record([*opened, other], [answered("t1"), refused("t2")])
    await learn_all(journal)
    found = await journal.session_turns(opened[4], limit=3)
    assert [each.id for each in found] == ["t1", "t3", "t4"]
    assert found[0].answer == "Noted."
    assert [each.id for each in await journal.session_turns(opened[4], limit=50)] == ["t0", "t1", "t3", "t4"]


# --- answers by name -------------------------------------------------------------------------------------------------


def named(turn_id: str, answer_id: str, status: TurnEnding = TurnEnding.ANSWERED, at: float = 101.0) -> TurnClosed:
    return TurnClosed(turn_id, status, at, "Noted." if status == "answered" else None, answer_id=answer_id)


@pytest.mark.parametrize("opened_first", [True, False])
async def test_a_turn_is_found_by_the_name_of_its_answer(journal: SqlJournal, opened_first: bool) -> None:
    mine, end = turn("t", Scope("ada", session="s1")), named("t", "resp_1")
    for halves in [([mine], []), ([], [end])] if opened_first else [([], [end]), ([mine], [])]:
        await journal.record(*halves)
    assert await journal.turn_of_answer("ada", "resp_1") == ("t", "s1")
    assert await journal.turn_of_answer("eve", "resp_1") is None
    assert await journal.turn_of_answer("ada", "resp_") is None


async def test_two_users_may_have_answers_of_one_name(journal: SqlJournal) -> None:
    await journal.record([turn("a", Scope("ada", session="s1")), turn("e", Scope("eve", session="s2"))], [])
    await journal.record([], [named("a", "resp_1"), named("e", "resp_1")])
    assert await journal.turn_of_answer("ada", "resp_1") == ("a", "s1")
    assert await journal.turn_of_answer("eve", "resp_1") == ("e", "s2")


async def test_an_answer_that_calls_a_tool_names_its_turn_and_leaves_it_open(journal: SqlJournal) -> None:
    await journal.record([turn("t", Scope("ada", session="s1"))], [named("t", "resp_1", TurnEnding.CONTINUES)])
    assert (await journal.counts())["open"] == 1
    assert await journal.turn_of_answer("ada", "resp_1") == ("t", "s1")
    await journal.record([], [named("t", "resp_2")])
    assert await journal.turn_of_answer("ada", "resp_2") == ("t", "s1")
    assert await learnt(journal) == {"t": "Noted."}


async def test_the_newest_answer_of_a_session_is_found_by_user_and_session(journal: SqlJournal) -> None:
    mine = Scope("ada", session="s1")
    opened = [turn(f"t{n}", mine, opened_at=100.0 + n) for n in range(30)]
    await journal.record([*opened, turn("x", Scope("ada", session="s2")), turn("e", Scope("eve", session="s1"))], [])
    assert await journal.latest_answer("ada", "s1") is None
    await journal.record([], [named("t28", "resp_28", at=140.0), named("t29", "resp_29", at=135.0)])
    await journal.record([], [named("x", "resp_x", at=150.0), named("e", "resp_e", at=150.0), named("l", "resp_l")])
    assert await journal.latest_answer("ada", "s1") == ("t28", "resp_28", 140.0)
    await journal.record([], [named("t29", "resp_30", TurnEnding.CONTINUES, at=145.0)])
    assert await journal.latest_answer("ada", "s1") == ("t29", "resp_30", 145.0)
    await erase(journal, mine)
    assert await journal.latest_answer("ada", "s1") is None
    assert await journal.latest_answer("eve", "s1") == ("e", "resp_e", 150.0)


async def test_names_of_answers_go_with_their_turns(journal: SqlJournal) -> None:
    await journal.record([turn("t", Scope("ada", session="s1"))], [named("t", "resp_1")])
    await journal.record([turn("e", Scope("eve", session="s2"))], [named("e", "resp_2")])
    await erase(journal, Scope("ada"))
    assert await journal.turn_of_answer("ada", "resp_1") is None
    assert await journal.turn_of_answer("eve", "resp_2") == ("e", "s2")
    await learn_all(journal)
    await journal.prune(done_before=5000.0)
    assert await journal.turn_of_answer("eve", "resp_2") is None


# --- who is who ------------------------------------------------------------------------------------------------------


async def test_hostile_names_stay_apart(journal: SqlJournal) -> None:
    scopes = [Scope(user, session=session) for user in HOSTILE for session in HOSTILE]
    await journal.record([turn(str(n), scope) for n, scope in enumerate(scopes)], [])
    assert await journal.end_session(HOSTILE[2], HOSTILE[3], now=200.0) == 1
    assert await erase(journal, Scope("ada%")) == len(HOSTILE)
    found = {each.id: each.scope for batch in await learn_all(journal) for each in batch.turns}
    assert found == {str(n): scope for n, scope in enumerate(scopes) if scope.user != "ada%"}


# --- erasing ---------------------------------------------------------------------------------------------------------


async def test_forgetting_a_user_erases_their_turns_and_nobody_elses(journal: SqlJournal) -> None:
    await journal.record([turn("a"), turn("b", Scope("ada", session="s2")), turn("c", Scope("eve"))], [answered("a")])
    assert await erase(journal, Scope("ada")) == 2
    assert await erase(journal, Scope("ada")) == 0
    assert await learnt(journal) == {"c": None}


@pytest.mark.parametrize("narrow", [{"project": "p"}, {"agent": "a"}, {"session": "s"}, {"project": "p", "agent": "a"}])
async def test_forgetting_can_be_narrowed(journal: SqlJournal, narrow: dict[str, str]) -> None:
    await journal.record(
        [turn("in", structs.replace(Scope("ada"), **narrow)), turn("out", Scope("ada")), turn("eve", Scope("eve"))], []
    )
    assert await erase(journal, structs.replace(Scope("ada"), **narrow)) == 1
    assert await learnt(journal) == {"out": None, "eve": None}


async def test_forgetting_takes_a_leased_batch_away(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=1000.0)
    assert batch is not None
    await erase(journal, Scope("ada"))
    await journal.save_facts(batch.id, [])
    await journal.mark_applied(batch.id, 1)
    await journal.postpone(batch.id, until=0.0)
    await journal.finish(batch.id, "done", now=1001.0)
    assert await journal.claim(EAGER, now=9000.0) is None
    await journal.record([turn("new", opened_at=2000.0)], [answered("new")])
    assert await learnt(journal) == {"new": "Noted."}


@pytest.mark.parametrize("leased", [True, False])
async def test_an_answer_that_comes_after_forgetting_is_turned_away(journal: SqlJournal, leased: bool) -> None:
    await journal.record([turn("t")], [])
    if leased:
        assert await journal.claim(EAGER, now=1000.0) is not None
    await erase(journal, Scope("ada"))
    await journal.record([turn("t")], [answered("t"), refused("t")])
    assert (await journal.counts())["lonely"] == 0
    assert await learnt(journal) == {}
    assert await journal.prune(done_before=5000.0) == 1


async def test_only_turns_done_before_then_are_pruned(journal: SqlJournal) -> None:
    await journal.record([turn("early")], [answered("early")])
    await learn_all(journal, now=1000.0)
    await journal.record([turn("late"), turn("never", Scope("eve"))], [answered("late"), refused("never", at=1500.0)])
    batch = await journal.claim(EAGER, now=2000.0)
    assert batch is not None
    await journal.finish(batch.id, "done", now=2000.0)
    await journal.record([turn("waiting")], [])
    assert await journal.prune(done_before=1000.0) == 0
    assert await journal.prune(done_before=1001.0) == 1
    assert await journal.prune(done_before=1501.0) == 1
    assert await journal.prune(done_before=2001.0) == 1
    assert await learnt(journal) == {"waiting": None}


async def test_a_half_that_stayed_alone_is_pruned(journal: SqlJournal) -> None:
    await journal.record([], [answered("young", at=900.0), answered("old", at=100.0)])
    assert await journal.prune(done_before=500.0) == 1
    await journal.record([turn("young"), turn("old")], [])
    assert await learnt(journal) == {"young": "Noted.", "old": None}


async def test_pruning_goes_on_until_nothing_is_left(place: Place) -> None:
    journal = SqlJournal(place, limits=JournalLimits(prune_rows_max=2))
    await journal.open()
    await journal.record([], [refused(str(n)) for n in range(5)] + [answered(f"lonely{n}") for n in range(4)])
    assert await journal.prune(done_before=200.0) == 9
    assert await journal.prune(done_before=200.0) == 0
    await journal.close()


# --- numbers ---------------------------------------------------------------------------------------------------------


async def test_counts_say_where_every_turn_stands(journal: SqlJournal) -> None:
    bob, eve = Scope("bob", session="s"), Scope("eve", session="s")
    await journal.record([turn("leased", bob)], [answered("leased")])
    await journal.record([turn("done", eve, opened_at=101.0)], [lost("done")])
    await journal.claim(BatchRules(size=1, lease_s=1e6), now=1000.0)
    await learn_all(journal)
    await journal.record([turn("open"), turn("ready"), turn("no")], [answered("ready"), refused("no"), lost("alone")])
    expected = {"open": 1, "ready": 1, "leased": 1, "done": 1, "refused": 1, "lonely": 1}
    assert await journal.counts() == expected


# --- open and close --------------------------------------------------------------------------------------------------


async def test_a_closed_journal_says_so_and_can_be_opened_again(journal: SqlJournal) -> None:
    await journal.record([turn("t")], [])
    await journal.close()
    await journal.close()
    for call in (journal.health, journal.counts, lambda: journal.record([turn("u")], [])):
        with pytest.raises(JournalError, match="not open"):
            await call()
    await journal.open()
    await journal.open()
    await journal.health()
    assert await learnt(journal) == {"t": None}


async def test_what_was_begun_before_closing_is_committed(journal: SqlJournal) -> None:
    writes = [asyncio.Task(journal.record([turn(str(n))], [])) for n in range(20)]
    await asyncio.sleep(0)
    await journal.close()
    await asyncio.gather(*writes)
    await journal.open()
    assert (await journal.counts())["open"] == 20
