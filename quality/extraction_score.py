"""Scores an extractor against labelled messages.

A produced fact is right when it holds every string of a gold fact's ``must``, one of ``any`` if given, none of ``not``
(substrings, case ignored), has at most 200 characters, and either speaks of the user in the third person or quotes
what the message says. Everything produced for a message without facts is wrong, and so is whatever hits a ``not`` of
its message; other extra facts of a message with facts do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from quality.folder import Row
from quality.scores import Json
from semmem.text.quoting import is_quoted, unquoted

CONTENT_CHARS_MAX = 200
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|my|me|myself)\b", re.IGNORECASE)

Produced = Sequence[tuple[str, str]]
"""(type, content) of each fact."""


@dataclass
class Score:
    """Counts; ``wrong`` and ``missed`` name what went wrong."""

    right: int = 0
    gold: int = 0
    matched: int = 0
    typed: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + len(self.wrong))

    @property
    def recall(self) -> float:
        return self.matched / max(1, self.gold)

    @property
    def type_accuracy(self) -> float:
        return self.typed / max(1, self.matched)

    def json(self) -> Json:
        return {
            "precision": 100 * self.precision,
            "recall": 100 * self.recall,
            "type_accuracy": 100 * self.type_accuracy,
            "right": self.right,
            "gold": self.gold,
            "matched": self.matched,
            "wrong": self.wrong,
            "missed": self.missed,
        }

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.3f} ({self.right} right, {len(self.wrong)} wrong), "
            f"recall {self.recall:.3f} ({self.matched}/{self.gold}), types {self.type_accuracy:.3f}"
        )


def score(rows: Iterable[Row], extract: Callable[[str], Produced]) -> Score:
    total = Score()
    for row in rows:
        _score_row(row, extract(row["text"]), total)
    return total


def _score_row(row: Row, produced: Produced, total: Score) -> None:
    total.gold += len(row["facts"])
    for kind, content in produced:
        if any(is_right(content, gold, row["text"]) for gold in row["facts"]):
            total.right += 1
        elif not row["facts"] or any(hits_not(content, gold) for gold in row["facts"]):
            total.wrong.append(f"{row['text']!r} -> {kind}: {content!r}")
    for gold in row["facts"]:
        kinds = [kind for kind, content in produced if is_right(content, gold, row["text"])]
        total.matched += bool(kinds)
        total.typed += gold["type"] in kinds
        if not kinds:
            total.missed.append(f"[{row['kind']}] {row['text']!r} -> {[content for _, content in produced]!r}")


def is_right(content: str, gold: Row, message: str) -> bool:
    low = content.lower()
    return (
        all(part.lower() in low for part in gold["must"])
        and (not gold.get("any") or any(part.lower() in low for part in gold["any"]))
        and not hits_not(content, gold)
        and len(content) <= CONTENT_CHARS_MAX
        and (speaks_of_user(content, message) or quotes(content, message))
    )


def speaks_of_user(content: str, message: str) -> bool:
    """In the third person, and not the message itself."""
    return "user" in content.lower() and not _FIRST_PERSON.search(content) and content.strip() != message.strip()


def quotes(content: str, message: str) -> bool:
    """Whether it is within double quotes, and what stands there is in the message word for word."""
    return is_quoted(content) and _plain(unquoted(content)) in _plain(message)


def _plain(text: str) -> str:
    """On one line, with one kind of quotation mark."""
    return " ".join(text.replace('"', "'").split())


def hits_not(content: str, gold: Row) -> bool:
    return any(part.lower() in content.lower() for part in gold.get("not", []))
