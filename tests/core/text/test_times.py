"""Which times a text names: sentences with their days, sentences without any, and hostile text."""

from __future__ import annotations

import math
import time
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.text.times import INTERVALS_MAX, Interval, Towards, intervals
from semmem.text.times.calendar import EARLIEST_S, LATEST_S
from tests.support.examples import examples

NOW = datetime(2026, 11, 22, 15, 30, tzinfo=UTC).timestamp()
"""A Sunday afternoon in autumn."""

NAMED: list[tuple[str, str]] = [
    ("What did I do yesterday?", "2026-11-21"),
    ("what were we talking about today", "2026-11-22"),
    ("What did I eat last night?", "2026-11-21"),
    ("What did I say this morning?", "2026-11-22"),
    ("Who called the day before yesterday?", "2026-11-20"),
    ("Do I have anything tomorrow?", "2026-11-23"),
    ("We leave the day after tomorrow.", "2026-11-24"),
    ("What did we discuss last week about the budget?", "2026-11-09 2026-11-16"),
    ("what happened in the past week", "2026-11-09 2026-11-16"),
    ("Am I free this week?", "2026-11-16 2026-11-23"),
    ("The exam is next week.", "2026-11-23 2026-11-30"),
    ("Where was I last weekend?", "2026-11-14 2026-11-16"),
    ("We go skiing next weekend", "2026-11-28 2026-11-30"),
    ("How much did I spend last month?", "2026-10-01 2026-11-01"),
    ("What have I read this month?", "2026-11-01 2026-12-01"),
    ("Rent goes up next month", "2026-12-01 2027-01-01"),
    ("Our revenue last quarter was flat", "2026-07-01 2026-10-01"),
    ("Our goals for Q3 2024", "2024-07-01 2024-10-01"),
    ("Which races did I run last year?", "2025-01-01 2026-01-01"),
    ("last year's trip was great", "2025-01-01 2026-01-01"),
    ("What did I do last May?", "2026-05-01 2026-06-01"),
    ("what did i do last may", "2026-05-01 2026-06-01"),
    ("Where did I travel last December?", "2025-12-01 2026-01-01"),
    ("I start school next January", "2027-01-01 2027-02-01"),
    ("Did I mention a wedding in June?", "2026-06-01 2026-07-01"),
    ("Did we meet in December?", "2025-12-01 2026-01-01"),
    ("I moved to Boston in May 2023.", "2023-05-01 2023-06-01"),
    ("may 2019 was when i graduated", "2019-05-01 2019-06-01"),
    ("My son was born in March of 2018", "2018-03-01 2018-04-01"),
    ("Where did we stay in May of last year?", "2025-05-01 2025-06-01"),
    ("last year in September we bought a boat", "2025-09-01 2025-10-01"),
    ("I quit in mid-August", "2026-08-01 2026-09-01"),
    ("She visited at the end of April", "2026-04-01 2026-05-01"),
    ("What did I buy on 3 March?", "2026-03-03"),
    ("What did I buy on March 3rd?", "2026-03-03"),
    ("We married on March 3rd, 2024.", "2024-03-03"),
    ("born on the 3rd of April 2022", "2022-04-03"),
    ("I was born on May 5, 1987.", "1987-05-05"),
    ("It happened on December 24", "2025-12-24"),
    ("The log of 2024-03-03 is gone", "2024-03-03"),
    ("at 2024-03-03T10:15:00Z the job failed", "2024-03-03"),
    ("We met on 14.03.2024", "2024-03-14"),
    ("Invoice dated 3/14/2024", "2024-03-14"),
    ("I lived there in 2021", "2021-01-01 2022-01-01"),
    ("I learnt to swim in the 1990s", "1990-01-01 2000-01-01"),
    ("from 2019 to 2021 I worked for Acme", "2019-01-01 2022-01-01"),
    ("What did I plan between May and July?", "2026-05-01 2026-08-01"),
    ("The project ran from November to February 2024", "2023-11-01 2024-03-01"),
    ("Two weeks ago I fell ill", "2026-11-05 2026-11-12"),
    ("I saw her three days ago", "2026-11-19"),
    ("He left a month ago", "2026-10-07 2026-11-07"),
    ("I moved here 12 years ago", "2014-01-01 2015-01-01"),
    ("a couple of weeks ago we adopted a cat", "2026-11-05 2026-11-12"),
    ("What have I eaten in the last three days?", "2026-11-19 2026-11-23"),
    ("Where did I go last summer?", "2026-06-01 2026-09-01"),
    ("We met in the summer of 2021", "2021-06-01 2021-09-01"),
    ("I planted roses last spring", "2026-03-01 2026-06-01"),
    ("We went skiing last winter", "2025-12-01 2026-03-01"),
    ("What did I get last Christmas?", "2025-12-24 2025-12-27"),
    ("What did I do on Monday?", "2026-11-16"),
    ("Who did I meet last Friday?", "2026-11-20"),
    ("I called the bank Tuesday morning", "2026-11-17"),
    ("The dentist is next Friday", "2026-11-27"),
    ("What have I done since last May?", "2026-05-01 now"),
    ("Which jobs did I have before 2015?", "1900-01-01 2015-01-01"),
    ("What changed after March 2024?", "2024-04-01 now"),
    ("¿Qué hice ayer?", "2026-11-21"),
    ("¿Adónde fui la semana pasada?", "2026-11-09 2026-11-16"),
    ("Hace dos semanas compré un coche", "2026-11-05 2026-11-12"),
    ("Nací el 3 de marzo de 1990", "1990-03-03"),
    ("¿Qué pasó en mayo del año pasado?", "2025-05-01 2025-06-01"),
    ("Was habe ich gestern gesagt?", "2026-11-21"),
    ("Wo war ich letzte Woche?", "2026-11-09 2026-11-16"),
    ("Vor drei Tagen war ich in Köln", "2026-11-19"),
    ("Was habe ich letzten Mai gemacht?", "2026-05-01 2026-06-01"),
    ("Wir heirateten am 3. März 2024", "2024-03-03"),
    ("Morgen fliege ich nach Rom", "2026-11-23"),
    ("Qu'est-ce que j'ai fait hier ?", "2026-11-21"),
    ("La semaine dernière j'étais à Lyon", "2026-11-09 2026-11-16"),
    ("Il y a deux semaines j'ai déménagé", "2026-11-05 2026-11-12"),
    ("Je suis né le 3 mars 1990", "1990-03-03"),
    ("昨天我们去了哪里？", "2026-11-21"),
    ("我上周说了什么？", "2026-11-09 2026-11-16"),
    ("我去年五月做了什么？", "2025-05-01 2025-06-01"),
    ("我2023年5月3日搬到北京", "2023-05-03"),
    ("三天前我感冒了", "2026-11-19"),
    ("上周日我们吃了什么", "2026-11-15"),
    ("去年夏天我在海边", "2025-06-01 2025-09-01"),
]

