"""The decision: its order, its words, and who may overrule whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Conversation, Message, Role
from semmem.retrieval.decide.signals import GREETING_CHARS_MAX, OPEN_CHARS_MAX, SEARCH, asks_for_all, decide, is_social
from tests.core.retrieval.talk import asked
from tests.support.cpu_time import within_cpu_s


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


# --- what is nothing but courtesy, and what only begins with it ------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Hi",
        "hello there!",
        "Heyyyy",
        "Good morning, Claude!",
        "How are you doing?",
        "hey, what's up?",
        "Nice to meet you",
        "thanks a lot!",
        "Thank you so much for your help :)",
        "You’ve been a big help",
        "ok",
        "Yes please.",
        "No, that's wrong.",
        "I don't know",
        "sounds good, see you tomorrow",
        "bye-bye",
        "I have to go, goodbye",
        "👋",
        "👍🏽",
        "¡Hola! ¿Qué tal?",
        "Buenos días",
        "muchas gracias",
        "Danke schön!",
        "Wie geht es dir?",
        "tschüss, bis morgen",
        "Bonjour, ça va ?",
        "Merci beaucoup",
        "你好！",
        "谢谢你",
        "好的，再见",
    ],
)
def test_courtesies_alone_are_social(text: str) -> None:
    assert is_social(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "?",
        "Hi, what's my budget?",
        "hello, remind me of the dentist",
        "thanks, how much was it?",
        "How is it going with my project?",
        "what's up with my order",
        "meeting tomorrow",
        "Good morning routine",
        "see you at the dentist",
        "talk to Anna",
        "yes, the second one",
        "no, 5",
        "was I right?",
        "did I say yes",
        "is my day off approved",
        "nice hotel in Rome",
        "Hola, ¿cuál es mi presupuesto?",
        "Danke, und mein Termin?",
        "Merci, et mon rendez-vous ?",
        "你好，我的预算是多少？",
        "是谁",
        "好吃的餐厅",
        "hi " * GREETING_CHARS_MAX,
    ],
)
def test_anything_more_is_not(text: str) -> None:
    assert not is_social(text)


@pytest.mark.parametrize("text", ["you " * 30, "how are " * 15, "i'm " * 30, "what's " * 17, "好" * 120, "a'" * 60])
def test_no_text_takes_long(text: str) -> None:
    assert within_cpu_s(0.05, lambda _: is_social(text))


# --- which requests ask for all that is remembered -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "What do you remember?",
        "so, what do you know about me so far?",
        "What's in your memory?",
        "WHAT HAVE YOU SAVED ABOUT ME",
        "Hi! Do you still remember me?",
        "Tell me everything you know about me, please.",
        "list your memories",
        "Do you know anything about me?",
        "Have you saved anything?",
        "Who am I?",
        "Do you know who I am?",
        "Was weißt du über mich?",
        "Woran erinnerst du dich noch?",
        "¿Qué recuerdas de mí?",
        "Que sais-tu de moi ?",
    ],
)
def test_a_request_that_names_no_topic_asks_for_all(text: str) -> None:
    assert asks_for_all(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What do you remember about the trip?",
        "What do you know about bees?",
        "What do you know about us tax law?",
        "Do you know anything about knitting?",
        "Do you remember when we met?",
        "Who am I meeting at ten?",
        "Remember that I like tea.",
        "I don't know",
        "Do you know what?",
        "Do you know something?",
        "What do you think?",
        "What do we know?",
        "Tell me everything about Rome.",
        "How much memory do you have?",
        "Wer bin ich in dem Stück?",
    ],
)
def test_one_that_names_a_topic_or_asks_nothing_does_not(text: str) -> None:
    assert not asks_for_all(text)


def test_a_long_one_is_not_read() -> None:
    assert not asks_for_all("What do you remember?" + "!" * OPEN_CHARS_MAX)


@given(st.lists(st.sampled_from(["what", "do", "you", "know", "me", "so", "tell me", "all", "about", "was", "que"])))
def test_no_order_of_its_words_takes_long(words: list[str]) -> None:
    text = " ".join(words)[:OPEN_CHARS_MAX]
    assert within_cpu_s(0.02, lambda _: asks_for_all(text))
