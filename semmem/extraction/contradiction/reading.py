"""A sentence about a user as what can be compared: words, names, quantities, whose it is, and the words of closed
classes (words.json) that deny, end, add or put into the past. For any subject alike: no word of a topic is listed."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from semmem.extraction.contradiction.quantities import Value, take_quantities
from semmem.text import stop_words
from semmem.text.quoting import unquoted
from semmem.text.stems import stems
from semmem.text.times.names import MONTHS, WEEKDAYS
from semmem.text.verbs import IRREGULAR_VERBS
from semmem.text.words import UNSPACED, negations_apart

TEXT_CHARS_MAX = 500
"""Facts are not longer (write_screen.fact_chars_max); what is cut off bounds the time of a comparison."""


_WORDS = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))


def listed(name: str) -> frozenset[str]:
    """The words of words.json under a name."""
    return frozenset(" ".join(_WORDS[name]).split())


SELF = listed("self")
"""Who tells: "User" in a fact is "I" in the user's own words."""
OWN = listed("own")
NEGATIONS = stop_words.NEGATIONS | listed("negations")
ENDING = listed("ending")
"""What says that something has come to its end. Not "until": what lasts until May lasts."""
CHANGE = listed("change")
"""What says that something is not what it was."""
ADDING = listed("adding")
PAST = listed("past") | {past for past, _ in IRREGULAR_VERBS.values()} - frozenset(
    "cost set put read cut let hurt quit".split()
)
CORRECTING = listed("correcting")
"""What a correction opens with."""
DIRECTIONS = listed("directions")
"""Prepositions that make something else of what stands behind them."""
INDEFINITE = listed("indefinite")
KIN = listed("kin")
"""Who belongs to somebody: what is said of one of them is not said of another."""
_CALLED = {name: line.split()[0] for line in _WORDS["called"] for name in line.split()[1:]}
"""Other words for the same person."""
FUNCTION = (
    stop_words.ENGLISH
    | stop_words.GERMAN
    | stop_words.SPANISH
    | stop_words.FRENCH
    | SELF
    | frozenset({"s", "re", "ve", "ll", "d", "m", "t"})
) - NEGATIONS
MARKS = {"ends": ENDING, "changes": CHANGE, "adds": ADDING, "past": PAST, "corrects": CORRECTING}
"""What a statement may be marked as; a correction only by its first word."""

_CALENDAR = frozenset(MONTHS) | frozenset(WEEKDAYS)
_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)*|[{UNSPACED}]|[^\W\d_{UNSPACED}]+(?:['-][^\W\d_{UNSPACED}]+)*")
_NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z]\w+")


@dataclass(frozen=True, slots=True)
class Told:
    """``words`` in their order with the ``stem`` of each; ``content`` are the stems of those that are no grammar.

    ``owner``: the word after a leading "User's" or "my", or the first word where somebody else is the subject; empty
    when the user is.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]
    names: frozenset[str]
    quantities: frozenset[Value]
    kin: frozenset[str]
    denied: frozenset[str]
    owner: str
    negations: int
    marks: frozenset[str]
    quoted: bool


def read(text: str) -> Told:
    """What a text says, its own quotation marks aside."""
    bare = unquoted(text)
    folded = unicodedata.normalize("NFKC", bare[:TEXT_CHARS_MAX]).replace("’", "'")
    lowered = folded.lower().replace("i'm ", "i am ")
    quantities, _ = take_quantities(lowered)
    words = tuple(_TOKEN.findall(negations_apart(lowered)))
    stemmed = tuple(stems([word.removesuffix("'s") for word in words]))
    names = frozenset(stems([name for name in map(str.lower, _NAME.findall(folded)) if name not in _CALENDAR]))
    content = frozenset(
        stem for word, stem in zip(words, stemmed, strict=True) if word not in FUNCTION and word not in NEGATIONS
    )
    return Told(
        words,
        stemmed,
        content,
        names & content,
        quantities,
        frozenset(_CALLED.get(word, word) for word in (word.removesuffix("'s") for word in words) if word in KIN),
        _denied(words, stemmed),
        _owner(words),
        sum(word in NEGATIONS for word in words),
        _marks(words),
        bare != text,
    )


def _marks(words: tuple[str, ...]) -> frozenset[str]:
    found = {name for name, marks in MARKS.items() if not marks.isdisjoint(words)} - {"corrects", "adds"}
    if words[:1] and words[0] in CORRECTING:
        found.add("corrects")
    if any(word in ADDING and _adds(words, place) for place, word in enumerate(words)):
        found.add("adds")
    return frozenset(found)


def _adds(words: tuple[str, ...], place: int) -> bool:
    """Whether the word there says that something comes on top: not in "too sad", "never another", "nur noch"."""
    word, before, after = words[place], words[max(0, place - 3) : place], words[place + 1 : place + 2]
    if word == "too":
        return not after or after[0] in FUNCTION
    if word == "noch":
        return "nur" not in before[-1:]
    return word != "another" or NEGATIONS.isdisjoint(before)


def _owner(words: tuple[str, ...]) -> str:
    rest = words[1:] if words[:1] == ("the",) else words
    if not rest or (rest[0] in SELF and rest[0] not in OWN):
        return ""
    return rest[1] if rest[0] in OWN and len(rest) > 1 else rest[0]


def _denied(words: tuple[str, ...], stemmed: tuple[str, ...]) -> frozenset[str]:
    """The stems of the words that follow a negation, up to two of content."""
    found: set[str] = set()
    left = 0
    for word, stem in zip(words, stemmed, strict=True):
        if word in NEGATIONS:
            left = 2
        elif left and word not in FUNCTION:
            found.add(stem)
            left -= 1
    return frozenset(found)


def swapped(old: Told, new: Told) -> bool:
    """Whether the words of content that both have stand in another order."""
    shared = old.content & new.content
    return [s for s in old.stems if s in shared] != [s for s in new.stems if s in shared]
