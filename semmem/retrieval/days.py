"""The days of a note in words: when it was said, and when what it tells of was or will be.

Absolute days only: "3 days ago" would change a prompt that did not change. No day is more exact than what is known of
it: a week is its first and last day, a month has no day, a year no month. All dates are UTC, written in English.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from semmem.memory import Memory
from semmem.text.quoting import unquoted
from semmem.text.times import Interval, intervals, leaning
from semmem.text.times.names import MONTHS

UNDATED = "undated"
CHARS_MAX = 600
"""Of a memory, read for the time that it names."""
_ELSEWHEN_S = 400 * 86_400.0
"""No day, weekday, month or year is the same one so much later, where the words count from when they are said."""
_DAY = timedelta(days=1)


def said(memory: Memory) -> str:
    """``said 3 March 2026``; ``noted`` what the user did not say himself; UNDATED where no day is known."""
    at = memory.said_at or memory.updated_at
    day = _date(at) if at else None
    if day is None:
        return UNDATED
    return f"{'said' if memory.source.role == 'user' else 'noted'} {_day(day)}"


def happened(memory: Memory) -> str:
    """``on 2 April 2026``, ``in May 2023``, ``in 2019``, or, of a note that says "last week", ``meaning`` and its days.

    Empty when it is not known, when the note names it itself, and when the note's words may mean one time as well as
    another ("on Saturday": the last or the coming one). Where nothing tells how long it was, a first of the month may
    stand for the month and a first of January for the year.
    """
    if memory.occurred_at is None or (begin := _date(memory.occurred_at)) is None:
        return ""
    text = unquoted(memory.content)[:CHARS_MAX]
    towards = leaning(text)
    named = next((time for time in intervals(text, memory.said_at, towards=towards) if _begins(time, memory)), None)
    if named is None:
        return _since(begin)
    is_absolute = named in intervals(text, memory.said_at + _ELSEWHEN_S, towards=towards)
    is_certain = towards == "future" or named in intervals(text, memory.said_at, towards="future")
    return f"meaning {_span(named)}" if is_certain and not is_absolute else ""


def _begins(time: Interval, memory: Memory) -> bool:
    return time.start == memory.occurred_at


def _since(begin: date) -> str:
    if begin.day > 1:
        return f"on {_day(begin)}"
    return f"in {_month(begin)}" if begin.month > 1 else f"in {begin.year}"


def _span(interval: Interval) -> str:
    first, after = _date(interval.start), _date(interval.end)
    if first is None or after is None or after - first <= _DAY:
        return _day(first) if first else UNDATED
    if first.day == 1 and after.day == 1:
        if (first.month, after.month, after.year - first.year) == (1, 1, 1):
            return str(first.year)
        begin, end = _month(first), _month(after - _DAY)
    else:
        begin, end = _day(first), _day(after - _DAY)
    return begin if begin == end else f"{_unlike(begin, end)} to {end}"


def _unlike(begin: str, end: str) -> str:
    """The beginning without the month and year that the end names again: ``17 to 23 April 2026``."""
    words, others = begin.split(), end.split()
    while len(words) > 1 and words[-1] == others[-1]:
        words, others = words[:-1], others[:-1]
    return " ".join(words)


def _day(day: date) -> str:
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{MONTHS[day.month - 1].capitalize()} {day.year}"


def _date(seconds: float) -> date | None:
    """The UTC day; None outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None
