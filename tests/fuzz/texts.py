"""What users write, and what memories say: no text is an error, and none takes long."""

from __future__ import annotations

import time

from semmem.dialects.bounded import TextTail
from semmem.extraction.rules import TEXT_CHARS_MAX, facts_in
from semmem.memory import Conversation, Message, Role
from semmem.retrieval.context import CLOSING, HEADER, LINE_CHARS_MAX, OPENING, neutralise, strip_block
from semmem.retrieval.query import build_query
from semmem.retrieval.signals import decide
from tests.fuzz.choices import Choices

CPU_S_MAX = 1.0
"""For one input of at most TEXT_CHARS_MAX characters, instrumented: fifty times what it takes."""

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
    said = text_of(Choices(data))
    started = time.process_time()
    check(said)
    took = time.process_time() - started
    assert took <= CPU_S_MAX, f"{took:.1f} s for {len(said)} characters"


def text_of(choices: Choices) -> str:
    """A text as it stands in the data, or of fragments; one in eight is long, with a piece many times in its middle."""
    long, place, built = choices.below(8) == 7, choices.below(256), choices.below(2) == 1
    raw = choices.joined(FRAGMENTS) if built else choices.rest()
    said = raw.decode("utf-8", "replace")
    if not long:
        return said
    head, piece = said[: place // 16], said[place // 16 : place // 16 + 1 + place % 16]
    tail = said[len(head) + len(piece) :]
    times = max(0, TEXT_CHARS_MAX - len(head) - len(tail)) // max(1, len(piece))
    return head + piece * times + tail


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
