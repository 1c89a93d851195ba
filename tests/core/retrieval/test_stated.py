"""What a request states already, and how it is found without folding all of it."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semmem.retrieval.stated import Stated, Statement

PROSE = st.text(string.ascii_letters + string.digits + " '’.,;:!-_\näöüßéñçøł我住在北京ソ", max_size=60)


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("I live in Boston", "User lives in Boston."),
        ("well, I live in Boston, as you know.", "User lives in Boston"),
        ("I can't eat nuts", "The user cannot eat nuts"),
        ("I'm allergic to bees and I've two cats.", "User is allergic to bees"),
        ("My sister is a nurse.", "The user's sister is a nurse."),
        ("So. I WON'T FLY. Never.", "user will not fly"),
        ("我住在北京。", "我住在北京"),
        ("Ich heiße Jörg.", "ich heisse jörg"),
    ],
)
def test_what_is_said_in_other_persons_and_forms_is_stated(said: str, statement: str) -> None:
    assert Stated(["Hello.", said]).holds(Statement.of(statement))


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("Do I live in Boston?", "User lives in Boston"),
        ("I live in Boston", "User lived in Boston"),
        ("I live in Boston. Lincoln is near.", "User lives in Boston Lincoln"),
        ("I like teapots", "User likes tea"),
        ("I like tea", ""),
        ("", "User likes tea"),
    ],
)
def test_what_is_asked_or_said_otherwise_is_not_stated(said: str, statement: str) -> None:
    assert not Stated([said]).holds(Statement.of(statement))


@given(PROSE, PROSE, PROSE)
@example("", "I've never seen the user's cats, and they don't have mine", "")
@example("x ", "isn't can't won’t shan't cannot", " y")
def test_the_words_that_are_looked_for_first_stand_wherever_it_is_stated(before: str, text: str, after: str) -> None:
    stated = Stated([before + text + after])
    assert all(word in stated._letters for word in Statement.of(text).sought)


@given(st.lists(PROSE, max_size=4), PROSE)
def test_it_is_found_as_it_would_be_with_everything_folded(said: list[str], text: str) -> None:
    stated, statement = Stated(said), Statement.of(text)
    assert stated.holds(statement) == (
        statement.folded != "" and any(statement.folded in one for one in stated._sentences)
    )
