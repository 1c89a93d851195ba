"""What a request states already: a memory that says no more than that need not be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from semmem.text.words import negations_apart, words

SAID_CHARS_MAX = 20_000
SENTENCES_MAX = 500
"""Of the request's own words only so many, the newest, are compared; a request may be megabytes long."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？\n])\s*")
_ASKS = re.compile(
    r"[?？]\s*$|^\W*+(?:what|when|where|who|whom|whose|which|why|how|if|whether|do|does|did|am|is|are|was|were|have|has|had"
    r"|can|could|should|would|will|tell me|remind me|remember)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:(?:the )?user(?:'s)?|i'm|i've|am|are|have)\b")
_FIRST_PERSON = {"user's": "my", "user": "i", "i'm": "i is", "i've": "i has", "am": "is", "are": "is", "have": "has"}
_PUT_IN = frozenset("i my is has not can will shall".split())
"""Words that stand in a folded text for others."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A text folded: words only, in the first person, so that "User lives in Boston." and "I live in Boston" are the
    same. Between spaces, so that it is found in another one by whole words; empty where it has none.

    ``sought``: words of it, the longest first, that stand in every text which states this, as they are or with an end.
    """

    folded: str
    sought: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Statement:
        folded = _folded(text)
        sought = {word for word in folded.split() if word.isascii() and word not in _PUT_IN}
        return cls(folded, tuple(sorted(sought, key=lambda word: (-len(word), word))))


class Stated:
    """What the texts of a request state, oldest first. "Do I like tea?" does not say that somebody likes tea."""

    def __init__(self, said: Sequence[str]) -> None:
        self._recent = list(_recent(said))

    def holds(self, statement: Statement) -> bool:
        """Whether it is stated. Folding all that was said takes long, so the words are looked for first."""
        if not statement.folded or not all(word in self._letters for word in statement.sought):
            return False
        return any(statement.folded in said for said in self._sentences)

    @cached_property
    def _letters(self) -> str:
        return _as_words_are("\n".join(self._recent))

    @cached_property
    def _sentences(self) -> list[str]:
        """Newest first, folded."""
        every = (sentence for text in self._recent for sentence in reversed(_SENTENCE_END.split(text)))
        newest = islice(every, SENTENCES_MAX)
        return [folded for one in newest if not _ASKS.search(one) and (folded := _folded(one))]


def _recent(said: Sequence[str]) -> Iterator[str]:
    """The texts, or their ends, newest first."""
    room = SAID_CHARS_MAX
    for text in filter(None, reversed(said)):
        if room <= 0:
            return
        recent = text[-room:]
        room -= len(recent)
        yield recent


def _as_words_are(text: str) -> str:
    return unicodedata.normalize("NFKC", text.casefold()).casefold()


def _folded(text: str) -> str:
    line = _PERSON.sub(_in_first_person, text.casefold().replace("’", "'"))
    found = " ".join(map(_agreed, words(negations_apart(line))))
    return f" {found} " if found else ""


def _in_first_person(person: re.Match[str]) -> str:
    return _FIRST_PERSON[person[0].removeprefix("the ")]


def _agreed(word: str) -> str:
    """The verb of "user" as that of "I". No stem, which has no tense: who lived in Rome does not live in Rome."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
