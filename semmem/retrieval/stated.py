"""What a user has said in this very request: a memory that says no more than that need not be shown.

To show a line once more costs a line; to hide one that the user did not say costs the answer. So a message counts only
where it is short and plain, and where its first sentence is the memory's statement, rather than one that holds its
words: "Outdated and wrong: User likes tea" does not say that somebody likes tea, and neither does "Do I like tea?"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import dropwhile, islice

from semmem.text.grounding import is_negative
from semmem.text.words import negations_apart, words

MESSAGE_CHARS_MAX = 300
MESSAGES_MAX = 10
"""So many of a request's messages are read, the newest; a request may have thousands."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_PASTED = re.compile(r"[\n\r:：\"“”„«»‹›「」『』`<>|]|(?<!\w)['‘’‚]|['’](?!\w)")
"""Signs of somebody else's words: several lines, a colon, quotation marks, tags, tables."""
_ASKED = re.compile("[?？؟]")
_TAKEN_BACK = re.compile(r"\b(?:that|this|it|right|true|correct|wrong|false|outdated|used to)\b", re.IGNORECASE)
"""What a later sentence may say of the first one."""
_OPENERS = frozenset(
    "and also so well hi hello hey there thank you good morning afternoon evening hallo hola bonjour ciao olá".split()
)
_PERSON = re.compile(r"\b(?:(?:the )?user(?:'s)?|i'm|i've|am|are|have)\b")
_FIRST_PERSON = {"user's": "my", "user": "i", "i'm": "i is", "i've": "i has", "am": "is", "are": "is", "have": "has"}


def statement(text: str) -> str:
    """A text folded: words only, in the first person, so that "User lives in Boston." and "I live in Boston" are the
    same. Empty where it has none."""
    line = _PERSON.sub(lambda person: _FIRST_PERSON[person[0].removeprefix("the ")], text.casefold().replace("’", "'"))
    return " ".join(map(_agreed, words(negations_apart(line))))


class Stated:
    """What the user's own messages of a request state, oldest first."""

    def __init__(self, said: Sequence[str]) -> None:
        self._said = said

    def holds(self, folded: str) -> bool:
        """Whether it, a ``statement``, is stated."""
        return folded != "" and folded in self._statements

    @cached_property
    def _statements(self) -> frozenset[str]:
        plain = (text.strip() for text in reversed(self._said) if len(text) <= MESSAGE_CHARS_MAX)
        newest = islice((text for text in plain if text and not _PASTED.search(text)), MESSAGES_MAX)
        return frozenset(said for text in newest for said in _stated_by(text))


def _stated_by(text: str) -> Iterator[str]:
    """The statement that a message opens with, behind a greeting, unless the rest of it may take that back."""
    sentences = iter(_SENTENCE_END.split(text))
    for first in sentences:
        found = statement(first).split()
        own = " ".join(dropwhile(_OPENERS.__contains__, found))
        if own or not found:
            break
    if not _ASKED.search(first) and not any(is_negative(later) or _TAKEN_BACK.search(later) for later in sentences):
        yield own


def _agreed(word: str) -> str:
    """The verb of "user" as that of "I". No stem, which has no tense: who lived in Rome does not live in Rome."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
