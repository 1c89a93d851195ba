"""What is seen of a clause without understanding it. Closed classes of words only: pronouns, auxiliaries, negations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from semmem.extraction.lasting import elsewhere
from semmem.extraction.lasting.clauses import Clause
from semmem.text.times.names import MONTHS, WEEKDAYS


def _any_of(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words.split())})\b", re.IGNORECASE)


_I = re.compile(r"\b(?:I|i|i'm|im|i've|ive|ich|je|yo|eu|io)\b|\bj'|[我私僕俺]", re.IGNORECASE)
_WE = _any_of("we we're us wir uns nous nosotros nós noi")
_MY = re.compile(
    r"\b(?:my|mine|our|ours|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|notre|nos|mi|mis|nuestr[oa]s?|meus?|minhas?|noss[oa]s?)\b"
    r"|我的|我们|私の|うちの",
    re.IGNORECASE,
)
_ME = re.compile(r"\b(?:me|myself|mir|mich|moi|mim)\b", re.IGNORECASE)
_YOU = _any_of("you your yours u du dein deine sie ihr tu ton vous votre tú usted você")
_THEY = _any_of("he she they his her their him them it its er seine ihre elle il")
_ASKS = re.compile(
    r"\W*(?:what|what's|whats|which|who|whom|whose|where|when|why|how|can|could|would|should|shall|do|does|did|is|are"
    r"|was|will|has|have you|any|was|wie|wo|wer|wann|warum|kannst|können|quel\w*|que|qué|cómo|cuál|comment|pourquoi"
    r"|o que|como|qual)\b",
    re.IGNORECASE,
)
_ASKS_ELSEWHERE = re.compile(
    r"\W*(?:welche\w*|wieviel\w*|wessen|où|quand|combien|qui|cuánt[oa]s?|dónde|cuándo|quién\w*|quant[oa]s?|onde|quando"
    r"|quem)\b|¿|.*(?:[吗呢]|什么|怎么|多少|哪|为什么|ですか|ますか|何)",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\b(?:says?|said|wrote|writes|reads|claims?|claimed|according to|sagte?|schreibt|laut|dit|selon|dice|dijo|según"
    r"|diz|disse)\b|说|と言",
    re.IGNORECASE,
)
_PLEASE = _any_of("please pls plz kindly bitte please s'il por favor")
_NEGATED = re.compile(
    r"\b(?:not|no|never|none|nothing|without|cannot|can't|don't|doesn't|didn't|won't|isn't|aren't|dont|cant|nicht"
    r"|kein\w{0,2}|nie|pas|jamais|nunca|não|sin|sem)\b|n't\b|[不没沒]|ない|ません",
    re.IGNORECASE,
)
_IF = re.compile(r"\W*(?:if|unless|whether|suppose|imagine|assume|pretend|wenn|falls|si|se|如果|假如)\b", re.IGNORECASE)
_BE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|i'm|im|'s|'re|bin|ist|sind|suis|est|soy|es|sou|é)\b|是", re.IGNORECASE
)
_HAVE = re.compile(r"\b(?:have|has|had|'ve|got|habe|hat|ai|tengo|tiene|tenho|tem)\b|有", re.IGNORECASE)
_CHANGE = _any_of("now instead anymore longer actually correction update changed moved switched jetzt doch ahora ya")
_ALWAYS = _any_of("always never every usually often each whenever only still until since immer jede siempre toujours")
_TIME = re.compile(
    rf"\b(?:{'|'.join([*MONTHS, *WEEKDAYS])}|today|tomorrow|tonight|yesterday|morning|evening|week|month|year|years)\b"
    r"|\b\d{4}\b|[年月日]",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-zà-ÿ]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PATTERNS = (
    _I, _WE, _MY, _ME, _YOU, _THEY, _SAYS, _PLEASE, _NEGATED, _BE, _HAVE, _CHANGE, _ALWAYS, _TIME, _DIGIT, _NAME, _WIDE,
)  # fmt: skip
_BEFORE = len(_PATTERNS) + 6
"""Columns of a clause before them: its words, the four ways to open, whether it asks, its size."""
ELSEWHERE = slice(_BEFORE, _BEFORE + len(elsewhere.NAMES))
"""The columns of other languages; the last of them says that a clause is in one."""
CHARS_READ = 400
"""Of a clause; nobody writes longer ones."""


def features(found: Sequence[Clause]) -> list[list[float]]:
    """One row a clause, each value in [0, 1]; what the message's other clauses show belongs to it."""
    rows = [_of_clause(clause) for clause in found]
    sentences: dict[int, list[list[float]]] = {}
    for clause, row in zip(found, rows, strict=True):
        sentences.setdefault(clause.sentence, []).append(row)
    seen = {number: _seen_in(some) for number, some in sentences.items()}
    last = found[-1].sentence if found else 0
    own = max((row[0] for row in rows), default=0.0)
    return [[*row, *seen[clause.sentence], *_place(clause, last), own] for clause, row in zip(found, rows, strict=True)]


def _of_clause(clause: Clause) -> list[float]:
    return formal(clause.text, asked=clause.asked and clause.last)


def formal(text: str, *, asked: bool = False) -> list[float]:
    """What is seen of a piece of text by itself. ``asked``: it is known to end a question."""
    text = text[:CHARS_READ].replace("’", "'")
    size = min(1.0, len(text) / 100)
    asks = asked or text.endswith(("?", "？"))
    opening = (_ASKS.match(text) or _ASKS_ELSEWHERE.match(text), _IF.match(text), _I.match(text), _MY.match(text))
    return [
        *(float(bool(pattern.search(text))) for pattern in _PATTERNS),
        *(float(bool(match)) for match in opening),
        float(asks),
        size,
        *elsewhere.classes(text),
    ]


_SEEN = (_PATTERNS.index(_I), _PATTERNS.index(_MY), _PATTERNS.index(_YOU), _PATTERNS.index(_SAYS), len(_PATTERNS))
"""Of all clauses of the sentence: I, my, you, somebody's saying so, and an opening that asks."""


def _seen_in(rows: list[list[float]]) -> list[float]:
    return [max(row[index] for row in rows) for index in _SEEN]


def _place(clause: Clause, last: int) -> list[float]:
    return [
        float(flag)
        for flag in (
            clause.asked,
            clause.first,
            clause.last,
            clause.led,
            clause.introduced,
            clause.listed,
            clause.sentence == 0,
            clause.sentence == last,
            last == 0,
        )
    ]
