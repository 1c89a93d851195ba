"""The judge is judged: planted losses, doubles and unjoined answers are noticed, and what a kill excuses is not."""

from __future__ import annotations

import pytest

from tests.canary.ledger import CONVERSATION, Fact
from tests.fleet.after import unlike
from tests.fleet.alternation import Alternated, Trials, joined
from tests.fleet.clients import Recall
from tests.fleet.journals import Turn
from tests.fleet.verdict import (
    NOTICED_S,
    Away,
    Held,
    Holding,
    Sent,
    Spoken,
    Verdict,
    accepted,
    expect,
    judge_facts,
    judge_turns,
)

BEFORE, KILL, AFTER = 10.0, 20.0, 30.0
TEXTS = ("one", "two", "three")
Outages = tuple[tuple[float, float], ...]


def sent(text: str, at: float = BEFORE, *, took: bool = True, fact: Fact | None = None) -> Sent:
    return Sent(text, at, at + 0.1, took, fact)


def spoken(*turns: Sent, whole: bool = True) -> Spoken:
    return Spoken("alice", "s1", list(turns), whole)


def row(text: str, answer: str | None = "Noted.") -> Turn:
    return Turn("alice", "s1", text, answer, done=True)


def judged(talk: Spoken, journal: list[Turn], kills: tuple[float, ...] = (KILL,), outages: Outages = ()) -> Verdict:
    verdict = Verdict()
    judge_turns(verdict, [talk], journal, Away(kills, outages))
    return verdict


def told(number: int = 1) -> Fact:
    return Fact(0, number, "", CONVERSATION, "", "", began=BEFORE, settled=BEFORE, ended=BEFORE)


def judged_fact(fact: Fact, held: Held) -> Verdict:
    verdict = Verdict()
    judge_facts(verdict, [fact], held)
    return verdict


# --- turns ---------------------------------------------------------------------------------------------------------


def test_a_journal_that_has_every_turn_once_is_right() -> None:
    verdict = judged(spoken(*map(sent, TEXTS)), [row(text) for text in TEXTS])
    assert (verdict.lost, verdict.doubled, verdict.accepted, verdict.turns) == ([], [], 3, 3)


def test_a_turn_that_is_not_in_the_journal_is_lost() -> None:
    verdict = judged(spoken(*map(sent, TEXTS)), [row("one"), row("three")])
    assert [line[:6] for line in verdict.lost] == ["turn 1"]


def test_a_turn_that_is_there_twice_is_doubled() -> None:
    verdict = judged(spoken(*map(sent, TEXTS)), [*map(row, TEXTS), row("two")])
    assert [line[:6] for line in verdict.doubled] == ["turn 1"]


def test_anothers_turn_or_another_sessions_does_not_stand_for_a_lost_one() -> None:
    others = [Turn("bob", "s1", "one", "Noted.", done=True), Turn("alice", "s2", "one", "Noted.", done=True)]
    assert len(judged(spoken(sent("one")), others).lost) == 1


def test_what_was_said_twice_is_to_be_there_twice() -> None:
    twice = spoken(sent("one"), sent("one"))
    assert judged(twice, [row("one"), row("one")]).lost == []
    assert len(judged(twice, [row("one")]).lost) == 2


def test_an_answer_that_is_missing_is_lost_unless_it_was_in_flight_at_the_kill() -> None:
    assert len(judged(spoken(sent("one")), [row("one", None)]).lost) == 1
    verdict = judged(spoken(sent("one", KILL - 0.05), sent("two", AFTER)), [row("one", None), row("two")])
    assert (verdict.lost, verdict.answers_in_flight, verdict.answers_unwritten) == ([], 1, 0)
    verdict = judged(spoken(sent("one", KILL - 0.5), sent("two", AFTER)), [row("one", None), row("two")])
    assert (verdict.lost, verdict.answers_in_flight, verdict.answers_unwritten) == ([], 0, 1)


def test_a_stream_that_was_opened_to_a_replica_just_gone_is_counted_apart() -> None:
    soon, later = sent("one", KILL + NOTICED_S / 2), sent("two", KILL + 2 * NOTICED_S)
    verdict = judged(spoken(soon, later), [row("one", None), row("two", None)])
    assert (len(verdict.lost), verdict.answers_unnoticed) == (1, 1)


def test_the_answer_of_a_turn_that_failed_open_was_not_to_be_observed() -> None:
    verdict = judged(spoken(sent("one", took=False), sent("two")), [row("one", None), row("two")])
    assert (verdict.lost, verdict.answers_unseen) == ([], 1)


