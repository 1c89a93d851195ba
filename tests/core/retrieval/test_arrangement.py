"""The order of notes: what always matters, then relevance, and together what belongs together."""

from __future__ import annotations

from typing import Any

import pytest

from semmem.memory import Memory, MemoryType, Source, Standing
from semmem.retrieval.arrangement import arranged, doubtful


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
    assert doubtful([older, memory("drives a van"), newer]) == {"lives in Oslo"}


def test_of_two_that_were_said_at_once_each_may_be_the_outdated_one() -> None:
    pair = [memory("lives in Oslo", unsettled=["moved south"]), memory("moved south")]
    assert doubtful(pair) == {"lives in Oslo", "moved south"}


def test_what_is_not_shown_casts_no_doubt() -> None:
    assert doubtful([memory("lives in Oslo", unsettled=["moved south"])]) == frozenset()
    assert doubtful([memory("a", unsettled="b"), memory("b", unsettled=7)]) == frozenset()


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
