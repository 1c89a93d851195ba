"""A sentence about a user as slots that can be compared: whose, which attribute, yes or no, what, how much, when."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.phrases import OCCUPATIONS, PHRASES
from semmem.extraction.contradiction.quantities import Value, take_quantities
from semmem.text import stems, stop_words
from semmem.text.verbs import IRREGULAR_VERBS
from semmem.text.words import negations_apart, words

MARKS = "#-<>+!"
"""What a word of a phrase's meaning begins with that is no word (``phrases``)."""
PHRASE_WORDS_MAX = 6
TEXT_CHARS_MAX = 500
"""Facts are not longer (write_screen.fact_chars_max); what is cut off bounds the time of a comparison."""


STEMS_MAX = 8192
"""Words whose stem is kept at hand."""


@dataclass(frozen=True, slots=True)
class Statement:
    """``words`` are canonical stems of what is left once attributes, marks and quantities are taken out.

    ``subject``: the words of ``user's ... is``, empty when the user is the subject. ``names`` are capitalised.
    ``change`` says that something is not what it was, ``replaced`` even names both.
    """

    words: frozenset[str]
    subject: frozenset[str]
    attributes: frozenset[str]
    quantities: frozenset[Value]
    persons: frozenset[str]
    names: frozenset[str]
    negative: bool = False
    change: bool = False
    replaced: bool = False
    past: bool = False
    additional: bool = False


_FORMS = {form: base for base, forms in IRREGULAR_VERBS.items() for form in forms if form != base} | {
    form: base
    for line in lexicon.FORMS.splitlines()
    for base, _, forms in [line.partition(": ")]
    for form in forms.split()
}


@lru_cache(maxsize=STEMS_MAX)
def stem(word: str) -> str:
    """What a word shares with its other forms: ``hiking``, ``hiker`` and ``hikes`` are all ``hik``.

    More than ``stems.stem``: forms of irregular words too, and who does something has the stem of what is done.
    """
    word = stems.stem(_FORMS.get(word, word))
    if len(word) > 4:
        word = word.removesuffix("er")
    while len(word) > 3 and word[-1] in "yie":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def _phrases() -> dict[tuple[str, ...], list[str]]:
    table: dict[tuple[str, ...], list[str]] = {}
    for line in PHRASES.strip().splitlines():
        meaning, _, phrases = line.partition(": ")
        for phrase in phrases.split(" | "):
            table.setdefault(tuple(stem(word) for word in phrase.split()), meaning.split())
    for word in map(stem, OCCUPATIONS.split()):
        for article in ("a", "an"):
            table[("be", article, word)] = ["#job", "employed", *table.get((word,), [word])]
    return {phrase: [word if word[0] in MARKS else stem(word) for word in meaning] for phrase, meaning in table.items()}


_TABLE = _phrases()
_MEASURED = frozenset(f"#{name}" for name in lexicon.MEASURED)
_STARTS = frozenset(phrase[0] for phrase in _TABLE)
_STOP = frozenset(map(stem, (stop_words.ENGLISH - lexicon.COMPARED).union(lexicon.SAYS_LITTLE.split())))
_PERSONS = frozenset(stem(word) for word in lexicon.PERSONS) | lexicon.PERSONS
_NAME = re.compile(r"(?<!^)\b[A-Z]\w+|^[A-Z]\w+(?= [A-Z])")
_SUBJECT = re.compile(
    r"^(?:the )?user's (.+?) (?:is|are|was|were|has|have|had|runs?|goes|go|got|gets|takes?|uses?|moved|can|will|"
    r"live[sd]?|"
    r"costs?|comes?|speaks?|plays?|works?|studies|keeps?|collects?|likes?|loves?|hates?|starts?|ends?|falls?|measures?|"
    r"expires?|weighs?|died|needs?|wants?|tracks?|chats?|owns?|stays?|sits?|opens?|prefers?|drives?|eats?|drinks?|"
    r"meets?|turned|turns|went|allows?|includes?|contains?|became|changed|switched|changes|does|did|doesn't|isn't)\b"
)


def read(text: str) -> Statement:
    """The slots of one sentence."""
    text = unicodedata.normalize("NFKC", text[:TEXT_CHARS_MAX]).replace("’", "'")
    names = frozenset(stem(name.lower()) for name in _NAME.findall(text))
    quantities, rest = take_quantities(text.lower())
    found = _meanings(_tokens(rest))
    subject = _SUBJECT.match(rest.strip())
    told = frozenset(word for word in found if word[0].isalnum() and word not in _STOP)
    attributes = frozenset(word for word in found if word[0] == "#")
    return Statement(
        words=told,
        subject=_words(subject[1]) if subject else frozenset(),
        attributes=attributes if quantities else attributes - _MEASURED,
        quantities=quantities,
        persons=told & _PERSONS,
        names=names & told,
        negative=found.count("-") % 2 == 1,
        change=">" in found,
        replaced="!" in found,
        past="<" in found,
        additional="+" in found,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _meanings(_tokens(text)) if word[0].isalnum() and word not in _STOP)


def _tokens(text: str) -> list[str]:
    return [stem(word) for word in words(negations_apart(text)) if word not in ("user", "users")]


def _meanings(tokens: list[str]) -> list[str]:
    """The tokens with every phrase of the table, the longest first, replaced by its meaning."""
    found: list[str] = []
    at = 0
    while at < len(tokens):
        length = _phrase_length(tokens, at)
        if length:
            found += _TABLE[tuple(tokens[at : at + length])]
        else:
            found.append(tokens[at])
        at += max(1, length)
    return found


def _phrase_length(tokens: list[str], at: int) -> int:
    if tokens[at] not in _STARTS:
        return 0
    for length in range(min(PHRASE_WORDS_MAX, len(tokens) - at), 0, -1):
        if tuple(tokens[at : at + length]) in _TABLE:
            return length
    return 0
