"""Numbers, units, dates and times of a sentence, in units that can be compared; their words are in quantities.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semmem.text.number_words import CARDINALS, MULTIPLES, ORDINALS, TENS
from semmem.text.times.calendar import MONTHS, WEEKDAYS
from semmem.text.words import WORD

NUMBERS = {**CARDINALS, **{word: value for word, value in ORDINALS.items() if value > 3}, "dozen": 12}
"""Without "first", "second" and "third", which tell things apart."""
SCALES = {"k": 1e3, "m": 1e6, "grand": 1e3, **{word: float(value) for word, value in MULTIPLES.items()}}

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
HOLIDAYS: dict[str, tuple[int, int]] = {name: (month, day) for name, (month, day) in _DATA["holidays"].items()}
UNIT: dict[str, tuple[str, float]] = {}
for _dimension, _listed in _DATA["units"].items():
    _parts = _listed.split()
    for _name, _factor in zip(_parts[::2], _parts[1::2], strict=True):
        UNIT[_name] = UNIT[_name + "s"] = (_dimension, float(_factor))
MONEY = {name: sign for sign, names in _DATA["money"].items() for name in (sign, *names.split())}
MONEY |= {name + "s": sign for name, sign in MONEY.items() if len(name) > 1}

Value = tuple[str, object]
"""What kind of thing it is (``day``, ``length``, ...), and its value; numbers come with the unit as it was written."""


@dataclass(frozen=True, slots=True)
class Number:
    """``amount`` in the dimension's own unit; two that were written in the ``same`` unit must agree exactly."""

    amount: float
    unit: str

    def agrees(self, other: Number) -> bool:
        if self.unit == other.unit:
            return self.amount == other.amount
        return abs(self.amount - other.amount) <= 0.04 * max(abs(self.amount), abs(other.amount))


_WORDS = "|".join(NUMBERS)
_MONTH = "|".join(f"{month}|{month[:3]}" for month in MONTHS if month != "may") + "|may"
_SAID = tuple((re.compile(pattern), digits) for pattern, digits in _DATA["said"])
_UNITS = "|".join(word for word, value in CARDINALS.items() if 0 < value < 10)
_TENS = re.compile(rf"\b({'|'.join(TENS)})[ -]({_UNITS})\b")
_NUMBER_WORD = re.compile(rf"\b({_WORDS})\b")
_HALF_PAST = re.compile(r"\b(half|quarter) (past|to) (\d\d?)\b")


def spelled_as_digits(text: str) -> str:
    """Lower-case text with number words, halves and dozens as digits."""
    for pattern, digits in _SAID:
        text = pattern.sub(digits, text)
    text = _TENS.sub(lambda found: str(NUMBERS[found[1]] + NUMBERS[found[2]]), text)
    text = _NUMBER_WORD.sub(lambda found: str(NUMBERS[found[1]]), text)
    return _HALF_PAST.sub(_clock_phrase, text)


def _clock_phrase(found: re.Match[str]) -> str:
    minutes = (30 if found[1] == "half" else 15) * (1 if found[2] == "past" else -1)
    total = int(found[3]) * 60 + minutes
    return f"{total // 60}:{total % 60:02d}"


def month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, 1) if month[:3] == name[:3])


def _clock(hour: str, minute: str | None, half: str | None) -> Value:
    hours = int(hour) % 12 if half else int(hour)
    if half and half.startswith("p"):
        hours += 12
    return "time", hours * 60 + int(minute or 0)


def _amount(found: re.Match[str]) -> Value | None:
    sign, digits, word = found["sign"], found["digits"].rstrip("."), (found["word"] or "")
    amount = float(digits.replace(",", ""))
    if word in SCALES and word != "m":
        amount, word = amount * SCALES[word], found["after"] or ""
    if sign or word in MONEY:
        return "money", Number(amount, MONEY[sign or word])
    if word in UNIT and found["after"] not in ("old", "age"):
        dimension, factor = UNIT[word]
        return dimension, Number(round(amount * factor, 4), word.rstrip("s"))
    if word not in ("degree", "degrees", "celsius", "fahrenheit", "c", "f", "°c", "°f"):
        return "count", Number(amount, "")
    if "fahrenheit" in (word, found["after"]) or word in ("f", "°f"):
        return "temperature", Number(round((amount - 32) / 1.8, 1), "F")
    return "temperature", Number(amount, "C")


_HOLIDAY = re.compile(r"\b(" + "|".join(sorted(HOLIDAYS, key=len, reverse=True)) + r")\b")
_FREQUENCIES: dict[str, str] = _DATA["frequencies"]

