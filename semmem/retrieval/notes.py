"""Notes as they stand in a block: their order, which of them share a line, and their days in words.

What always matters comes first, then the most relevant. What belongs together stands together, the newest first: two
notes of one topic, two that may contradict each other, two sentences of one message.

Days are absolute: "3 days ago" would change a prompt that did not change. No day is more exact than what is known of
it: a week is its first and last day, a month has no day, a year no month. All dates are UTC, written in English."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from semmem.memory import STANDS_FOR, Memory, Standing
from semmem.retrieval.once import OncePerMemory
from semmem.text.grounding import content_words
from semmem.text.quoting import is_quoted, unquoted
from semmem.text.times import Interval, intervals, leaning
from semmem.text.times.calendar import MONTHS

TOPIC_SHARE = 0.5
"""Two notes are of one topic when they share more than this of the content words of the shorter one: numbers are not
among these, so "the budget is $10,000" and "the budget is $15,000" share all of them."""
WORDS_CHARS_MAX = 600
"""Of a memory, read for its content words and for the time that it names."""
_TIERS: dict[Standing | None, int] = {Standing.MUST: 0, Standing.PROFILE: 1, Standing.STYLE: 2, None: 3}

EARLIER, ASK = "an earlier note", "may be outdated; ask if it matters"

Pairs = frozenset[tuple[str, str]]
Line = tuple[int, ...]
"""Places of the memories that share a line of the block: one, or several sentences of one message."""


def arranged(memories: Sequence[Memory]) -> list[Line]:
    """Lines of memories that come best first; the order among equals stays."""
    pairs = _unsettled(memories)
    notes = [_Note(place, memory, *_told(memory)) for place, memory in enumerate(memories)]
    groups: list[list[_Note]] = []
    for note in sorted(notes, key=lambda note: note.tier):
        group = next((group for group in groups if _belongs(note, group, pairs)), None)
        if group is None:
            groups.append([note])
        else:
            group.append(note)
    return [line for group in groups for line in _lines(group, pairs)]


def order_told(memories: Sequence[Memory]) -> dict[str, str]:
    """What a note says, by id, that may contradict another one of these: which of them is the older one, since the
    newer one holds where they do; and where nobody can tell, that it may be outdated."""
    pairs = _unsettled(memories)
    told = {memory.id: _newness(memory) for memory in memories} if pairs else {}
    earlier = {one: EARLIER for one, other in pairs if told[other] > told[one]}
    return {one: ASK for one, other in pairs if told[other] == told[one]} | earlier


@dataclass(frozen=True, slots=True)
class _Note:
    place: int
    memory: Memory
    tier: int
    words: set[str]
    turn: str
    """Where it is a sentence that may share a line with others of its turn, else empty: it is in the user's own words,
    and its days need no words of their own."""


@OncePerMemory
def _told(memory: Memory) -> tuple[int, set[str], str]:
    """Tier, words and turn of a note."""
    alone = memory.occurred_at is not None or not is_quoted(memory.content)
    words = content_words(unquoted(memory.content)[:WORDS_CHARS_MAX])
    return _TIERS[memory.standing], words, "" if alone else memory.source.turn


def _lines(group: Sequence[_Note], pairs: Pairs) -> list[Line]:
    lines: list[Line] = []
    above: _Note | None = None
    in_doubt = {id for pair in pairs for id in pair}
    for note in sorted(group, key=lambda note: -_newness(note.memory)):
        if above and not in_doubt & {above.memory.id, note.memory.id} and _share_a_line(above, note):
            lines[-1] += (note.place,)
        else:
            lines.append((note.place,))
        above = note
    return lines


def _belongs(note: _Note, group: Sequence[_Note], pairs: Pairs) -> bool:
    """Only the first of a group speaks for its topic: else a chain of notes would lead from one to the next."""
    first = group[0]
    words, others = note.words, first.words
    if note.tier == first.tier and len(words & others) > TOPIC_SHARE * min(len(words), len(others)):
        return True
    if pairs and any((note.memory.id, one.memory.id) in pairs for one in group):
        return True
    return note.turn != "" and any(_share_a_line(note, one) for one in group)


def _share_a_line(one: _Note, other: _Note) -> bool:
    return one.turn != "" and one.turn == other.turn and one.memory.source == other.memory.source


def _unsettled(memories: Sequence[Memory]) -> Pairs:
    """Both ways round. A passage stands for the memories in whose place it is shown."""
    shown = {id: memory.id for memory in memories for id in (memory.id, *memory.ids(STANDS_FOR))}
    named = {(one.id, shown[other]) for one in memories for other in one.unsettled if other in shown}
    return frozenset(pair for one, other in named if one != other for pair in ((one, other), (other, one)))


def _newness(memory: Memory) -> float:
    """When it was said, as far as that is known."""
    at = memory.said_at or memory.updated_at
    return 0.0 if math.isnan(at) else at


# --- days ------------------------------------------------------------------------------------------------------------

UNDATED = "undated"
_ELSEWHEN_S = 400 * 86_400.0
"""No day, weekday, month or year is the same one so much later, where the words count from when they are said."""
_DAY = timedelta(days=1)


def said(memory: Memory) -> str:
    """``said 3 March 2026``; ``noted`` what the user did not say himself; UNDATED where no day is known."""
    at = memory.said_at or memory.updated_at
    if not at or (day := _date(at)) is None:
        return UNDATED
    return f"{'said' if memory.source.role == 'user' else 'noted'} {_day(day)}"


def happened(memory: Memory) -> str:
    """``on 2 April 2026``, ``in May 2023``, ``in 2019``, or, of a note that says "last week", ``meaning`` and its days.
    Empty when it is not known, when the note names it itself, and when the note's words may mean one time as well as
    another ("on Saturday": the last or the coming one). Where nothing tells how long it was, a first of the month may
    stand for the month and a first of January for the year."""
    if memory.occurred_at is None or (begin := _date(memory.occurred_at)) is None:
        return ""
    text = unquoted(memory.content)[:WORDS_CHARS_MAX]
    towards = leaning(text)
    times = intervals(text, memory.said_at, towards=towards)
    named = next((time for time in times if time.start == memory.occurred_at), None)
    if named is None:
        return _since(begin)
    is_absolute = named in intervals(text, memory.said_at + _ELSEWHEN_S, towards=towards)
    is_certain = towards == "future" or named in intervals(text, memory.said_at, towards="future")
    return f"meaning {_span(named)}" if is_certain and not is_absolute else ""


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
