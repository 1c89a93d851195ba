"""What kind of answer a question wants, and what kinds a text has to offer: a time, a number, a place, a person.

Only English is known. A wrong guess costs little: agreement orders memories that are nearly as good as each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from semmem.text.number_words import CARDINALS, MULTIPLES, ORDINALS
from semmem.text.times.names import MONTHS, WEEKDAYS

KINDS = ("time", "number", "place", "person", "name")

_WANTS = {
    "time": re.compile(r"\bwhen\b|how long|what (?:date|year|month|day|time)\b|which (?:year|month|day)\b", re.I),
    "number": re.compile(r"how (?:many|old|much|often|long)\b|number of|what (?:age|percent)", re.I),
    "place": re.compile(r"\bwhere\b|\b(?:which|what) (?:country|city|place|state|town|location|area)\b", re.I),
    "person": re.compile(r"\bwho(?:m|se)?\b", re.I),
    "name": re.compile(r"\bname|called|title|\b(?:which|what) (?:book|movie|game|song|show|band|author)\b", re.I),
}
_TIMES = frozenset(
    (
        "yesterday today tonight tomorrow last next ago since recently weekend week weeks month months year years day"
        " days morning evening summer winter spring fall autumn"
    ).split()
).union(MONTHS, WEEKDAYS)
_DATE = re.compile(r"(?:19|20)\d\d|\d+(?:st|nd|rd|th)")
_NUMBERS = frozenset("dozen couple several once twice half".split()).union(CARDINALS, ORDINALS, MULTIPLES)
_PLACES = frozenset(
    (
        "country city town beach park school shelter studio store mountain museum home house street church gym office"
        " restaurant cafe café lake"
    ).split()
)
_TO_A_NAME = re.compile(r"\b(?:in|at|to|from|near|visit(?:ed|ing)?)\s+(?:the\s+)?[A-Z]\w")
_PROPER_NAME = re.compile(r"(?<!^)(?<![.!?]\s)\b(?!User\b)[A-Z][a-z]+")
_QUOTED = re.compile(r"""["“][^"”]{3,40}["”]|(?<!\w)'\w[^']{2,40}'(?!\w)""")


def wanted(question: str) -> list[int]:
    """The kinds of answer that would fit, as positions in KINDS."""
    return [at for at, kind in enumerate(KINDS) if _WANTS[kind].search(question)]


def offered(text: str, words: Sequence[str]) -> tuple[bool, ...]:
    """For each of KINDS whether the text, given also as its folded words, holds one."""
    numbers = [word for word in words if word[0].isdecimal()]
    is_named = _PROPER_NAME.search(text) is not None
    return (
        not _TIMES.isdisjoint(words) or any(map(_DATE.fullmatch, numbers)),
        bool(numbers) or not _NUMBERS.isdisjoint(words),
        not _PLACES.isdisjoint(words) or _TO_A_NAME.search(text) is not None,
        is_named,
        is_named or _QUOTED.search(text) is not None,
    )
