"""What is seen of a clause without understanding it. Closed classes of words only: pronouns, auxiliaries, negations
(features.json)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from semmem.extraction.lasting import elsewhere
from semmem.extraction.lasting.clauses import Clause
from semmem.text.times.names import MONTHS, WEEKDAYS

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
ELSEWHERE = slice(_BEFORE, _BEFORE + len(elsewhere.NAMES))
"""The columns of other languages; the last of them says that a clause is in one."""
CHARS_READ = 400
"""Of a clause; nobody writes longer ones."""


def features(found: Sequence[Clause]) -> list[list[float]]:
    """One row a clause, each value in [0, 1]; what the message's other clauses show belongs to it."""
    rows = [formal(clause.text, asked=clause.asked and clause.last) for clause in found]
    sentences: dict[int, list[list[float]]] = {}
    for clause, row in zip(found, rows, strict=True):
        sentences.setdefault(clause.sentence, []).append(row)
    seen = {number: [max(row[at] for row in some) for at in _SEEN] for number, some in sentences.items()}
    last = found[-1].sentence if found else 0
    own = max((row[0] for row in rows), default=0.0)
    return [[*row, *seen[clause.sentence], *_place(clause, last), own] for clause, row in zip(found, rows, strict=True)]


def formal(text: str, *, asked: bool = False) -> list[float]:
    """What is seen of a piece of text by itself. ``asked``: it is known to end a question."""
    text = text[:CHARS_READ].replace("’", "'")
    anywhere = (float(bool(pattern.search(text))) for pattern in _ANYWHERE.values())
    opening = (float(bool(pattern.match(text))) for pattern in _OPENING)
    asks = float(asked or text.endswith(("?", "？")))
    return [*anywhere, *opening, asks, min(1.0, len(text) / 100), *elsewhere.classes(text)]


_SEEN = (*(list(_ANYWHERE).index(name) for name in ("I", "MY", "YOU", "SAYS")), len(_ANYWHERE))
"""Of all clauses of the sentence: I, my, you, somebody's saying so, and an opening that asks."""


def _place(clause: Clause, last: int) -> list[float]:
    itself = clause.asked, clause.first, clause.last, clause.led, clause.introduced, clause.listed
    return [*map(float, itself), *map(float, (clause.sentence == 0, clause.sentence == last, last == 0))]