def test_what_waited_for_the_server_in_a_killed_replica_is_counted_unless_a_later_request_could_bring_it_again() -> (
    None
):
    during, outage = sent("one", KILL - 4), ((KILL - 5, AFTER),)
    assert judged(spoken(during), [], outages=outage).waited == 1
    assert judged(spoken(during), []).lost != []
    again = sent("two", AFTER + 2)
    assert len(judged(spoken(during, again), [row("two")], outages=outage).lost) == 1
    in_vain = sent("two", AFTER - 1)
    verdict = judged(spoken(during, in_vain), [row("two")], outages=outage)
    assert (verdict.lost, verdict.waited) == ([], 1)


def test_the_journal_of_somebody_who_erased_something_is_not_judged() -> None:
    assert judged(spoken(sent("one"), whole=False), []).lost == []


@pytest.mark.parametrize(
    ("turns", "which"),
    [
        ([sent("one"), sent("two")], [True, True]),
        ([sent("one", took=False), sent("two")], [True, True]),
        ([sent("one"), sent("two", took=False)], [True, False]),
        ([sent("one"), sent("two", KILL - 0.5)], [True, False]),
        ([sent("one", KILL - 0.5), sent("two", AFTER)], [True, True]),
        ([sent("one", KILL - 0.5), sent("two", KILL)], [False, False]),
        ([sent("one", KILL + 0.1)], [True]),
    ],
    ids=["taken", "brought again", "never taken", "at the kill", "brought again after it", "both at it", "just after"],
)
def test_a_turn_is_accepted_when_semmem_took_it_or_a_later_one(turns: list[Sent], which: list[bool]) -> None:
    assert accepted(spoken(*turns), Away([KILL])) == which


# --- facts ---------------------------------------------------------------------------------------------------------


def test_only_facts_of_accepted_turns_must_be_there() -> None:
    taken, refused = told(1), told(2)
    expect([spoken(sent("one", fact=taken), sent("two", fact=refused, took=False))], Away([KILL]))
    assert [(fact.expected, fact.free) for fact in (taken, refused)] == [(True, False), (False, True)]
    assert judged_fact(refused, {}).lost == []


def test_an_expected_fact_in_no_memory_is_lost_and_in_two_it_is_doubled() -> None:
    fact = told()
    expect([spoken(sent("one", fact=fact))], Away())
    assert len(judged_fact(fact, {}).lost) == 1
    once = judged_fact(fact, {(0, 1): [Holding("mem_1", 2)]})
    assert (once.lost, once.doubled, once.facts) == ([], [], 1)
    assert len(judged_fact(fact, {(0, 1): [Holding("mem_1", 1), Holding("mem_2", 1)]}).doubled) == 1
    assert len(judged_fact(fact, {(0, 1): [Holding("mem_1", 3)]}).doubled) == 1


def test_a_superseded_memory_is_neither_lost_nor_doubled_and_is_told() -> None:
    fact = told()
    expect([spoken(sent("one", fact=fact))], Away())
    verdict = judged_fact(fact, {(0, 1): [Holding("mem_1", 3, "mem_2")]})
    assert (verdict.lost, verdict.doubled, len(verdict.superseded)) == ([], [], 1)


def test_a_question_for_what_was_superseded_is_not_wrong_and_any_other_is() -> None:
    recall = Recall(missed=[(told(1), "one"), (told(2), "two")], superseded={(0, 1)})
    assert recall.wrong == ["two"]


def test_an_erased_fact_is_not_lost() -> None:
    fact = told()
    expect([spoken(sent("one", fact=fact))], Away())
    fact.gone = "DELETE"
    assert judged_fact(fact, {}).lost == []


def test_replicas_that_list_different_memories_are_noticed() -> None:
    first, second, third = Holding("mem_1", 1), Holding("mem_2", 1), Holding("mem_3", 1)
    one = {(0, 1): [first], (0, 2): [second, third]}
    assert unlike([one, {(0, 1): [first], (0, 2): [third, second]}]) == []
    assert len(unlike([one, {(0, 1): [Holding("mem_1", 2)]}])) == 2


# --- alternation ---------------------------------------------------------------------------------------------------


def test_an_answer_is_joined_when_its_turn_is_there_once_with_it() -> None:
    assert joined([row("one"), row("two", None), row("three"), row("three", None)]) == 1


def test_late_facts_unjoined_answers_and_undone_erasures_are_wrong() -> None:
    trials = Trials(answers=2, facts=1, erasures=1)
    right, wrong = Alternated(trials, joined=2, delays=[0.4]), Alternated(trials, joined=1, delays=[1.4], undone=1)
    assert (right.unjoined, right.late, right.returned) == ([], [], [])
    assert [len(lines) for lines in (wrong.unjoined, wrong.late, wrong.returned)] == [1, 1, 1]


def test_one_late_fact_of_twenty_is_a_busy_machine_and_three_are_not() -> None:
    assert Alternated(Trials(), delays=[0.4] * 19 + [1.4]).late == []
    assert len(Alternated(Trials(), delays=[0.4] * 17 + [1.4] * 3).late) == 1
