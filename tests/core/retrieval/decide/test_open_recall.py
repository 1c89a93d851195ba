"""Which requests ask for all that is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.retrieval.decide.open_recall import READ_CHARS_MAX, asks_for_all
from tests.support.cpu_time import within_cpu_s


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
    assert not asks_for_all("What do you remember?" + "!" * READ_CHARS_MAX)


@given(st.lists(st.sampled_from(["what", "do", "you", "know", "me", "so", "tell me", "all", "about", "was", "que"])))
def test_no_order_of_its_words_takes_long(words: list[str]) -> None:
    text = " ".join(words)[:READ_CHARS_MAX]
    assert within_cpu_s(0.02, lambda _: asks_for_all(text))
