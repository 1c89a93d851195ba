"""What kind of answer a question wants, and what a text offers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.answers import KINDS, offered, wanted
from semmem.text.words import words


def wants(question: str) -> set[str]:
    return {KINDS[at] for at in wanted(question)}


def offers(text: str) -> set[str]:
    return {kind for kind, held in zip(KINDS, offered(text, words(text)), strict=True) if held}


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When did I move?", {"time"}),
        ("how long have I lived here", {"time", "number"}),
        ("How many cats do I have?", {"number"}),
        ("Where do I work?", {"place"}),
        ("Which city did I visit?", {"place"}),
        ("Who is my dentist?", {"person"}),
        ("What is my cat called?", {"name"}),
        ("What do I like?", set()),
    ],
)
def test_a_question_says_what_it_wants(question: str, kinds: set[str]) -> None:
    assert wants(question) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("User moved last week", {"time"}),
        ("User met them on the 3rd", {"time", "number"}),
        ("User has two cats", {"number"}),
        ("User walks in the park", {"place"}),
        ("User flew to Rome", {"place", "person", "name"}),
        ("User's dentist is Ann", {"person", "name"}),
        ('User reads "the little one"', {"name"} | {"number"}),
        ("User likes tea", set()),
    ],
)
def test_a_text_says_what_it_offers(text: str, kinds: set[str]) -> None:
    assert offers(text) == kinds


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_asked_and_can_answer(text: str) -> None:
    assert wants(text) <= set(KINDS)
    assert offers(text) <= set(KINDS)
