"""The words for a note's days: no more exact than what is known, and the same at every time of reading."""

from __future__ import annotations

from datetime import datetime

import pytest

from semmem.memory import Memory, MemoryType, Source
from semmem.retrieval.days import happened, said

MARCH_3 = "2026-03-03"


def at(day: str) -> float:
    return datetime.fromisoformat(f"{day}T15:00:00+00:00").timestamp()


def midnight(day: str) -> float:
    return datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()


def memory(content: str, *, occurred: str = "", role: str = "user") -> Memory:
    occurred_at = midnight(occurred) if occurred else None
    source = Source(role=role, time=at(MARCH_3))
    return Memory("m", 1, MemoryType.SEMANTIC, content, "ada", source=source, occurred_at=occurred_at)


@pytest.mark.parametrize(
    ("role", "words"),
    [("user", "said 3 March 2026"), ("api", "noted 3 March 2026"), ("summary", "noted 3 March 2026")],
)
def test_only_what_the_user_said_was_said(role: str, words: str) -> None:
    assert said(memory("User likes tea", role=role)) == words


def test_a_memory_without_a_time_is_undated() -> None:
    assert said(Memory("m", 1, MemoryType.SEMANTIC, "User likes tea", "ada")) == "undated"


def test_a_memory_that_does_not_know_its_turn_was_said_when_it_was_last_written() -> None:
    assert said(Memory("m", 1, MemoryType.SEMANTIC, "x", "ada", updated_at=at(MARCH_3))) == "said 3 March 2026"


@pytest.mark.parametrize(
    ("occurred", "words"),
    [
        ("2026-02-04", "on 4 February 2026"),
        ("2023-05-01", "in May 2023"),
        ("2019-01-01", "in 2019"),
        ("2019-01-02", "on 2 January 2019"),
        ("1962-01-01", "in 1962"),
    ],
)
def test_a_time_that_the_note_does_not_name_is_no_more_exact_than_its_beginning_may_be(
    occurred: str, words: str
) -> None:
    assert happened(memory("User flew to Lima", occurred=occurred)) == words


@pytest.mark.parametrize(
    ("content", "occurred", "words"),
    [
        ('"We flew to Lima yesterday"', "2026-03-02", "meaning 2 March 2026"),
        ('"We flew to Lima last week"', "2026-02-23", "meaning 23 February to 1 March 2026"),
        ('"We flew to Lima two weeks ago"', "2026-02-14", "meaning 14 to 20 February 2026"),
        ("User moved to Lima last month", "2026-02-01", "meaning February 2026"),
        ("User moved to Lima last summer", "2025-06-01", "meaning June to August 2025"),
        ("User moved to Lima last winter", "2025-12-01", "meaning December 2025 to February 2026"),
        ("User moved to Lima last year", "2025-01-01", "meaning 2025"),
        ("User will fly to Lima tomorrow", "2026-03-04", "meaning 4 March 2026"),
    ],
)
def test_words_that_count_from_when_they_were_said_are_given_their_days(
    content: str, occurred: str, words: str
) -> None:
    assert happened(memory(content, occurred=occurred)) == words


@pytest.mark.parametrize(
    ("content", "occurred"),
    [
        ("User flew to Lima on 1 May 2023", "2023-05-01"),
        ("User moved to Lima in May 2023", "2023-05-01"),
        ("User was born in 1984", "1984-01-01"),
        ("User likes tea", ""),
    ],
)
def test_a_time_that_the_note_itself_names_or_nobody_knows_is_not_repeated(content: str, occurred: str) -> None:
    assert happened(memory(content, occurred=occurred)) == ""


@pytest.mark.parametrize(
    ("content", "occurred"),
    [("User has six friends over on Saturday", "2026-02-28"), ('"mein Ziel ist Köln im Oktober"', "2025-10-01")],
)
def test_words_that_may_mean_the_last_or_the_coming_one_are_left_to_the_reader(content: str, occurred: str) -> None:
    assert happened(memory(content, occurred=occurred)) == ""


def test_what_is_certainly_to_come_is_given_its_day() -> None:
    assert happened(memory("User will have friends over on Saturday", occurred="2026-03-07")) == "meaning 7 March 2026"


def test_a_weekday_with_another_meaning_than_the_stored_time_is_not_explained_by_it() -> None:
    assert happened(memory("User plays chess on Friday", occurred="2020-07-14")) == "on 14 July 2020"


def test_an_impossible_time_has_no_words() -> None:
    strange = Memory("m", 1, MemoryType.SEMANTIC, "x", "ada", occurred_at=float("nan"), created_at=float("inf"))
    assert (said(strange), happened(strange)) == ("undated", "")
