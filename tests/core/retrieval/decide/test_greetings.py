"""What is nothing but courtesy, and what only begins with it."""

from __future__ import annotations

import pytest

from semmem.retrieval.decide.greetings import CHARS_MAX, is_social
from tests.support.cpu_time import within_cpu_s


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
        "hi " * CHARS_MAX,
    ],
)
def test_anything_more_is_not(text: str) -> None:
    assert not is_social(text)


@pytest.mark.parametrize("text", ["you " * 30, "how are " * 15, "i'm " * 30, "what's " * 17, "好" * 120, "a'" * 60])
def test_no_text_takes_long(text: str) -> None:
    assert within_cpu_s(0.05, lambda _: is_social(text))
