"""The words of a request, as places among weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.retrieval.decide.request_words import (
    BUCKETS,
    CHARS_MAX,
    FLAGS,
    PRONOUN_CHARS_MAX,
    flags,
    places,
    speaks_of_user,
)


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


# --- whom a request speaks of ----------------------------------------------------------------------------------------


SELF, MINE, ME, WE, YOU = range(FLAGS)


@pytest.mark.parametrize(
    ("text", "persons"),
    [
        ("Where do I live?", {SELF}),
        ("What is my budget?", {MINE}),
        ("Remind me of it", {ME}),
        ("Where are we going?", {WE}),
        ("What can you do?", {YOU}),
        ("I'd like you to tell me about our flat", {SELF, MINE, ME, YOU}),
        ("what have we told you", {WE, YOU}),
        ("Wo wohne ich?", {SELF}),
        ("Wer war ich?", {SELF}),
        ("Wie heißt meine Katze?", {MINE}),
        ("Was schmeckt uns?", {ME}),
        ("Wann fahren wir?", {WE}),
        ("Was weißt du von mir?", {ME, YOU}),
        ("¿Cuál es mi presupuesto?", {MINE}),
        ("Où est-ce que j’habite ?", {SELF}),
        ("Quel est mon chat ?", {MINE}),
        ("Di cosa ho paura io?", {SELF}),
        ("Qual é a minha cor?", {MINE}),
        ("我的预算是多少？", {SELF, MINE}),
        ("私の猫", {SELF, MINE}),
        ("What is the date?", set()),
        ("World War I began when?", set()),
        ("", set()),
    ],
)
def test_the_pronouns_say_whom_a_request_speaks_of(text: str, persons: set[int]) -> None:
    assert {place for place, flag in enumerate(flags(text)) if flag} == persons


@pytest.mark.parametrize(
    "question",
    [
        "¿Dónde vivo yo?", "Was esse ich nicht?", "What should I order?", "what have i told you", "Is it ours?",
        "I'm allergic to what?", "我住在哪里", "book a table for us", "Where do we meet?",
    ],
)  # fmt: skip
def test_a_question_about_the_user_is_known(question: str) -> None:
    assert speaks_of_user(question)


@pytest.mark.parametrize("question", ["What is the date?", "set a timer", "who won in 1998", "can you roll a die", ""])
def test_a_question_about_anything_else_is_none(question: str) -> None:
    assert not speaks_of_user(question)


def test_of_a_long_text_its_beginning_and_its_end_are_read() -> None:
    filler = "x " * PRONOUN_CHARS_MAX
    assert flags(f"my {filler}")[MINE]
    assert flags(f"{filler} my")[MINE]
    assert not flags(f"{filler} my {filler}")[MINE]


@given(st.text())
def test_any_text_has_its_flags(text: str) -> None:
    assert len(flags(text)) == FLAGS
    assert set(flags(text)) <= {0.0, 1.0}
