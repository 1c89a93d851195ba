"""What two texts say literally, in any language: the one who drops or retires a text must not lose a word of it.

Vectors and synonyms guess; the words themselves do not. So a text is dropped only when it is another one word for
word, and retired only when what it alone says is one phrase, for which the new text has another.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from semmem.extraction.contradiction.quantities import MONEY, UNIT, Number, Value, take_quantities
from semmem.extraction.contradiction.reading import INDEFINITE, OWN, PAST, listed
from semmem.text import stop_words
from semmem.text.number_words import CARDINALS, CHINESE_NUMERALS
from semmem.text.stop_words import ARTICLES
from semmem.text.times.names import MONTHS, WEEKDAYS
from semmem.text.words import UNSPACED, negations_apart

Tokens = tuple[str, ...]

TEXT_CHARS_MAX = 500
"""Facts are not longer (write_screen.fact_chars_max); of a longer text nothing is held to be known."""
CONVERTED_SHARE_MAX = 0.01
"""By so much of itself a quantity may differ that was converted into another unit."""

CHANGE = listed("newer")
"""Words that say no more than that the statement is the newer one."""
CONJUNCTIONS = (stop_words.CONJUNCTIONS - {"then"}) | listed("joining")
"""Words that begin another phrase: conjunctions and relative pronouns, of more languages than are read otherwise."""
BREAKS = frozenset(",;:()[]，；：、")

_REGION = re.compile(
    r"(\b(?:in|from|near|to|at|around|outside)(?: [A-Z][\w'-]{0,30}){1,3}),(?: [A-Z][\w'-]{0,30}){1,3}(?=[.;]?$)"
)
_CLOSING = '.!?。！？…"“”„«»'
_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)*|[{UNSPACED}]|[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)?|[^\w\s]|\w")
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
    for token in _TOKEN.findall(negations_apart(folded)):
        if _GROUPED.fullmatch(token):
            found.append(token.replace(",", ""))
        elif token not in _CLOSING:
            found.append(_SPELLED.get(token, token))
    return tuple(found[1:] if found[:1] == ["the"] else found)


def repeats(old: str, new: str) -> bool:
    """Whether the new text says what the old one says, word for word: articles, case and the spelling of numbers aside.

    Numbers, names, negations, their order and every other word are then the same, so that dropping the new text loses
    nothing. A paraphrase is not a repetition: no rule and no model knows that nothing is lost with it.
    """
    if max(len(old), len(new)) > TEXT_CHARS_MAX:
        return False
    left_out = ARTICLES | BREAKS
    one, other = ([token for token in tokens(text) if token not in left_out] for text in (old, new))
    return one == other


def change(old: str, new: str) -> Change | None:
    """The one stretch in which two texts differ, each side of it with at least one word; None when there is no such."""
    one, other = (tuple(token for token in tokens(text) if token not in CHANGE) for text in (old, new))
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
        elif token not in ARTICLES and token not in CHANGE:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]


def _shared(one: Tokens, other: Tokens) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