TIMELESS = [
    "May I ask something?",
    "You may be right, I may march with them.",
    "This may be wrong.",
    "the last may contain errors",
    "It may 3 times fail",
    "They march on.",
    "March on Washington was the biggest march",
    "March 3 miles every day",
    "my daughter April likes tea",
    "June said hello to August",
    "May is my best friend",
    "I like the planet Mars",
    "Mars bars and mayo",
    "wait a second",
    "my second car is red",
    "one second please",
    "The timer rings in 5 minutes",
    "done in two weeks, said nobody",
    "I was ill for two weeks",
    "It takes three days",
    "a one month subscription",
    "my 3 year old son",
    "I sleep eight hours a night",
    "every Monday morning I run",
    "I play tennis on Fridays",
    "Sunday is my dog",
    "Wednesday Addams is her favourite",
    "Black Friday deals",
    "Solomon Grundy, born on a Monday",
    "the last day of the course",
    "a last minute offer",
    "last time I checked",
    "in the last year of school",
    "the last week of the trip",
    "next to the house",
    "the next door neighbour",
    "this is fun, this time too",
    "The past is a foreign country",
    "day and night",
    "one day I will be rich",
    "it costs $2021",
    "2021 dollars",
    "it costs 1,999 euros",
    "in 2000 words or fewer",
    "Summarise it in 2000 characters",
    "Python 3.11.4 and version 2021.3",
    "v2.2021 is out",
    "upgrade from 1.5.2 to 2.0.0",
    "10.10.10.10 is down",
    "call 555-2021",
    "room 2021, please",
    "2021 Main Street",
    "model X-2024-03-03-B",
    "src/2024/03/03/index.html",
    "03/04/2024 could be either",
    "30 February 2024",
    "2024-13-45",
    "order number 20240303",
    "Windows 2000 and Blade Runner 2049",
    "spring rolls and Spring Boot",
    "I fall in love in the fall of a leaf",
    "half past two",
    "years ago, long ago",
    "20 minutes ago",
    "score 3-2 and 4:1",
    "50% in 90 days",
    "she is 25 years old",
    "the day after",
    "I love the weekend",
    "Guten Morgen, wie geht es dir?",
    "Buenos días por la mañana",
    "el mar y la playa",
    "mon ami est un an plus grand",
    "dans la maison",
    "我喜欢春天",
    "三天的假期",
    "月亮很美",
    "",
    "   ",
]


def _day(text: str) -> float:
    return NOW if text == "now" else datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _interval(days: str) -> Interval:
    first, _, after_last = days.partition(" ")
    return Interval(_day(first), _day(after_last) if after_last else _day(first) + 86_400.0)


@pytest.mark.parametrize(("text", "days"), NAMED, ids=[text for text, _ in NAMED])
def test_a_time_is_read_as_the_days_it_means(text: str, days: str) -> None:
    assert intervals(text, NOW) == [_interval(days)]


