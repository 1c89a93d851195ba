"""Closed classes of words in other languages than English, for what features.py looks for.

Only words that are no English ones, each in the form in which it is met: pronouns, what is somebody's own, negations,
to be and to have, words of time and of asking, and, of languages that leave the pronoun out, the commonest verbs of the
first person. They are data (elsewhere_words.json). Where a script has no spaces, or glues endings to its words, they
are looked for ``within`` the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0400-\u04ff]")
_DATA = json.loads(Path(__file__).with_name("elsewhere_words.json").read_text("utf-8"))


def _words(lines: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


def _any(alternatives: Sequence[str], pattern: str = "{}", flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern.replace("{}", "|".join(alternatives)), flags)


_OF_ONESELF = _words(_DATA["first_person"])
"""Verbs of the first person in languages that leave its pronoun out."""
_OF_US = _words(_DATA["first_person_plural"])
_OPENING = _words(_DATA["opening"]) | _OF_ONESELF | _OF_US
"""With the same of others, where they leave it out at the beginning of a clause."""
WORDS = {name: _words(lines) for name, lines in _DATA["words"].items()}
WORDS["SELF"] |= _OF_ONESELF
WORDS["WE"] |= _OF_US

_ENDING = _any(_DATA["endings"], "(?:{})", re.IGNORECASE)
"""Of verbs that say who speaks, and of what is somebody's: Spanish, Portuguese, Italian, Polish, Turkish."""
_ENDING_WITHIN = _any(_DATA["endings_within"])
"""The same in Japanese and Korean."""
_OPENS_WITHIN = _any(_DATA["opens_within"], r"\W*(?:{})")
"""Of Chinese, where it leaves out who."""
_ON = _any(_DATA["on"], flags=re.IGNORECASE)
"""French "on" and object pronouns, and what is at somebody's home."""
_WITHIN = {name: _any(alternatives) for name, alternatives in _DATA["within"].items()}

_OWN = "|".join(sorted(WORDS["SELF"] | WORDS["WE"] | WORDS["MY"]))
BEFORE_OWN = rf"(?:{'|'.join(_DATA['joints'].split())})[ ](?:{_OWN})[ ]"
"""A pattern: conjunctions, and what is said of oneself behind them: a clause ends there."""

NAMES = (*WORDS, "OPENS", "ENDING", "ON", "ELSEWHERE")


def classes(text: str) -> list[float]:
    """By NAMES: for each of WORDS whether the text has one of them; then whether it opens with what is said of oneself,
    has an ending that says so, or "on"; and last whether it has any of all this, or a script that English has not."""
    found = _WORD.findall(text.lower())
    words = frozenset(found)
    unspaced = _UNSPACED.search(text) is not None
    met = [
        not words.isdisjoint(some) or (unspaced and name in _WITHIN and _WITHIN[name].search(text) is not None)
        for name, some in WORDS.items()
    ]
    met += [
        not _OPENING.isdisjoint(found[:2]) or (unspaced and _OPENS_WITHIN.match(text) is not None),
        any(map(_ENDING.fullmatch, words)) or (unspaced and _ENDING_WITHIN.search(text) is not None),
        _ON.search(text) is not None,
    ]
    return [*map(float, met), float(any(met) or unspaced)]
