"""Which questions look back at a time, and which memories are of that time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from semmem.memory import Memory, MemoryType, Source
from semmem.retrieval.time_filter import CLOCK_SLACK_S, matches, time_filter
from semmem.text.times import Interval, intervals, leaning


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-11-22T15:30")
MAY = Interval(at("2026-05-01"), at("2026-06-01"))
LAST_WEEK = Interval(at("2026-11-09"), at("2026-11-16"))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I do last May?", MAY),
        ("what did i do last may", MAY),
        ("Which restaurants have I been to in May?", MAY),
        ("What did we discuss last week about the budget?", LAST_WEEK),
        ("Can you remind me what I said last week?", LAST_WEEK),
        ("Remind me what we talked about last week", LAST_WEEK),
        ("¿Qué hice la semana pasada?", LAST_WEEK),
        ("Was habe ich letzte Woche gesagt?", LAST_WEEK),
        ("Qu'est-ce que j'ai fait la semaine dernière ?", LAST_WEEK),
        ("我上周去了哪里？", LAST_WEEK),
        ("I was ill yesterday. What did I do last May?", MAY),
        ("Was haben wir am 9. November 2026 besprochen?", Interval(at("2026-11-09"), at("2026-11-10"))),
        ("Which books have I read in May?", MAY),
    ],
)
def test_a_question_that_looks_back_is_about_that_time(question: str, expected: Interval) -> None:
    assert time_filter(question, NOW) == expected


@pytest.mark.parametrize(
    "question",
    [
        "What is my budget?",
        "What should I do tomorrow?",
        "What do I have planned for next Friday?",
        "What should I cook tonight?",
        "Can you suggest a gift for what happened last week?",
        "When did I move?",
        "When did we go to Oslo last year?",
        "What year did I graduate, in 2010 or in 2011?",
        "I was in Oslo last May.",
        "We went hiking last week and it rained",
        "Did I ever tell you about the dog?",
        "What did I plan for next year?",
        "I thought of the weather yesterday, it was odd. What I wanted to ask: what is the company's name?",
        "Who has a birthday at the end of May, Ethan or Avery?",
        "",
    ],
)
def test_advice_plans_statements_and_questions_for_the_time_are_not_filtered(question: str) -> None:
    assert time_filter(question, NOW) is None


def test_of_two_times_the_whole_span_is_meant() -> None:
    span = Interval(at("2026-11-16"), at("2026-11-22"))
    assert time_filter("What did I eat on Monday and yesterday?", NOW) == span


def memory(content: str = "User likes tea", *, said: str = "2026-11-20", occurred: str | None = None) -> Memory:
    return Memory(
        id="mem_1",
        version=1,
        type=MemoryType.SEMANTIC,
        content=content,
        user="ada",
        source=Source(time=at(said)),
        created_at=at("2026-11-21"),
        occurred_at=at(occurred) if occurred else None,
    )


def test_a_memory_is_of_the_time_it_happened_was_said_or_names() -> None:
    assert matches(memory(occurred="2026-05-20"), MAY)
    assert matches(memory(said="2026-05-20"), MAY)
    assert matches(memory("User went to Lisbon in May 2026"), MAY)
    assert matches(memory("User went to Lisbon last May"), MAY)
    assert not matches(memory(), MAY)
    assert not matches(memory("User went to Lisbon in May 2025"), MAY)
    assert not matches(memory(occurred="2026-07-01"), MAY)


def test_when_a_memory_was_made_counts_only_where_nobody_knows_when_it_was_said() -> None:
    made = Memory(id="mem_1", version=1, type=MemoryType.SEMANTIC, content="x", user="ada", created_at=at("2026-05-02"))
    assert matches(made, MAY)


def test_half_a_day_on_either_side_stands_for_the_users_own_clock() -> None:
    day = Interval(at("2026-11-20"), at("2026-11-21"))
    assert CLOCK_SLACK_S == 12 * 3600
    assert matches(memory(said="2026-11-19T12:00"), day)
    assert not matches(memory(said="2026-11-19T11:59"), day)
    assert matches(memory(said="2026-11-21T11:59"), day)
    assert not matches(memory(said="2026-11-21T12:00"), day)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved to Boston in May 2023", "2023-05-01"),
        ("I saw the dentist on Friday", "2026-11-20"),
        ("I'll see the dentist on Friday", "2026-11-27"),
        ("I am flying to Rome in May", "2027-05-01"),
        ("We leave in two weeks, I will pack", "2026-12-03"),
    ],
)
def test_what_is_told_gets_the_date_of_the_one_time_it_names(text: str, expected: str) -> None:
    assert [named.start for named in intervals(text, NOW, towards=leaning(text))] == [at(expected)]


def test_plans_lean_towards_the_future() -> None:
    assert leaning("We're getting married in June") == "future"
    assert leaning("We got married in June") == "past"
