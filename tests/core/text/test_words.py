"""From a text to its words, and to the terms that are compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.text.stems import stem, stems
from semmem.text.terms import NO_TERMS, RELATED, terms
from semmem.text.words import CHARS_MAX, negations_apart, pairs, words, written_words


def terms_of(text: str) -> list[str]:
    return terms(words(text))


def test_words_meet_in_their_stems_whatever_their_case_and_clitics() -> None:
    assert terms_of("User's hobbies: PAINTING, hiking") == terms_of("hobby paint hikes")
    assert terms_of("I’ve moved") == terms_of("moves")


def test_words_of_grammar_and_the_user_are_no_terms() -> None:
    assert terms_of("What is it that the user would do with them?") == []


def test_numbers_keep_their_points() -> None:
    assert terms_of("It costs 10,000 or 3.5") == ["cost", "10,000", "3.5"]


def test_what_is_written_without_spaces_is_compared_by_characters_and_pairs() -> None:
    assert terms_of("北京大学") == ["北", "京", "大", "学", "北京", "京大", "大学"]
    assert set(terms_of("用户住在北京")) & set(terms_of("我住在哪里？")) == {"住", "在", "住在"}
    assert "茶" in terms_of("I like 绿茶 a lot")


def test_full_width_letters_are_letters() -> None:
    assert terms_of("ｔｅａ") == ["tea"]


def test_of_a_long_text_only_the_beginning_is_read() -> None:
    assert "late" not in terms_of("early " * CHARS_MAX + "late")


@settings(deadline=None)
@given(st.text())
def test_any_text_has_terms_that_are_words(text: str) -> None:
    found = terms_of(text)
    assert found == terms_of(text)
    assert all(term and not term.isspace() for term in found)


def test_a_group_of_related_words_goes_both_ways_and_a_narrowing_one_way() -> None:
    assert "bought" in RELATED["buy"]
    assert "buy" in RELATED["bought"]
    assert "dog" in RELATED["pet"]
    assert "pet" not in RELATED.get("dog", ())


def test_no_word_is_its_own_relative_or_means_nothing() -> None:
    for word, others in RELATED.items():
        assert word not in others
        assert others
        assert not NO_TERMS & {word, *others}


def test_a_time_of_day_is_one_word_and_a_label_is_not() -> None:
    assert words("at 9:30pm on day:3") == ["at", "9:30", "pm", "on", "day", "3"]


@pytest.mark.parametrize(
    ("said", "apart"),
    [
        ("she can't and won't", "she can not and will not"),
        ("it isn’t so", "it is not so"),
        ("they cannot", "they can not"),
        ("they shan't", "they shall not"),
        ("a canonical cannon", "a canonical cannon"),
    ],
)
def test_a_negation_is_a_word_of_its_own(said: str, apart: str) -> None:
    assert negations_apart(said) == apart


def test_words_that_are_written_again_keep_what_is_inside_of_them() -> None:
    assert written_words("Don't e-mail ada@example.org, please!") == ["Don't", "e-mail", "ada@example.org", "please"]


def test_a_lone_sign_has_no_neighbour() -> None:
    assert pairs("茶") == []
    assert pairs("绿茶水") == ["绿茶", "茶水"]


def test_the_forms_of_a_word_share_a_stem() -> None:
    assert stem("hobbies") == stem("hobby")
    assert stems(["hikes", "hiking"]) == [stem("hike")] * 2


def test_what_is_no_text_at_all_is_its_own_stem() -> None:
    assert stem("\ud800") == "\ud800"
