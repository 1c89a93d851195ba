"""The query: a clear question as it is, a vague one with what it is about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Conversation, Message, Role
from semmem.retrieval.query.build import KEY_TERMS_MAX, build_query, is_vague
from tests.core.retrieval.talk import asked
from tests.support.cpu_time import within_cpu_s


@pytest.mark.parametrize(
    "text",
    [
        "What's my budget?",
        "Where do I live?",
        "How old is my son?",
        "What is the name of that uncle?",
        "Who is Emma?",
        "Which school, Emma?",
        "Which car do I drive?",
        "How tall am I?",
        "What is photosynthesis?",
        "What's photosynthesis?",
        "Is my laptop still under warranty?",
        "Wo wohne ich?",
        "我的预算是多少？",
    ],
)
def test_a_question_that_stands_alone_is_searched_as_it_is(text: str) -> None:
    assert build_query(asked("We plan a vacation in Hawaii", text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "How much?",
        "What about that one?",
        "and the other?",
        "When is it due?",
        "Tell me more",
        "¿Cuánto?",
        "Und die andere?",
        "Et l'autre ?",
        "多少钱？",
        "那个呢？",
        "Which seat?",
        "How often?",
        "What helped?",
        "In which language?",
        "What was broken?",
        "And last year?",
        "Is it still under warranty?",
        "Wie teuer?",
        "¿Qué color?",
        "Quelle couleur ?",
    ],
)
def test_a_vague_question_gets_the_terms_of_what_came_before(text: str) -> None:
    assert build_query(asked("We plan a vacation in Hawaii", text)) == f"{text} plan vacation Hawaii"


def test_terms_come_newest_first_and_each_once() -> None:
    conversation = asked("Hotel or hostel in Lisbon?", "The Lisbon hotel near the castle", "How much?")
    assert build_query(conversation) == "How much? Lisbon hotel near castle hostel"


def test_only_three_messages_are_looked_at_and_thanks_do_not_count() -> None:
    conversation = asked("zero", "first topic", "second", "thanks!", "third", "ok", "How much?")
    assert build_query(conversation) == "How much? third second first topic"


def test_the_number_and_length_of_terms_are_bounded() -> None:
    words = [f"word{n}" for n in range(50)]
    conversation = asked(" ".join([*words, "x" * 41]), "x" * 41, "How much?")
    assert build_query(conversation) == " ".join(["How much?", *words[:KEY_TERMS_MAX]])


def test_only_what_the_user_said_is_searched() -> None:
    messages = (
        Message(Role.SYSTEM, "You sell boats"),
        Message(Role.USER, "We plan a vacation"),
        Message(Role.TOOL, "weather: rain"),
        Message(Role.USER, "How much?"),
        Message(Role.ASSISTANT, "For whom?"),
    )
    assert build_query(Conversation(messages)) == "How much? plan vacation"


def test_an_image_without_words_is_searched_by_what_came_before() -> None:
    assert build_query(asked("Our kitchen renovation", "")) == "kitchen renovation"
    assert build_query(asked("")) == ""
    assert build_query(Conversation(())) == ""


def test_of_a_long_message_the_beginning_and_the_end_are_kept() -> None:
    text = "Question first. " + "filler " * 1000 + "Where do I live?"
    query = build_query(asked(text), chars_max=100)
    assert len(query) == 100
    assert query.startswith("Question first.")
    assert query.endswith("Where do I live?")


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), min_size=1, max_size=5), st.integers(1, 300))
def test_a_query_is_never_longer_than_allowed(texts: list[str], chars_max: int) -> None:
    assert len(build_query(asked(*texts), chars_max=chars_max)) <= chars_max


def test_who_asks_for_all_that_is_remembered_is_not_understood_from_what_came_before() -> None:
    assert build_query(asked("Where do I find cheese in Lyon?", "Who am I?")) == "Who am I?"
    assert build_query(asked("Where do I find cheese in Lyon?", "Who was it?")) != "Who was it?"


def test_a_long_message_is_not_vague() -> None:
    assert not is_vague("so " * 9)
    assert is_vague("so " * 8)


@pytest.mark.parametrize(
    "conversation",
    [
        asked("hi" + " " * 4_000_000 + "x"),
        asked("who? " * 800_000),
        Conversation((Message(Role.USER, "We plan a trip to Hawaii"), *[Message(Role.USER, "thanks")] * 300_000)),
    ],
    ids=["spaces", "words", "thanks"],
)
def test_a_huge_conversation_costs_no_more_than_what_is_read_of_it(conversation: Conversation) -> None:
    assert within_cpu_s(0.05, lambda _: build_query(conversation))
    query = build_query(conversation)
    assert len(query) <= 2000
