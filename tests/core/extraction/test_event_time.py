"""When what a fact tells of happened: by its own words, and held against what the user said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.extraction.phrasing import DatedText, event_time
from tests.support.cpu_time import within_cpu_s

SAID_AT = datetime(2026, 11, 22, 15, 30, tzinfo=UTC).timestamp()
"""A Sunday in November."""


def day(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()


@pytest.mark.parametrize(
    ("statement", "happened"),
    [
        ("User moved to Seattle last May", "2026-05-01"),
        ("User moved to Leeds in 2019", "2019-01-01"),
        ("User decided yesterday to learn Welsh", "2026-11-21"),
        ("User quit smoking two years ago", "2024-01-01"),
        ("User left Google in March", "2026-03-01"),
        ("User was born on 3 March 1990", "1990-03-03"),
        ("User started a new job on Monday", "2026-11-16"),
        ("User's meeting with Acme is on Thursday at 3pm", "2026-11-26"),
        ("User's flight to Lisbon leaves on the 14th of March", "2027-03-14"),
        ("User's defence got pushed to May 12", "2027-05-12"),
        ("User booked a flight to Oslo for 3 May", "2027-05-03"),
        ("User has a job interview on Friday", "2026-11-27"),
        ("User's landlord is raising the rent in January", "2027-01-01"),
        ("User plans to visit Porto next spring", "2027-03-01"),
        ("User will retire in 2030", "2030-01-01"),
    ],
)
def test_a_date_lies_before_or_behind_as_the_verb_says(statement: str, happened: str) -> None:
    assert day(event_time(statement, SAID_AT)) == happened


@pytest.mark.parametrize(
    "statement",
    [
        "User likes tea",
        "User rows on Mondays",
        "User's team meets every Monday at ten",
        "User gets hay fever in May",
        "User's anniversary is on 9 June",
        "User's birthday is on 5 May",
        "User has been a nurse for eleven years",
        "User has lived in Ghent since 2015",
        "User moved in May and again in July",
        "User takes the 7:40 train",
        "User usually skied in February",
    ],
)
def test_a_habit_a_feast_or_a_long_time_has_no_date(statement: str) -> None:
    assert event_time(statement, SAID_AT) is None


@pytest.mark.parametrize(
    ("statement", "when", "said", "happened"),
    [
        ("User moved to Seattle", "last May", "I moved to Seattle last May, it is lovely", "2026-05-01"),
        ("User moved to Seattle in May 2026", "", "I moved to Seattle last May, it is lovely", "2026-05-01"),
        ("User moved to Seattle", "2026-05", "I moved to Seattle last May", "2026-05-01"),
        ("User moved to Seattle", "May 2025", "It rains. I moved to Seattle last May.", "2026-05-01"),
        ("User moved to Seattle", "yesterday", "I moved to Seattle", ""),
        ("User likes tea", "", "Last week I told you that I like tea", ""),
        ("User meets the bank", "on Thursday", "I meet the bank on Thursday", ""),
        ("User's meeting is on Thursday", "on Thursday", "my meeting is on Thursday", "2026-11-26"),
        ("User keeps bees", "every Monday", "Every Monday I look after the bees", ""),
    ],
    ids=[
        *("the user's words", "a date worked out", "an ISO month", "worked out wrongly", "invented", "none"),
        *("either Thursday", "the coming Thursday", "a habit"),
    ],
)
def test_a_models_time_counts_when_the_user_named_it(statement: str, when: str, said: str, happened: str) -> None:
    assert day(DatedText(said, SAID_AT).event_time(statement, when)) == happened


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=500))
def test_no_text_breaks_it(statement: str, when: str, said: str) -> None:
    found = DatedText(said, SAID_AT).event_time(statement, when)
    assert found is None or isinstance(found, float)


@pytest.mark.parametrize("word", ["last May ", "in May and ", "is moved to ", "ed. ", "booked ", "User's a' "])
def test_hostile_text_takes_no_time(word: str) -> None:
    text = word * (16_000 // len(word))

    def read(_: int) -> None:
        told = DatedText(text, SAID_AT)
        for _again in range(20):
            told.event_time(text[:1000], text[:1000])

    assert within_cpu_s(2.0, read)