_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Value | None]], ...] = (
    (_HOLIDAY, lambda found: ("day", HOLIDAYS[found[1]])),
    (re.compile(r"\b\d{4}-(\d\d)-(\d\d)\b"), lambda found: ("day", (int(found[1]), int(found[2])))),
    (
        re.compile(rf"\b(?:the )?(\d\d?)(?:st|nd|rd|th)? (?:of )?({_MONTH})\b\.?"),
        lambda found: ("day", (month_number(found[2]), int(found[1]))),
    ),
    (
        re.compile(rf"\b({_MONTH})\.? (?:the )?(\d\d?)(?:st|nd|rd|th)?\b(?! *:)"),
        lambda found: ("day", (month_number(found[1]), int(found[2]))),
    ),
    (re.compile(r"\b(0?[1-9]|1[0-2])/((?:19|20)\d\d)\b"), lambda found: ("month", int(found[1]))),
    (
        re.compile(rf"\b(?:in|until|to|of|for|since|every|by|this|next|last) ({_MONTH})\b"),
        lambda found: ("month", month_number(found[1])),
    ),
    (re.compile(r"\b(\d\d?)(?::(\d\d))? ?([ap])\.?m\b\.?"), lambda found: _clock(found[1], found[2], found[3])),
    (re.compile(r"\b(\d\d?):(\d\d)\b"), lambda found: _clock(found[1], found[2], None)),
    (re.compile(r"\b(\d\d?) o'?clock\b"), lambda found: _clock(found[1], None, None)),
    (re.compile(rf"\b({'|'.join(WEEKDAYS)})s?\b"), lambda found: ("weekday", found[1])),
    (re.compile(rf"\b({'|'.join(_FREQUENCIES)})\b"), lambda found: ("frequency", _FREQUENCIES[found[1]])),
    (
        re.compile(r"\b(?:every|each|once a|once per|once every|a|per) (day|week|month|year|hour|quarter|fortnight)\b"),
        lambda found: ("frequency", found[1]),
    ),
    (re.compile(r"\b(?:every|each) (morning|evening|night|afternoon)\b"), lambda _: ("frequency", "day")),
    (re.compile(r"\b(?:in |since |until |of )?((?:19|20)\d\d)\b(?![.,-]?\d)"), lambda found: ("year", int(found[1]))),
    (re.compile(r"(?<![\w.+])[\w.+]++@[\w.]+"), lambda found: ("code", found[0])),
    (
        re.compile(
            r"(?<![\w.,])\+?(?:0\d+|\d+(?:[ -]\d{2,})+|\d+-\d+|\d+\.\d+\.\d+|[a-z]+\d\d+\w*|\d+[a-z]+\d\w*)(?![\w])"
        ),
        lambda found: ("code", found[0]),
    ),
    (
        re.compile(
            r"(?P<sign>[$€£])? ?(?<![a-z\d.])(?P<digits>\d[\d,]*\.?\d*)(?:st|nd|rd|th)?"
            r"(?:[ -]?(?P<word>[a-z°]+))?(?:[ -](?P<after>[a-z]+))?"
        ),
        _amount,
    ),
)
_WORD_READERS = tuple(row for row in _READERS if r"\d" not in row[0].pattern)
_KEPT = frozenset(UNIT) | frozenset(MONEY) | frozenset(SCALES) | frozenset("degree degrees celsius fahrenheit".split())


_CUES = frozenset(NUMBERS) | frozenset(SCALES) | frozenset(WEEKDAYS) | frozenset(f"{day}s" for day in WEEKDAYS)
_CUES |= frozenset(MONTHS) | frozenset(month[:3] for month in MONTHS) | frozenset(_FREQUENCIES)
_CUES |= frozenset(word for holiday in HOLIDAYS for word in holiday.split() if word not in ("the", "of"))
_CUES |= set("half quarter quarters pair couple twins both twice hour fortnight single noon midday midnight".split())
_CUES |= set("day week month year every each once only just".split())
_DIGIT = re.compile(r"\d")


def take_quantities(text: str) -> tuple[frozenset[Value], str]:
    """The quantities of a lower-case text, and the text without them."""
    if not (_DIGIT.search(text) or "@" in text or not _CUES.isdisjoint(WORD.findall(text))):
        return frozenset(), text
    text = spelled_as_digits(text)
    digits = _DIGIT.search(text) is not None
    values: set[Value] = set()
    for pattern, reader in _READERS if digits else _WORD_READERS:
        text = pattern.sub(lambda found, reader=reader: _taken(found, reader, values), text)  # type: ignore[misc]
    return frozenset(values), text


def _taken(found: re.Match[str], reader: Callable[[re.Match[str]], Value | None], values: set[Value]) -> str:
    value = reader(found)
    if value is None:
        return found[0]
    values.add(value)
    if "word" not in found.re.groupindex:
        return " "
    if found["after"] in ("old", "age"):
        return " year old "
    return " " + " ".join(word for word in (found["word"], found["after"]) if word and word not in _KEPT) + " "


def compared(old: frozenset[Value], new: frozenset[Value]) -> tuple[bool, frozenset[Value], frozenset[Value]]:
    """Whether some quantities agree, and those of either side that agree with none of the other's."""
    met = [(a, b) for a in old for b in new if a[0] == b[0] and _equal(a[1], b[1])]
    return bool(met), old - {a for a, _ in met}, new - {b for _, b in met}


def _equal(a: object, b: object) -> bool:
    return a.agrees(b) if isinstance(a, Number) and isinstance(b, Number) else a == b
