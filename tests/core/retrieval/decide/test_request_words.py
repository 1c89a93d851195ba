"""The words of a request, as places among weights."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from semmem.retrieval.decide.request_words import BUCKETS, CHARS_MAX, places


def test_words_pairs_and_the_first_word_count_each_once() -> None:
    assert len(places("When was it")) == 6  # three words, two pairs, and what it begins with
    assert places("when, when") == places("When when when")


def test_the_order_of_words_counts() -> None:
    assert places("is it when") != places("when is it")


def test_of_scripts_without_spaces_two_signs_are_a_word() -> None:
    assert set(places("我的猫")) & set(places("的猫"))


def test_of_a_long_text_the_beginning_and_the_end_are_read() -> None:
    middle = "tea " * CHARS_MAX
    with_ends = set(places(f"biscuit {middle} anchor"))
    assert len(with_ends - set(places(middle))) == 5  # two words, two pairs, and what it begins with
    assert places(f"biscuit {middle} harbour {middle} anchor") == sorted(with_ends)


@given(st.text())
def test_places_are_in_order_and_among_the_weights(text: str) -> None:
    found = places(text)
    assert found == sorted(set(found))
    assert all(0 <= place < BUCKETS for place in found)
