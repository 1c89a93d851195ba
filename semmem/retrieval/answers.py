"""What kind of answer a question wants, and what kinds a text has to offer: a time, a number, a place, a person.

Only English is known. A wrong guess costs little: agreement orders memories that are nearly as good as each other.
"""

from __future__ import annotations

import re

KINDS = ("time", "number", "place", "person", "name")

_WANTS = {
    "time": re.compile(r"\bwhen\b|how long|what (?:date|year|month|day|time)\b|which (?:year|month|day)\b", re.I),
    "number": re.compile(r"how (?:many|old|much|often|long)\b|number of|what (?:age|percent)", re.I),
    "place": re.compile(r"\bwhere\b|\b(?:which|what) (?:country|city|place|state|town|location|area)\b", re.I),
    "person": re.compile(r"\bwho(?:m|se)?\b", re.I),
    "name": re.compile(r"\bname|called|title|\b(?:which|what) (?:book|movie|game|song|show|band|author)\b", re.I),
}
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|recently|weekend|weeks?|months?|years?|days?|morning"
    r"|evening|summer|winter|spring|fall|autumn|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|(?:19|20)\d\d|\d+(?:st|nd|rd|th))\b",
    re.I,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|couple|several"
    r"|once|twice|first|second|third|fourth|half)\b",
    re.I,
)
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|visit(?:ed|ing)?)\s+(?:the\s+)?[A-Z]\w+"
    r"|\b(?:country|city|town|beach|park|school|shelter|studio|store|mountain|museum|home|house|street|church|gym|office"
    r"|restaurant|caf[eé]|lake)\b"
)
_PROPER_NAME = re.compile(r"(?<!^)(?<![.!?]\s)\b(?!User\b)[A-Z][a-z]+")
_QUOTED = re.compile(r"""["“][^"”]{3,40}["”]|(?<!\w)'\w[^']{2,40}'(?!\w)""")


def wanted(question: str) -> list[int]:
    """The kinds of answer that would fit, as positions in KINDS."""
    return [at for at, kind in enumerate(KINDS) if _WANTS[kind].search(question)]


def offered(text: str) -> tuple[bool, ...]:
    """For each of KINDS whether the text holds one."""
    is_named = bool(_PROPER_NAME.search(text))
    return (
        bool(_TIME.search(text)),
        bool(_NUMBER.search(text)),
        bool(_PLACE.search(text)),
        is_named,
        is_named or bool(_QUOTED.search(text)),
    )
