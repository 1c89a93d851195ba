"""When a question asks about a time, memories of that time are the likelier ones.

Only a question that looks back at a time counts: "What did I do last May?", "what did we discuss last week about
the budget?". Not: what is told rather than asked ("I was in Oslo last May"); a question whose answer is the
time ("When did I move?"); advice and plans ("What should I cook tonight?", "What do I have tomorrow?"), since what
helps there (a diet, an appointment) was said at another time; and times that have not begun.

It is a preference, not a wall: a memory of that time gets a bonus, and the others stay. A fact of last May may have
been told in June by somebody who never said when it was."""

import re
from collections.abc import Iterable

from semmem.memory import Memory
from semmem.text.times import Interval, intervals

TIME_WEIGHT = 0.2
"""Of a memory that is of the time asked for, in units of cosine; from 0.15 to 0.3 it made no difference."""
CLOCK_SLACK_S = 12 * 3600.0
"""Days are UTC days and the user's are not: a day begins up to about this much earlier or later."""
QUERY_CHARS_MAX = 2000
CONTENT_CHARS_MAX = 500

# All are looked for in small letters: to ignore case takes several times as long.
_LOOKS_BACK = re.compile(
    r"\b(?:did|was|were|had|been|went|said|told|talked|spoke|discussed|mentioned|asked|bought|saw|met|ate|made"
    r"|got|planned|decided|agreed|wrote|read|visited|happened|worked|lived|recommended|remember|remind|recall"
    r"|hice|hiciste|hicimos|fui|fuimos|dije|hablamos|compré|pasó|comí|vi|habe|haben|hatte|war|waren|sagte|gesagt"
    r"|ai|avons|étais|avait|fait|dit|parlé)\b|\b(?:i|we|you)\s+\w{2,18}ed\b|[了过]"
    r"|\b(?:have|has)\s+(?:\w{1,20}\s+){1,3}?(?:been|gone|done|seen|had|read|\w{2,18}e[dn])\b"
)
_ASKS = re.compile(
    r"[?？]|^\W*(?:what|which|who|whom|where|how|did|was|were|do|have|had|remind|tell|list|show|recall|summari[sz]e"
    r"|qué|quién|dónde|was|wo|wer|welche|qu'est|où|qui)\b|什么|哪|谁|吗"
)
_ASKS_WHEN = re.compile(
    r"^\W*(?:when\b|what (?:day|date|time|year|month)\b|how long ago\b|since when\b|cuándo|wann\b|quand\b)"
    r"|什么时候|何时"
)
_LOOKS_AHEAD = re.compile(
    r"\b(?:should|shall|can|could|would you|will|going to|recommend|suggest|help|plan (?:for|a|my|the|our)|how do i"
    r"|how to|idea|ideas)\b|\bwould\b.{0,20}\blike\b"
)
_SENTENCES = re.compile(r"(?:[^.!?。！？\n]|(?<=\d)\.|\.(?=\d))+[.!?。！？]?")
_RECALLS = re.compile(r"\b(?:can|could|will|would) (?:you|u) (?:please )?(?:remind|recall|remember|tell|list|show)\b")


def time_filter(query: str, now: float) -> Interval | None:
    """The time that a question looks back at, or None where memories of every time are wanted. The sentence that asks
    must name it: people tell of yesterday before they ask for something else. ``query`` is the user's own question (its
    first QUERY_CHARS_MAX characters are read), ``now`` seconds since the epoch. Of several times the span from the
    first to the last."""
    return span((each for each in _SENTENCES.findall(query[:QUERY_CHARS_MAX]) if _looks_back(each)), now)


def span(sentences: Iterable[str], now: float) -> Interval | None:
    """From the first to the last time that these name, of those that have begun; None where they name none."""
    times = (time for sentence in sentences for time in intervals(sentence, now, towards="past"))
    named = [time for time in times if time.start <= now]
    return Interval(min(time.start for time in named), max(time.end for time in named)) if named else None


def matches(memory: Memory, interval: Interval) -> bool:
    """Whether a memory is of that time: it happened then, or was said then, or names a time that overlaps."""
    return is_dated(memory, interval) or names(memory, interval)


def is_dated(memory: Memory, interval: Interval) -> bool:
    """Whether it happened or was said then, give or take CLOCK_SLACK_S."""
    start, end = interval.start - CLOCK_SLACK_S, interval.end + CLOCK_SLACK_S
    occurred_at = memory.occurred_at
    return start <= memory.said_at < end or (occurred_at is not None and start <= occurred_at < end)


def names(memory: Memory, interval: Interval) -> bool:
    """Whether its content names a time that overlaps, read as of when it was said. Reads the text: some 50 us."""
    named = intervals(memory.content[:CONTENT_CHARS_MAX], memory.said_at)
    return any(each.start < interval.end and interval.start < each.end for each in named)


def _looks_back(text: str) -> bool:
    line = text.lower()
    if _ASKS_WHEN.search(line) or not _ASKS.search(line):
        return False
    return bool(_LOOKS_BACK.search(line)) and not _LOOKS_AHEAD.search(_RECALLS.sub("", line))
