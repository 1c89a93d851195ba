"""A sentence about a user as what can be compared: words, names, quantities, whose it is, and the words of closed
classes (words.json) that deny, end, add or put into the past. For any subject alike: no word of a topic is listed.

And what two texts say literally, in any language. Vectors and synonyms guess; the words themselves do not. So a text is
dropped only when it is another one word for word, and retired only when what it alone says is one phrase, for which the
new text has another."""

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from semmem.extraction.contradiction.quantities import MONEY, UNIT, Number, Value, take_quantities
from semmem.text import stop_words
from semmem.text.number_words import CARDINALS, CHINESE_NUMERALS
from semmem.text.quoting import unquoted
from semmem.text.stems import IRREGULAR_VERBS, stems
from semmem.text.times.calendar import MONTHS, WEEKDAYS
from semmem.text.words import UNSPACED, negations_apart

TEXT_CHARS_MAX = 500
"""Facts are not longer (write_screen.fact_chars_max): more is not compared, and of a longer text nothing is known."""

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
    when the user is."""

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
    kin = frozenset(_CALLED.get(word, word) for word in (word.removesuffix("'s") for word in words) if word in KIN)
    denied, owner, marks = _denied(words, stemmed), _owner(words), _marks(words)
    negations, quoted = sum(word in NEGATIONS for word in words), bare != text
    return Told(words, stemmed, content, names & content, quantities, kin, denied, owner, negations, marks, quoted)


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


Tokens = tuple[str, ...]

CONVERTED_SHARE_MAX = 0.01
"""By so much of itself a quantity may differ that was converted into another unit."""

NEWER = listed("newer")
"""Words that say no more than that the statement is the newer one."""
CONJUNCTIONS = (stop_words.CONJUNCTIONS - {"then"}) | listed("joining")
"""Words that begin another phrase: conjunctions and relative pronouns, of more languages than are read otherwise."""
BREAKS = frozenset(",;:()[]，；：、")

_REGION = re.compile(
    r"(\b(?:in|from|near|to|at|around|outside)(?: [A-Z][\w'-]{0,30}){1,3}),(?: [A-Z][\w'-]{0,30}){1,3}(?=[.;]?$)"
)
_CLOSING = '.!?。！？…"“”„«»'
_LITERAL = re.compile(rf"\d+(?:[.,:]\d+)*|[{UNSPACED}]|[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)?|[^\w\s]|\w")
"""More than ``words.WORD``: nothing is left out, and units stand apart from their numbers ("10k", "5pm")."""
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_SPELLED = {word: str(value) for word, value in CARDINALS.items()}
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAYS = frozenset(MONTHS) | frozenset(month[:3] for month in MONTHS) | frozenset(WEEKDAYS)
_CLOCK = frozenset({"am", "pm", "o'clock"})
_MEASURES = frozenset(MONEY) | frozenset(UNIT) | frozenset({"%", "°", "k"})


@dataclass(frozen=True, slots=True)
class Change:
    """Two texts that are alike but for one stretch: ``before`` and ``after`` are what they share around it."""

    before: Tokens
    old: Tokens
    new: Tokens
    after: Tokens

    @property
    def of_quantities(self) -> bool:
        """Whether one number, day or time stands for another."""
        return is_quantity(self.old) and is_quantity(self.new)


def tokens(text: str) -> Tokens:
    """Words, numbers and signs as they are compared: folded, numerals as digits, a negation apart from its verb."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'").casefold().strip()
    found: list[str] = []
    for token in _LITERAL.findall(negations_apart(folded)):
        if _GROUPED.fullmatch(token):
            found.append(token.replace(",", ""))
        elif token not in _CLOSING:
            found.append(_SPELLED.get(token, token))
    return tuple(found[1:] if found[:1] == ["the"] else found)


def repeats(old: str, new: str) -> bool:
    """Whether the new text says what the old one says, word for word: articles, case and the spelling of numbers aside.
    Numbers, names, negations, their order and every other word are then the same, so that dropping the new text loses
    nothing. A paraphrase is not a repetition: no rule and no model knows that nothing is lost with it."""
    if max(len(old), len(new)) > TEXT_CHARS_MAX:
        return False
    left_out = stop_words.ARTICLES | BREAKS
    one, other = ([token for token in tokens(text) if token not in left_out] for text in (old, new))
    return one == other


def change(old: str, new: str) -> Change | None:
    """The one stretch in which two texts differ, each side of it with at least one word; None when there is no such."""
    one, other = (tuple(token for token in tokens(text) if token not in NEWER) for text in (old, new))
    start = _shared(one, other)
    end = _shared(one[start:][::-1], other[start:][::-1])
    changed = Change(one[:start], one[start : len(one) - end], other[start : len(other) - end], one[len(one) - end :])
    return changed if changed.before and changed.old and changed.new else None


def is_quantity(stretch: Tokens) -> bool:
    """Whether it is a number, a day or a time and nothing else. A year is none: what happened in one stays true."""
    return (
        any(token[0].isdigit() or token in _DAYS or token in CHINESE_NUMERALS for token in stretch)
        and all(token[0].isdigit() or token in _DAYS | _CLOCK | _MEASURES | CHINESE_NUMERALS for token in stretch)
        and not any(_YEAR.fullmatch(token) for token in stretch)
    )


def is_year(stretch: Tokens) -> bool:
    return len(stretch) == 1 and _YEAR.fullmatch(stretch[0]) is not None


def replaced_quantity(old: str, new: str) -> bool:
    """Whether another number is said of the same thing, and all else is alike. A date or time counts only for something
    that belongs to somebody ("the user's exam"): else there may be two such days."""
    changed = change(old, new)
    if changed is None or not changed.of_quantities:
        return False
    if not INDEFINITE.isdisjoint(changed.before) or tells_an_event(changed.before):
        return False
    dated = any(token in _DAYS | _CLOCK or ":" in token for token in (*changed.old, *changed.new))
    return not dated or any(token.endswith("'s") or token in OWN for token in changed.before)


def same_quantity(old: str, new: str) -> bool:
    """Whether they are alike but for how one number is written ("28k" and "28,000", "15:00" and "3 pm")."""
    changed = change(old, new)
    if changed is None or not changed.of_quantities:
        return False
    one, other = (take_quantities(text.lower())[0] for text in (old, new))
    apart = set(one).difference(other)
    return len(one) == len(other) > 0 and all(any(_is_equal(a, b) for b in other) for a in apart)


def _is_equal(one: Value, other: Value) -> bool:
    a, b = one[1], other[1]
    if one[0] == other[0] and isinstance(a, Number) and isinstance(b, Number) and a.unit != b.unit:
        return abs(a.amount - b.amount) <= CONVERTED_SHARE_MAX * max(abs(a.amount), abs(b.amount))
    return one == other


def tells_an_event(before: Tokens) -> bool:
    """Whether a past event is told: with another number it is another event, and the first one stays true."""
    return any((len(token) > 4 and token.endswith("ed")) or token in PAST for token in before)


def without_region(text: str) -> str:
    """Of a place that a text ends with, the name alone: "in Boston, Massachusetts" tells one thing, not two."""
    return _REGION.sub(r"\1", text)


def clauses(text: str) -> list[Tokens]:
    """The stretches between conjunctions and commas, without articles and words of change; empty ones are left out."""
    parts: list[list[str]] = [[]]
    for token in tokens(text):
        if token in CONJUNCTIONS or token in BREAKS:
            parts.append([])
        elif token not in stop_words.ARTICLES and token not in NEWER:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]


def _shared(one: Tokens, other: Tokens) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
