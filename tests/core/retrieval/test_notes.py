"""The order of notes: what always matters, then relevance, and together what belongs together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from semmem.memory import Memory, MemoryType, Source, Standing
from semmem.retrieval.notes import ASK, EARLIER, arranged, happened, order_told, said


def memory(content: str, time: float = 100.0, *, turn: str = "", **metadata: Any) -> Memory:
    source = Source(turn=turn, time=time)
    return Memory(content, 1, MemoryType.SEMANTIC, content, "ada", source=source, metadata=metadata)


def order(*memories: Memory) -> list[str]:
    return [" + ".join(memories[place].content for place in line) for line in arranged(memories)]


def test_what_always_matters_comes_first_and_the_rest_stays_in_its_order() -> None:
    assert order(
        memory("likes tea"),
        memory("wants metric units", standing=Standing.STYLE.value),
        memory("lives in Oslo", standing="profile"),
        memory("plays chess"),
        memory("allergic to nuts", standing="must"),
        memory("drives a van", standing="nonsense"),
    ) == ["allergic to nuts", "lives in Oslo", "wants metric units", "likes tea", "plays chess", "drives a van"]


def test_of_one_topic_the_newest_comes_first_where_the_best_of_them_stands() -> None:
    assert order(
        memory("plays chess"),
        memory("User's budget is $10,000", 1.0),
        memory("drives a van"),
        memory("User's budget is $15,000", 2.0),
    ) == ["plays chess", "User's budget is $15,000", "User's budget is $10,000", "drives a van"]


def test_one_word_in_common_is_no_topic() -> None:
    assert order(memory("User likes green tea", 1.0), memory("drives a van"), memory("User likes black dogs", 2.0)) == [
        "User likes green tea",
        "drives a van",
        "User likes black dogs",
    ]


@pytest.mark.parametrize("who", ["newer", "older"])
def test_two_that_nobody_has_settled_stand_together_the_newer_first(who: str) -> None:
    older = memory("lives in Oslo", 1.0, unsettled=["moved south"] if who == "older" else [])
    newer = memory("moved south", 2.0, unsettled=["lives in Oslo"] if who == "newer" else [])

    assert order(older, memory("drives a van"), newer) == ["moved south", "lives in Oslo", "drives a van"]
    assert order_told([older, memory("drives a van"), newer]) == {"lives in Oslo": EARLIER}


def test_of_two_that_were_said_at_once_each_may_be_the_outdated_one() -> None:
    pair = [memory("lives in Oslo", unsettled=["moved south"]), memory("moved south")]
    assert order_told(pair) == {"lives in Oslo": ASK, "moved south": ASK}
    newer = memory("lives in Rome", 200.0, unsettled=["moved south"])
    assert order_told([*pair, newer]) == {"lives in Oslo": ASK, "moved south": EARLIER}


def test_what_is_not_shown_casts_no_doubt() -> None:
    assert order_told([memory("lives in Oslo", unsettled=["moved south"])]) == {}
    assert order_told([memory("a", unsettled="b"), memory("b", unsettled=7)]) == {}


def test_sentences_of_one_message_share_a_line_in_their_order() -> None:
    assert order(
        memory('"We are vegan"', turn="t1"),
        memory("drives a van", turn="t1"),
        memory('"Sunday lunch is sacred"', turn="t1"),
        memory('"I hate flying"', turn="t2"),
    ) == ['"We are vegan" + "Sunday lunch is sacred"', "drives a van", '"I hate flying"']


def test_a_doubtful_sentence_keeps_its_line() -> None:
    first = memory('"We are vegan"', turn="t1", unsettled=['"Fish is fine"'])
    assert order(first, memory('"Fish is fine"', turn="t1")) == ['"We are vegan"', '"Fish is fine"']


def test_a_sentence_whose_time_needs_words_keeps_its_line() -> None:
    source = Source(turn="t1", time=100.0)
    dated = Memory("m", 1, MemoryType.SEMANTIC, '"We flew yesterday"', "ada", source=source, occurred_at=1.0)
    assert order(dated, memory('"We are vegan"', turn="t1")) == ['"We flew yesterday"', '"We are vegan"']


# --- the words for a note's days: no more exact than what is known, and the same at every time of reading ------------


MARCH_3 = "2026-03-03"


def at(day: str) -> float:
    return datetime.fromisoformat(f"{day}T15:00:00+00:00").timestamp()


def midnight(day: str) -> float:
    return datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()


def dated(content: str, *, occurred: str = "", role: str = "user") -> Memory:
    occurred_at = midnight(occurred) if occurred else None
    source = Source(role=role, time=at(MARCH_3))
    return Memory("m", 1, MemoryType.SEMANTIC, content, "ada", source=source, occurred_at=occurred_at)


@pytest.mark.parametrize(
    ("role", "words"),
    [("user", "said 3 March 2026"), ("api", "noted 3 March 2026"), ("summary", "noted 3 March 2026")],
)
def test_only_what_the_user_said_was_said(role: str, words: str) -> None:
    assert said(dated("User likes tea", role=role)) == words


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
    assert happened(dated("User flew to Lima", occurred=occurred)) == words


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
    assert happened(dated(content, occurred=occurred)) == words


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
    assert happened(dated(content, occurred=occurred)) == ""


@pytest.mark.parametrize(
    ("content", "occurred"),
    [("User has six friends over on Saturday", "2026-02-28"), ('"mein Ziel ist Köln im Oktober"', "2025-10-01")],
)
def test_words_that_may_mean_the_last_or_the_coming_one_are_left_to_the_reader(content: str, occurred: str) -> None:
    assert happened(dated(content, occurred=occurred)) == ""


def test_what_is_certainly_to_come_is_given_its_day() -> None:
    assert happened(dated("User will have friends over on Saturday", occurred="2026-03-07")) == "meaning 7 March 2026"


def test_a_weekday_with_another_meaning_than_the_stored_time_is_not_explained_by_it() -> None:
    assert happened(dated("User plays chess on Friday", occurred="2020-07-14")) == "on 14 July 2020"


def test_an_impossible_time_has_no_words() -> None:
    strange = Memory("m", 1, MemoryType.SEMANTIC, "x", "ada", occurred_at=float("nan"), created_at=float("inf"))
    assert (said(strange), happened(strange)) == ("undated", "")
