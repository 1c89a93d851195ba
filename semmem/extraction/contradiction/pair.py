"""What two statements share, what only one of them says, and where their numbers and days differ."""

from __future__ import annotations

from collections.abc import Iterable

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.quantities import Number, Value
from semmem.extraction.contradiction.statement import Statement, stem

Words = frozenset[str]


class Pair:
    """Two statements and what they share: ``old_only`` and ``new_only`` are the words of one side."""

    def __init__(self, old: Statement, new: Statement) -> None:
        self.old, self.new = old, new
        wide, narrow = covered(old, new)
        self.shared = (old.words & new.words) | wide
        self.old_only, self.new_only = old.words - new.words - wide, new.words - old.words - narrow
        self.attributes = old.attributes & new.attributes
        self.named = bool(self.old_only & old.names) and bool(self.new_only & new.names)
        self.exclusive = bool(self._one_holds())
        self.conflicting = _conflicting(old.quantities, new.quantities)

    def _one_holds(self) -> Words:
        """The shared attributes that have one value at a time, where the two values exclude each other."""
        return self.attributes & (_EXCLUSIVE if self.named else _EXCLUSIVE - _NAMED)

    @property
    def both_differ(self) -> bool:
        return bool(self.old_only and self.new_only)


_EXCLUSIVE = frozenset(f"#{name}" for name in lexicon.EXCLUSIVE)
_KINDS = {
    stem(wide): frozenset(stem(word) for word in narrow.split())
    for wide, _, narrow in (line.partition(": ") for line in lexicon.KINDS.splitlines())
}
_NAMED = frozenset(f"#{name}" for name in lexicon.NAMED)


def covered(old: Statement, new: Statement) -> tuple[Words, Words]:
    """What the old statement denies as a whole (``no children``), and the part of it that the new one is about."""
    wide = frozenset(word for word in old.words if word in _KINDS and new.words & _KINDS[word])
    if not old.negative or new.negative or not wide:
        return frozenset(), frozenset()
    return wide, new.words & frozenset().union(*(_KINDS[word] for word in wide))


def _conflicting(old: frozenset[Value], new: frozenset[Value]) -> set[str]:
    """The kinds of quantities of which both have some and none agree."""
    conflicting: set[str] = set()
    for kind in {kind for kind, _ in old} & {kind for kind, _ in new}:
        pairs = [(a, b) for k, a in old if k == kind for j, b in new if j == kind]
        conflicting |= set() if any(_equal(a, b) for a, b in pairs) else {kind}
    return conflicting


def groups(lines: Iterable[str]) -> dict[str, Words]:
    """For each word the other words of the lines that it stands in."""
    found: dict[str, Words] = {}
    for line in lines:
        group = frozenset(stem(word) for word in line.split())
        for word in group:
            found[word] = found.get(word, frozenset()) | (group - {word})
    return found


def across(grouped: dict[str, Words], old: Words, new: Words) -> bool:
    """Whether a word of ``old`` and a word of ``new`` belong to the same group."""
    return any(not new.isdisjoint(grouped[word]) for word in old if word in grouped)


def _equal(a: object, b: object) -> bool:
    return a.agrees(b) if isinstance(a, Number) and isinstance(b, Number) else a == b
