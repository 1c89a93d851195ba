"""When the thing that somebody tells of happened."""

from __future__ import annotations

import re

from semmem.text.times.calendar import EARLIEST_S, Towards
from semmem.text.times.grammar import intervals

LONGEST_S = 366 * 86_400.0
"""A time longer than a year (a decade, "before 2015") says too little to be the date of anything."""

_AHEAD = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|plan(?:s|ning|ned)?|tomorrow|upcoming|due|until|deadline"
    r"|scheduled|booked for|werde|voy a|vais)\b|\b(?:i|we|he|she|they|it|you|that)['’]ll\b|明年|明天|下周|下个月|打算"
    r"|\b(?:flying|travelling|traveling|leaving|moving|getting married|starting)\b",
    re.IGNORECASE,
)


def leaning(text: str) -> Towards:
    """Whether a sentence tells of what is to come ("I'll be in Oslo on Friday") or of what was."""
    return "future" if _AHEAD.search(text) else "past"


def occurred_at(text: str, said_at: float) -> float | None:
    """The beginning of the one time that ``text`` names; None when it names none, several, or a very long one.

    Seconds since the epoch, UTC; ``said_at`` is when the words were said.
    """
    named = intervals(text, said_at, towards=leaning(text))
    if len(named) != 1 or named[0].end - named[0].start > LONGEST_S or named[0].start <= EARLIEST_S:
        return None
    return named[0].start
