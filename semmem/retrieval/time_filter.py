"""When a question asks about a time, memories of other times are not what it asks for.

Only a question that looks back at a time is filtered: "What did I do last May?", "what did we discuss last week about
the budget?". Not filtered: what is told rather than asked ("I was in Oslo last May"); a question whose answer is the
time ("When did I move?"); advice and plans ("What should I cook tonight?", "What do I have tomorrow?"), since what
helps there (a diet, an appointment) was said at another time; and times that have not begun.

The filter is a preference, not a wall: where nothing matches, search again without it. A fact of last May may have been
told in June, by somebody who never said when it was.
"""

from __future__ import annotations

import re

from semmem.memory import Memory
from semmem.time_expressions import Interval, intervals

CLOCK_SLACK_S = 12 * 3600.0
"""Days are UTC days and the user's are not: a day begins up to about this much earlier or later."""
QUERY_CHARS_MAX = 2000
CONTENT_CHARS_MAX = 500

_LOOKS_BACK = re.compile(
    r"\b(?:did|was|were|had|have|has|been|went|said|told|talked|spoke|discussed|mentioned|asked|bought|saw|met|ate|made"
    r"|got|planned|decided|agreed|wrote|read|visited|happened|worked|lived|recommended|remember|remind|recall"
    r"|hice|hiciste|hicimos|fui|fuimos|dije|hablamos|compré|pasó|comí|vi|habe|haben|hatte|war|waren|sagte|gesagt"
    r"|ai|avons|étais|avait|fait|dit|parlé)\b|\b(?:i|we|you)\s+\w{2,18}ed\b|[了过]",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]|^\W*(?:what|which|who|whom|where|how|did|was|were|do|have|had|remind|tell|list|show|recall|summari[sz]e"
    r"|qué|quién|dónde|was|wo|wer|welche|qu'est|où|qui)\b|什么|哪|谁|吗",
    re.IGNORECASE,
)
_ASKS_WHEN = re.compile(
    r"^\W*(?:when\b|what (?:day|date|time|year|month)\b|how long ago\b|since when\b|cuándo|wann\b|quand\b)"
    r"|什么时候|何时",
    re.IGNORECASE,
)
_LOOKS_AHEAD = re.compile(
    r"\b(?:should|shall|can|could|would you|will|going to|recommend|suggest|help|plan (?:for|a|my|the|our)|how do i"
    r"|how to|idea|ideas)\b|\bwould\b.{0,20}\blike\b",
    re.IGNORECASE,
)
_RECALLS = re.compile(
    r"\b(?:can|could|will|would) (?:you|u) (?:please )?(?:remind|recall|remember|tell|list|show)\b", re.I
)


def time_filter(query: str, now: float) -> Interval | None:
    """The time that a question looks back at, or None where memories of every time are wanted.

    ``query`` is the user's own question (its first QUERY_CHARS_MAX characters are read), ``now`` seconds since the
    epoch. Of several times the span from the first to the last.
    """
    text = query[:QUERY_CHARS_MAX]
    named = [interval for interval in intervals(text, now, towards="past") if interval.start <= now]
    if not named or not _looks_back(text):
        return None
    return Interval(min(each.start for each in named), max(each.end for each in named))


def matches(memory: Memory, interval: Interval) -> bool:
    """Whether a memory is of that time: it happened then, or was said then, or names a time that overlaps.

    Half a day of slack on either side, see CLOCK_SLACK_S. What the content names is read as of when it was said.
    """
    wide = Interval(interval.start - CLOCK_SLACK_S, interval.end + CLOCK_SLACK_S)
    said_at = memory.source.time or memory.created_at
    if any(when is not None and wide.start <= when < wide.end for when in (memory.occurred_at, said_at)):
        return True
    named = intervals(memory.content[:CONTENT_CHARS_MAX], said_at)
    return any(each.start < interval.end and interval.start < each.end for each in named)


def _looks_back(text: str) -> bool:
    if _ASKS_WHEN.search(text) or not _ASKS.search(text):
        return False
    return bool(_LOOKS_BACK.search(text)) and not _LOOKS_AHEAD.search(_RECALLS.sub("", text))
