"""What users write, and what memories say: no text is an error, and none takes long."""

from __future__ import annotations

import time

from semmem.dialects.answer import TextTail
from semmem.extraction.rules import facts_in
from semmem.memory import Conversation, Message, Role
from semmem.retrieval.context import CLOSING, HEADER, LINE_CHARS_MAX, OPENING, neutralise, strip_block
from semmem.retrieval.decide.signals import decide
from semmem.retrieval.query.build import build_query
from tests.fuzz.choices import Choices

LONG_CHARS = 8000
CPU_S_MAX = 1.0
"""For one input of LONG_CHARS characters, instrumented: a few times what it takes."""

FRAGMENTS = tuple(
    fragment.encode()
    for fragment in (
        *(" ", ", ", ". ", "! ", "? ", ": ", "; ", "\n", "\n\n", " - ", "... ", "'", '"', "“", "”", "`", "```", "> "),
        *("I ", "I'm ", "I am ", "my ", "My name is ", "I like ", "I don't like ", "I love ", "I hate ", "I prefer "),
        *("I live in ", "I work at ", "I have ", "we ", "our ", "you ", "he said ", "she ", "they ", "not ", "never "),
        *(
            "and ",
            "or ",
            "but ",
            "because ",
            "if ",
            "when ",
            "that ",
            "which ",
            "to ",
            "in ",
            "of ",
            "the ",
            "a ",
            "is ",
        ),
        *(
            "remember that ",
            "please ",
            "actually ",
            "no longer ",
            "instead of ",
            "moved to ",
            "allergic to ",
            "used to ",
        ),
        *(
            "budget ",
            "Hawaii ",
            "$10,000 ",
            "tea",
            "dog ",
            "Rex",
            "Berlin ",
            "2026",
            "first ",
            "then ",
            "step 1: ",
            "1. ",
        ),
        *(
            "ich ",
            "mag ",
            "mein ",
            "wohne in ",
            "je ",
            "j'aime ",
            "mon ",
            "me gusta ",
            "vivo en ",
            "我喜欢",
            "我",
            "的",
            "。",
        ),
        *(
            OPENING,
            CLOSING,
            HEADER,
            "<|im_start|>",
            "[INST]",
            "[/INST]",
            "system: ",
            "# ",
            "---",
            "===",
            "</",
            "<",
            ">",
        ),
        *("\u200b", "\u202e", "\x00", "\r", "\u2028", "\ufffd", "😀", "İ", "ß", "\U000e0041", "//", "@", "http://a.b "),
        *(
            "hello ",
            "thanks ",
            "what is ",
            "how much ",
            "user",
            "assistant",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "*",
            "_",
            "|",
        ),
    )
)


def text(data: bytes) -> None:
    """The target."""
    check_in_time(_said(Choices(data)))


def long_text(data: bytes) -> None:
    """The target: a piece of the text stands in its place very many times, so that what is not linear shows."""
    choices = Choices(data)
    start, length = choices.below(16), 1 + choices.below(16)
    said = _said(choices)[:LONG_CHARS]
    piece = said[start : start + length] or " "
    times = (LONG_CHARS - len(said)) // len(piece)
    check_in_time(said[:start] + piece * times + said[start:])


def _said(choices: Choices) -> str:
    """A text as it stands in the data, or one of fragments."""
    raw = choices.rest() if choices.below(2) == 0 else choices.joined(FRAGMENTS)
    return raw.decode("utf-8", "replace")


def check_in_time(said: str) -> None:
    started = time.process_time()
    check(said)
    took = time.process_time() - started
    assert took <= CPU_S_MAX, f"{took:.1f} s for {len(said)} characters"


def check(said: str) -> None:
    facts_in(said)
    line = neutralise(said)
    assert len(line) <= LINE_CHARS_MAX
    assert not set(line) & set("<>\n\r\u2028")
    without = strip_block(said)
    assert without == said or OPENING in said
    assert len(without) <= len(said)
    conversation = Conversation((Message(Role.USER, said), Message(Role.USER, said[::-1])))
    decide(conversation)
    assert len(build_query(conversation)) <= 2000
    kept = TextTail(bytes_max=64)
    kept.append(said)
    assert said.encode("utf-8", "replace").decode().endswith(kept.text())
