"""A text as tokens, each with the letter of its class and its value. One pass, bounded look at the neighbours.

The words are of five languages (lexicon.json). One letter is a class; ``grammar`` is written in them.

d  a day by its distance (value: days)     L T X  last, this, next (before)     l x  the same (after)
U  unit of time                            P  part of a day                     W w  weekday, short form
M  month                                   m c i  a month's word that means something else too (see ``tokens``)
S  season or feast    K  quarter           E  decade (value: its first year)    Y  year       r  years from-to
D  a whole date                            Z  year and month                    N O  number, ordinal     a  one, "a"
I  in, during         n  on                f  of         t  the                 e  beginning, end
A  ago                H  ago (before it)   R  from now   s  since    b  before  v  after      k  every
F  from, between      o  to, and           p  a plural noun                     , . -  themselves      ;  the rest"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from semmem.text.number_words import CARDINALS, FRENCH, GERMAN, SPANISH
from semmem.text.times import calendar
from semmem.text.times.calendar import MONTHS, WEEKDAYS, YEAR_MAX, YEAR_MIN, Interval

Entry = tuple[str, object]

AMBIGUOUS_MONTHS = {"march": 3, "april": 4, "may": 5, "june": 6, "august": 8, "mars": 3, "mai": 5, "mayo": 5}
"""Months that are also verbs, names, planets or sauces."""


_DATA = json.loads(Path(__file__).with_name("lexicon.json").read_text("utf-8"))


WORDS: dict[str, Entry] = {
    **{word: (letter, word) for letter, words in _DATA["plain"].items() for word in words.split()},
    **{name: ("W", number) for number, name in enumerate(WEEKDAYS)},
    **{name: ("M", number) for number, name in enumerate(MONTHS, 1) if name not in AMBIGUOUS_MONTHS},
    **{word: ("N", value) for word, value in CARDINALS.items() if value},
    # not the French "sept", which is September in more languages
    **{word: ("N", value) for some in (GERMAN, SPANISH, FRENCH) for word, value in some.items() if word != "sept"},
}
for _letter, _values in _DATA["valued"].items():
    for _name, _listed in _values.items():
        _value = int(_name) if _name.lstrip("-").isdigit() else _name
        WORDS |= dict.fromkeys(_listed.split(), (_letter, _value))

TELLING = (
    frozenset(word for word, (letter, _) in WORDS.items() if letter in "dPUWwMcSK")
    | AMBIGUOUS_MONTHS.keys()
    | {"aujourd"}
)
"""Every time is named with one of these words, or a digit, or in Chinese."""

PHRASES: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
for _words, _letter, _value in _DATA["phrases"]:
    PHRASES.setdefault(_words[0], []).append((tuple(_words), (_letter, _value)))
"""Several words that are one."""

MORNING_WORDS = frozenset({"morgen", "mañana"})
NOT_TOMORROW_AFTER = frozenset("heute gestern am guten jeden good la esta por de cada buena früher vom bis zum".split())
"""After these words, "morgen" and "mañana" are the morning."""

MAY_FOLLOW_A_MONTH = frozenset(
    "i we my our with about and when of de del du at in to on for from last this did was were do if because but".split()
)
"""A word in small letters that is a month only in doubt is one before these, before a number, or at the end."""

NOT_PLURAL = frozenset("is was as us has this his its does yes vs always".split())


OTHER: Entry = (";", None)
_TOKEN = re.compile(r"\d++(?:[.,:/-]\d++)++|\w++(?:['’]\w++)*+|[^\w\s]")
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|ère)")
_DECADE = re.compile(r"((?:19|20|21)\d)0['’]?s")
_POSSESSIVE = re.compile(r"['’]s$")
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2}))?")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")
_YEARS = re.compile(r"(\d{4})-(\d{4})")
_GLUED_BEFORE = frozenset("$€£¥#@.-/:,_=&?+v")
_GLUED_AFTER = frozenset("%$€£¥°/_=@")
_DIGITS_MAX = 3
_WORD_CHARS_MAX = 20


@dataclass(frozen=True, slots=True)
class Tokens:
    """``classes`` has one letter per token, ``values`` one value."""

    classes: str
    values: tuple[object, ...]


def tokens(text: str) -> Tokens:
    found = list(_TOKEN.finditer(text))
    words = [match.group().casefold().replace("’", "'") for match in found]
    entries: list[Entry] = []
    while len(entries) < len(found):
        i = len(entries)
        phrase = _phrase(words, i)
        if phrase:
            # the words after the first are there, and say nothing
            length, entry = phrase
            entries += [entry, *[("", None)] * (length - 1)]
        else:
            entries.append(_entry(text, found, words, i))
    kept = [entry for entry in entries if entry[0]]
    return Tokens("".join(letter for letter, _ in kept), tuple(value for _, value in kept))


def _phrase(words: Sequence[str], i: int) -> tuple[int, Entry] | None:
    for phrase, entry in PHRASES.get(words[i], ()):
        if tuple(words[i : i + len(phrase)]) == phrase:
            return len(phrase), entry
    return None


def _entry(text: str, found: Sequence[re.Match[str]], words: Sequence[str], i: int) -> Entry:
    word, raw = words[i], found[i].group()
    if raw[0].isdigit():
        glued = _glued(text, found[i].start(), found[i].end())
        return OTHER if glued or not raw.isascii() else _number(word)
    if len(word) > _WORD_CHARS_MAX:
        return OTHER
    if word in AMBIGUOUS_MONTHS:
        return _month(word, raw, words, i)
    if word in MORNING_WORDS and i and words[i - 1] in NOT_TOMORROW_AFTER:
        return "P", "part"
    if known := WORDS.get(word) or WORDS.get(_POSSESSIVE.sub("", word)):
        return known
    if word in (",", ".", "-"):
        return word, None
    plural = word == "people" or (word[-1] == "s" and word not in NOT_PLURAL and "'" not in word)
    return ("p", None) if plural and len(word) > 2 else OTHER


def _month(word: str, raw: str, words: Sequence[str], i: int) -> Entry:
    """``m`` with a capital, ``i`` in small letters, where what follows agrees; ``c`` with a capital where not."""
    following = words[i + 1] if i + 1 < len(words) else ""
    agrees = not following[:1].isalpha() or following in MAY_FOLLOW_A_MONTH
    if raw[0].isupper():
        return ("m" if agrees else "c"), AMBIGUOUS_MONTHS[word]
    return ("i", AMBIGUOUS_MONTHS[word]) if agrees else OTHER


def _glued(text: str, start: int, end: int) -> bool:
    """Whether a number is part of something larger: a price, a version, a path, a share."""
    if start and (text[start - 1] in _GLUED_BEFORE or text[start - 1].isalnum()):
        return True
    after = text[end : end + 2]
    if not after or after[0] in _GLUED_AFTER:
        return bool(after)
    return after[0] in ".-:" and after[1:].isalnum()


def _number(word: str) -> Entry:
    if word.isdigit():
        if len(word) == 4 and YEAR_MIN <= int(word) < YEAR_MAX:
            return "Y", int(word)
        return ("N", int(word)) if len(word) <= _DIGITS_MAX else OTHER
    if match := _ORDINAL.fullmatch(word):
        return "O", int(match[1])
    if match := _DECADE.fullmatch(word):
        return "E", int(match[1]) * 10
    return _date(word)


def _date(word: str) -> Entry:
    """2024-03-03 and its like, 14.03.2024, and 3/14/2024 where only one order of day and month is possible."""
    if match := _YEAR_FIRST.fullmatch(word):
        if match[4] is None:
            valid = match[2] == "-" and len(match[3]) == 2
            return ("Z", calendar.month(int(match[1]), int(match[3]))) if valid and 0 < int(match[3]) < 13 else OTHER
        return _dated(calendar.day_of(int(match[1]), int(match[3]), int(match[4])))
    if match := _YEAR_LAST.fullmatch(word):
        one, other, year = int(match[1]), int(match[3]), int(match[4])
        if match[2] == "." or one > 12:
            return _dated(calendar.day_of(year, other, one))
        return _dated(calendar.day_of(year, one, other)) if other > 12 or one == other else OTHER
    if match := _YEARS.fullmatch(word):
        first, last = int(match[1]), int(match[2])
        return "r", calendar.year(first, last - first + 1)
    return OTHER


def _dated(day: Interval | None) -> Entry:
    return ("D", day) if day else OTHER
