"""The decision: its order, its words, and who may overrule whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Conversation, Message, Role
from semmem.retrieval.decide.signals import RULES, SEARCH, decide
from tests.core.retrieval.talk import asked


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Hello!", "greeting"),
        ("Hi, what's my budget?", "search"),
        ("What is the capital of Peru?", "search"),
        ("What is my budget?", "search"),
        ("", "search"),
    ],
)
def test_the_last_user_message_decides(text: str, word: str) -> None:
    assert decide(asked("Thanks!", text)) == word


def test_what_the_assistant_says_after_it_does_not_matter() -> None:
    messages = (Message(Role.USER, "Where do I live?"), Message(Role.ASSISTANT, "Hello!"))
    assert decide(Conversation(messages)) == SEARCH


def test_a_tool_turn_is_skipped_after_the_other_rules_had_their_say() -> None:
    assert decide(asked("Which of my flights is late?", tool_turn=True)) == "tool_turn"
    assert decide(asked("Thanks!", tool_turn=True)) == "greeting"
    assert [word for word, _ in RULES] == ["greeting", "general_fact", "tool_turn"]


def test_an_earlier_filters_verdict_replaces_our_own() -> None:
    assert decide(asked("Photosynthesis in ferns"), fact=True) == "general_fact"
    assert decide(asked("What is the capital of Peru?"), fact=False) == SEARCH
    assert decide(asked("Weather in Lima"), tool=True) == "tool_turn"
    assert decide(asked("Weather in Lima", tool_turn=True), tool=False) == SEARCH


@pytest.mark.parametrize(
    "text",
    [
        "What is my budget?",
        "¿Cuál es mi presupuesto?",
        "Wie hoch ist mein Budget?",
        "Quel est mon budget ?",
        "我的预算是多少？",
    ],
)
def test_a_question_about_the_user_is_searched_whatever_the_fact_verdict(text: str) -> None:
    assert decide(asked(text), fact=True) == SEARCH


@settings(deadline=None)
@given(st.text(), st.none() | st.booleans(), st.none() | st.booleans(), st.booleans())
def test_any_text_gets_one_of_the_words(text: str, fact: bool | None, tool: bool | None, tool_turn: bool) -> None:
    word = decide(asked(text, tool_turn=tool_turn), fact=fact, tool=tool)
    assert word in {"greeting", "general_fact", "tool_turn", "search"}