@pytest.mark.parametrize("text", TIMELESS)
def test_what_only_looks_like_a_time_is_none(text: str) -> None:
    assert intervals(text, NOW) == []


def test_the_sentences_are_many_and_nearly_half_of_them_name_no_time() -> None:
    assert len(NAMED) >= 60
    assert len(TIMELESS) >= 60


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("on Friday", "2026-11-20", "2026-11-27"),
        ("on Sunday", "2026-11-15", "2026-11-29"),
        ("in May", "2026-05-01 2026-06-01", "2027-05-01 2027-06-01"),
        ("in November", "2026-11-01 2026-12-01", "2026-11-01 2026-12-01"),
        ("on 3 March", "2026-03-03", "2027-03-03"),
        ("on December 1st", "2025-12-01", "2026-12-01"),
        ("5月3日", "2026-05-03", "2027-05-03"),
        ("last May", "2026-05-01 2026-06-01", "2026-05-01 2026-06-01"),
        ("tomorrow", "2026-11-23", "2026-11-23"),
    ],
)
def test_what_may_be_either_is_read_towards_one_side(text: str, past: str, future: str) -> None:
    assert intervals(text, NOW, towards="past") == [_interval(past)]
    assert intervals(text, NOW, towards="future") == [_interval(future)]


def test_in_two_weeks_is_a_date_only_towards_the_future() -> None:
    assert intervals("in two weeks", NOW) == []
    assert intervals("in two weeks", NOW, towards="future") == [_interval("2026-12-03 2026-12-10")]


def test_last_may_in_june_and_in_may_are_two_different_years() -> None:
    in_june = datetime(2026, 6, 2, tzinfo=UTC).timestamp()
    in_may = datetime(2026, 5, 20, tzinfo=UTC).timestamp()
    assert intervals("last May", in_june) == [_interval("2026-05-01 2026-06-01")]
    assert intervals("last May", in_may) == [_interval("2025-05-01 2025-06-01")]


def test_a_month_ago_on_the_31st_is_around_the_end_of_the_shorter_month() -> None:
    march_31 = datetime(2026, 3, 31, tzinfo=UTC).timestamp()
    assert intervals("a month ago", march_31) == [_interval("2026-02-13 2026-03-16")]


def test_several_times_come_in_order_and_each_once() -> None:
    text = "Yesterday, last week and again yesterday"
    assert intervals(text, NOW) == [_interval("2026-11-21"), _interval("2026-11-09 2026-11-16")]


def test_a_text_full_of_dates_yields_only_so_many() -> None:
    text = " ".join(f"2024-03-{day:02}" for day in range(1, 32))
    assert len(intervals(text, NOW)) == INTERVALS_MAX


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, -1e18, 1e18, LATEST_S])
def test_an_impossible_now_reads_nothing(now: float) -> None:
    assert intervals("yesterday", now) == []


PIECES = st.sampled_from(
    "last next this in on the of ago since before after May may march 3 3rd 31 999 2024 1900 2199 Monday week weeks "
    "year years two a day yesterday tomorrow summer , . - 2024-02-30 9999-99-99 1990s Q4 to from between hace vor il y "
    "últimos derniers 去年 五月 十 99 年前 上周 三十一日".split()
)
TOWARDS: st.SearchStrategy[Towards] = st.sampled_from(["past", "future"])


@settings(deadline=None, max_examples=examples(300))
@given(
    st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=30).map(" ".join)),
    st.one_of(st.floats(), st.floats(EARLIEST_S, LATEST_S)),
    TOWARDS,
)
def test_whatever_the_text_intervals_are_sane(text: str, now: float, towards: Towards) -> None:
    for interval in intervals(text, now, towards=towards):
        assert EARLIEST_S <= interval.start < interval.end <= LATEST_S


@settings(deadline=None)
@given(st.dates(date(1950, 1, 1), date(2150, 1, 1)), st.dates(date(1950, 1, 1), date(2150, 1, 1)))
def test_a_written_date_is_that_day_whenever_it_is_read(when: date, today: date) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC).timestamp()
    expected = [_interval(when.isoformat())]
    assert intervals(f"on {when.isoformat()}", now) == expected
    assert intervals(f"on {when.day} {when:%B} {when.year}", now) == expected
    assert intervals(f"on {when:%B} {when.day}, {when.year}", now) == expected


HOSTILE = [
    "last ",
    "in may 2023 ",
    "1.",
    "x",
    "三",
    "上个",
    "1",
    "'",
    "a'",
    "2024-03-",
    "3 of ",
    "from May to ",
    "去年",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_taken_grows_with_the_length_only(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        started = time.process_time()
        intervals(text, NOW)
        return time.process_time() - started

    short, long = min(seconds(10_000) for _ in range(3)), min(seconds(100_000) for _ in range(2))
    assert long < 40 * short + 0.05
