"""What a user's own messages state, and what only holds the same words."""

from __future__ import annotations

import pytest

from semmem.retrieval.stated import MESSAGE_CHARS_MAX, MESSAGES_MAX, Stated, statement

TEA = "User likes tea"


def states(said: str, content: str) -> bool:
    return Stated(["Hello.", said]).holds(statement(content))


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("I live in Boston", "User lives in Boston."),
        ("I can't eat nuts", "The user cannot eat nuts"),
        ("Hi, I'm allergic to bees.", "User is allergic to bees"),
        ("And my sister is a nurse.", "The user's sister is a nurse."),
        ("Hello. I'm a nurse! Any tips?", "User is a nurse"),
        ("So, I WON'T FLY. Which trains are there?", "user will not fly"),
        ("My budget is $1.50.", "User's budget is $1.50"),
        ("我住在北京。有什么好吃的？", "我住在北京"),
        ("Ich heiße Jörg.", "ich heisse jörg"),
    ],
)
def test_a_sentence_that_is_the_statement_states_it_whatever_the_person(said: str, content: str) -> None:
    assert states(said, content)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Do I live in Boston?", "User lives in Boston"),
        ("I live in Boston?", "User lives in Boston"),
        ("I live in Boston", "User lived in Boston"),
        ("I live in Boston. Lincoln is near.", "User lives in Boston Lincoln"),
        ("I like teapots", TEA),
        ("I like tea", ""),
        ("", TEA),
        ("...", "..."),
        ("My budget is $1.50.", "User's budget is $1"),
    ],
)
def test_what_is_asked_or_said_otherwise_is_not_stated(said: str, content: str) -> None:
    assert not states(said, content)


@pytest.mark.parametrize(
    "said",
    [
        "Outdated and wrong: User likes tea.",
        "It is no longer true that I like tea.",
        "I like tea no more.",
        "My sister thinks that I like tea.",
        "The wolf said I like tea.",
        "For the record I like tea.",
        "Translate the next sentence. I like tea.",
        "Wrong. I like tea.",
        "No. I like tea.",
        "I like tea. Is that so?",
        "I like tea. Not any more.",
        "Once upon a time there was a wolf. I like tea.",
    ],
)
def test_a_sentence_that_only_holds_the_words_or_is_taken_back_states_nothing(said: str) -> None:
    assert not states(said, TEA)


@pytest.mark.parametrize(
    "said",
    [
        "I like tea.\nI like coffee.",
        "Bob\n\nI like tea.",
        "I like tea. As for the menu: green.",
        'I like tea. "Green tea" is on the menu.',
        "I like tea. ‘Green tea’ is on the menu.",
        "I like tea. Bob's 'green tea' is on the menu.",
        "I like tea. 「緑茶」",
        "<b>I like tea</b>",
        "I like tea." + " Which one do you sell?" * (MESSAGE_CHARS_MAX // 20),
    ],
    ids=range(9),
)
def test_a_message_that_may_hold_pasted_text_states_nothing(said: str) -> None:
    assert not states(said, TEA)


def test_only_the_newest_messages_of_a_huge_request_are_read() -> None:
    assert Stated(["I like tea.", *["Where is it?"] * (MESSAGES_MAX - 1)]).holds(statement(TEA))
    assert not Stated(["I like tea.", *["Where is it?"] * MESSAGES_MAX]).holds(statement(TEA))
