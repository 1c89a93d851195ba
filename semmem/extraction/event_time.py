"""When what a fact tells of happened, or will: read from its own words, as of the day they were said.

"in May" may be the last one or the next, and only the verb tells: "moved in May" is past, "leaves in May" is to come,
"gets hay fever in May" is no event at all. What comes every year has no date either.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path

from semmem.text.grounding import content_words
from semmem.text.stems import IRREGULAR_VERBS, SAME_FORM
from semmem.text.times import Interval, Towards, intervals, leaning
from semmem.text.words import words

LONGEST_S = 366 * 86_400.0
"""A time longer than a year ("since 2015", "before the war") is no date of anything."""
SENTENCES_MAX = 200
"""Of the user's text, as many sentences are looked at for the one that a fact comes from."""
SENTENCE_CHARS_MAX = 500

_FORMS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_AGAIN, _ARRANGED, _COMING = (
    re.compile("|".join(_FORMS[name]), re.IGNORECASE) for name in ("again", "arranged", "coming")
)
"""What comes again and again; what is fixed for a time; what is said of what is to come. They are data."""
SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")


def event_time(statement: str, said_at: float) -> float | None:
    """The beginning of the one time that a statement about the user names, None when it is no event with a date.

    Seconds since the epoch, UTC; ``said_at`` is when it was said."""
    return _start(statement, _towards(statement), said_at)


class DatedText:
    """What the user said in one turn, against which the times of a language model's facts are held.

    ``said_at`` is when; the text is read once, when a fact first has a time."""

    def __init__(self, said: str, said_at: float) -> None:
        self._said = said
        self._said_at = said_at

    def event_time(self, statement: str, when: str = "") -> float | None:
        """The event time of a statement by a model. ``when`` is what the model took for the time, in the user's words.

        A time that the user did not name is replaced by that of the user's own sentence."""
        towards = _towards(statement)
        told = _start(statement, towards, self._said_at)
        if told is None and not when:
            return None
        if told is None:
            told = _start(when, towards, self._said_at)
        if told is not None and any(named.start <= told < named.end for named in self._named):
            return told
        content = content_words(statement)
        source, _ = max(self._sentences, key=lambda sentence: len(sentence[1] & content), default=("", None))
        return event_time(source, self._said_at)

    @cached_property
    def _sentences(self) -> list[tuple[str, set[str]]]:
        """With what they are about."""
        sentences = [sentence[:SENTENCE_CHARS_MAX] for sentence in SENTENCE.split(self._said, SENTENCES_MAX)]
        return [(sentence, content_words(sentence)) for sentence in sentences[:SENTENCES_MAX] if sentence]

    @cached_property
    def _named(self) -> list[Interval]:
        directions: tuple[Towards, ...] = ("past", "future")
        return [named for each in directions for named in intervals(self._said, self._said_at, towards=each)]


def _start(text: str, towards: Towards | None, said_at: float) -> float | None:
    """Where the direction is not known, what names the same time in both is enough."""
    if _AGAIN.search(text):
        return None
    past = intervals(text, said_at, towards="past")
    future = intervals(text, said_at, towards="future")
    named = future if towards == "future" else past
    if len(named) != 1 or (towards is None and past != future) or named[0].end - named[0].start > LONGEST_S:
        return None
    return named[0].start


def _towards(statement: str) -> Towards | None:
    """Which way a statement looks; None when its verb does not tell."""
    if _ARRANGED.search(statement) or leaning(statement) == "future":
        return "future"
    if any(word in _PASTS or (len(word) > 4 and word.endswith("ed")) for word in words(statement)):
        return "past"
    return "future" if _COMING.search(statement) else None


_PASTS = ({form for forms in IRREGULAR_VERBS.values() for form in forms} | {"was", "were"}) - SAME_FORM - {"saw"} | {
    "quit"
}
"""What tells of the past by itself. "saw" may be a tool; people who "quit" have done so."""
