"""What people put before the thing itself, and what they ask to be remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.lead_ins import READ_CHARS_MAX, lead_in
from semmem.extraction.rules import facts_in
from tests.support.cpu_time import within_cpu_s


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Remember: I live in Boston.", "I live in Boston."),
        ("Remember, I am allergic to nuts.", "I am allergic to nuts."),
        ("Please remember that my dog is called Rex.", "my dog is called Rex."),
        ("Don't forget my mother arrives on Sunday.", "my mother arrives on Sunday."),
        ("Oh, and please keep in mind that I hate coriander.", "I hate coriander."),
        ("Hey, keep in mind that I hate coriander.", "I hate coriander."),
        ("Can you remember that my locker is number 14?", "my locker is number 14"),
        ("Bitte merk dir: ich wohne in Ulm.", "ich wohne in Ulm."),
        ("Recuerda que yo soy celíaco.", "yo soy celíaco."),
    ],
)
def test_what_is_of_the_users_own_and_to_be_remembered_is_kept_without_its_lead_in(text: str, said: str) -> None:
    found = clauses(text)
    assert [clause.text for clause in found if clause.to_keep] == [said]


@pytest.mark.parametrize(
    "text",
    [
        "Remember my name.",
        "Do you remember my dog?",
        "Do you remember that I like tea?",
        "Can you remember my dog's name?",
        "Remember to answer in French.",
        "Remember when I moved to Ulm?",
        "Keep in mind that the essay should have 500 words.",
        "Note that I is an operator here.",
        "I remember that my uncle was kind.",
    ],
)
def test_other_words_of_remembering_ask_for_nothing(text: str) -> None:
    assert not any(clause.to_keep for clause in clauses(text))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember: I live in Boston.", "User lives in Boston"),
        ("Please remember that my badge number is 4417-B.", "User's badge number is 4417-B"),
        ("By the way, I am allergic to nuts.", "User is allergic to nuts"),
    ],
)
def test_it_is_phrased_as_if_it_had_been_said_alone(text: str, content: str) -> None:
    assert [fact.content for fact in facts_in(text)] == [content]


def test_a_correction_keeps_the_word_that_tells_it_is_one() -> None:
    [clause] = clauses(text := "Actually, I moved to Rome.")
    assert (clause.text, text[clause.start :]) == ("I moved to Rome.", text)


def test_and_what_is_nothing_without_that_word_keeps_it_too() -> None:
    assert [clause.text for clause in clauses("Sorry, 14 not 12.")] == ["Sorry, 14 not 12."]


def test_what_is_asked_in_the_same_breath_is_asked_all_the_same() -> None:
    text = "Remember that I am a vegan, what should I cook for eight people?"
    assert [(clause.to_keep, clause.asked) for clause in clauses(text)] == [(True, True), (False, True)]
    assert [fact.content for fact in facts_in(text)] == ["User is a vegan"]


def test_of_a_long_message_each_sentence_has_its_own() -> None:
    text = "The weather is fine. Remember that I live in Ulm, and my sister in Bonn. What shall I cook?"
    assert [(clause.text, clause.to_keep) for clause in clauses(text)] == [
        ("The weather is fine.", False),
        ("I live in Ulm", True),
        ("and my sister in Bonn.", False),
        ("What shall I cook?", False),
    ]


@given(st.text(), st.sampled_from(["", "Remember: ", "please remember that ", "Actually, ", "oh, hey, so, "]))
def test_a_lead_in_takes_nothing_of_what_is_said(text: str, lead: str) -> None:
    told = squeezed(f"{lead}{text}")
    found = lead_in(told, 0, len(told), asked=False)
    assert 0 <= found.written <= found.said <= min(READ_CHARS_MAX, len(told))
    assert found.said < len(told) or found.said == 0
    for clause in clauses(told):
        assert 0 <= clause.start < clause.end <= len(told)


@given(st.lists(st.sampled_from(["please ", "so, ", "oh, ", "hey ", "remember ", "that ", "can you ", "no, "])))
def test_no_order_of_them_takes_long(words: list[str]) -> None:
    text = "".join(words)
    assert within_cpu_s(0.02, lambda _: lead_in(text, 0, len(text), asked=False))
