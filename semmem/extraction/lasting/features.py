"""What is seen of a clause without understanding it. Closed classes of words only: pronouns, auxiliaries, negations
(features.json).

Of other languages than English (elsewhere_words.json) only words that are no English ones, each in the form in which it
is met: pronouns, what is somebody's own, negations, to be and to have, words of time and of asking, and, of languages
that leave the pronoun out, the commonest verbs of the first person. Where a script has no spaces, or glues endings to
its words, they are looked for ``within`` the text."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from semmem.text.times.calendar import MONTHS, WEEKDAYS

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0400-\u04ff]")
_ELSEWHERE = json.loads(Path(__file__).with_name("elsewhere_words.json").read_text("utf-8"))


def _words(lines: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


def _any(alternatives: Sequence[str], pattern: str = "{}", flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern.replace("{}", "|".join(alternatives)), flags)


_OF_ONESELF = _words(_ELSEWHERE["first_person"])
"""Verbs of the first person in languages that leave its pronoun out."""
_OF_US = _words(_ELSEWHERE["first_person_plural"])
_OPENS = _words(_ELSEWHERE["opening"]) | _OF_ONESELF | _OF_US
"""With the same of others, where they leave it out at the beginning of a clause."""
WORDS = {name: _words(lines) for name, lines in _ELSEWHERE["words"].items()}
WORDS["SELF"] |= _OF_ONESELF
WORDS["WE"] |= _OF_US

_ENDING = _any(_ELSEWHERE["endings"], "(?:{})", re.IGNORECASE)
"""Of verbs that say who speaks, and of what is somebody's: Spanish, Portuguese, Italian, Polish, Turkish."""
_ENDING_WITHIN = _any(_ELSEWHERE["endings_within"])
"""The same in Japanese and Korean."""
_OPENS_WITHIN = _any(_ELSEWHERE["opens_within"], r"\W*(?:{})")
"""Of Chinese, where it leaves out who."""
_ON = _any(_ELSEWHERE["on"], flags=re.IGNORECASE)
"""French "on" and object pronouns, and what is at somebody's home."""
_WITHIN = {name: _any(alternatives) for name, alternatives in _ELSEWHERE["within"].items()}

_OWN = "|".join(sorted(WORDS["SELF"] | WORDS["WE"] | WORDS["MY"]))
BEFORE_OWN = rf"(?:{'|'.join(_ELSEWHERE['joints'].split())})[ ](?:{_OWN})[ ]"
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
        not _OPENS.isdisjoint(found[:2]) or (unspaced and _OPENS_WITHIN.match(text) is not None),
        any(map(_ENDING.fullmatch, words)) or (unspaced and _ENDING_WITHIN.search(text) is not None),
        _ON.search(text) is not None,
    ]
    return [*map(float, met), float(any(met) or unspaced)]


_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _patterns(forms: Mapping[str, Sequence[str]]) -> dict[str, re.Pattern[str]]:
    return {name: re.compile("|".join(alternatives), re.IGNORECASE) for name, alternatives in forms.items()}


_ANYWHERE = _patterns(_DATA["anywhere"]) | {
    "TIME": re.compile(
        rf"\b(?:{'|'.join([*MONTHS, *WEEKDAYS, *_DATA['times'].split()])})\b|\b\d{{4}}\b|[年月日]", re.IGNORECASE
    ),
    "DIGIT": re.compile(r"\d"),
    "NAME": re.compile(r"(?<=[\w,] )[A-Z][a-zà-ÿ]+"),
    "WIDE": re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"),
}
_OPENING = (*_patterns(_DATA["opening"]).values(), _ANYWHERE["I"], _ANYWHERE["MY"])
_BEFORE = len(_ANYWHERE) + len(_OPENING) + 2
"""Columns of a clause before them: its words, the ways to open, whether it asks, its size."""
ELSEWHERE = slice(_BEFORE, _BEFORE + len(NAMES))
"""The columns of other languages; the last of them says that a clause is in one."""
CHARS_READ = 400
"""Of a clause; nobody writes longer ones."""


@dataclass(frozen=True, slots=True)
class Clause:
    """``text`` as written, white space made single. ``sentence`` is the number of the one it belongs to; ``start`` and
    ``end`` its place in the message. ``asked``: its sentence ends with a question mark. ``first`` and ``last`` of its
    sentence. ``led``: a colon stands before it in its sentence. ``to_keep``: the user asks to remember it.
    ``introduced``: its line stands below one that ends with a colon. ``listed``: its line is an item of a list.
    ``requested``: what it says is asked to be remembered, ``plainly``: by what stands before it; ``requests``: it does
    nothing but ask that."""

    text: str
    sentence: int
    start: int
    end: int
    asked: bool
    first: bool
    last: bool
    led: bool
    introduced: bool
    listed: bool
    to_keep: bool = False
    requested: bool = False
    plainly: bool = False
    requests: bool = False


def features(found: Sequence[Clause]) -> list[list[float]]:
    """One row a clause, each value in [0, 1]; what the message's other clauses show belongs to it."""
    rows = [formal(clause.text, asked=clause.asked and clause.last) for clause in found]
    sentences: dict[int, list[list[float]]] = {}
    for clause, row in zip(found, rows, strict=True):
        sentences.setdefault(clause.sentence, []).append(row)
    seen = {number: [max(row[at] for row in some) for at in _SEEN] for number, some in sentences.items()}
    last = found[-1].sentence if found else 0
    own = max((row[0] for row in rows), default=0.0)
    for clause, row in zip(found, rows, strict=True):
        itself = clause.asked, clause.first, clause.last, clause.led, clause.introduced, clause.listed
        place = clause.sentence == 0, clause.sentence == last, last == 0
        row += [*seen[clause.sentence], *map(float, (*itself, *place)), own]
    return rows


def formal(text: str, *, asked: bool = False) -> list[float]:
    """What is seen of a piece of text by itself. ``asked``: it is known to end a question."""
    text = text[:CHARS_READ].replace("’", "'")
    anywhere = (float(bool(pattern.search(text))) for pattern in _ANYWHERE.values())
    opening = (float(bool(pattern.match(text))) for pattern in _OPENING)
    asks = float(asked or text.endswith(("?", "？")))
    return [*anywhere, *opening, asks, min(1.0, len(text) / 100), *classes(text)]


_SEEN = (*(list(_ANYWHERE).index(name) for name in ("I", "MY", "YOU", "SAYS")), len(_ANYWHERE))
"""Of all clauses of the sentence: I, my, you, somebody's saying so, and an opening that asks."""
