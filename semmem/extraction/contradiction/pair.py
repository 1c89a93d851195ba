"""What two statements share, what only one of them says, and where their numbers and days differ."""

from __future__ import annotations

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.quantities import Number, Value
from semmem.extraction.contradiction.statement import Statement, stem

NAMESAKE_COSINE_MIN = 0.55
"""Below it a shared name alone does not make two statements be about one thing."""
VALUE_WORDS_MAX = 3
"""What has more words than that is a story, not a value."""
Words = frozenset[str]


class Pair:
    """Two statements and what they share: ``old_only`` and ``new_only`` are the words of one side."""

    def __init__(self, old: Statement, new: Statement, cosine: float) -> None:
        self.old, self.new, self.cosine = old, new, cosine
        wide, narrow = covered(old, new)
        self.shared = (old.words & new.words) | wide
        self.old_only, self.new_only = old.words - new.words - wide, new.words - old.words - narrow
        self.attributes = old.attributes & new.attributes
        self.named = bool(self.old_only & old.names) and bool(self.new_only & new.names)
        self.exclusive = bool(self._one_holds())
        self.agreeing, self.conflicting = _compare(old.quantities, new.quantities)

    def _one_holds(self) -> Words:
        """The shared attributes of which one value holds, and both values are of the kind that excludes."""
        return self.attributes & (_EXCLUSIVE if self.named else _EXCLUSIVE - _NAMED)

    def _mere_people(self) -> Words:
        """Words that two statements may share without being about one thing."""
        people = self.old.persons | self.new.persons
        return people | self.old.names if self.cosine < NAMESAKE_COSINE_MIN else people

    @property
    def both_differ(self) -> bool:
        return bool(self.old_only and self.new_only)

    @property
    def near(self) -> bool:
        """Two short statements of one thing, not two stories that have a word in common."""
        if self.both_differ and not self.exclusive and self.shared <= self._mere_people():
            return False
        shared = len(self.shared) + self.exclusive
        return 0 < shared >= len(self.old_only) - 1 and max(len(self.old_only), len(self.new_only)) <= VALUE_WORDS_MAX


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


def _compare(old: frozenset[Value], new: frozenset[Value]) -> tuple[bool, set[str]]:
    """Whether quantities of one kind agree, and the kinds that differ."""
    agreeing = False
    conflicting: set[str] = set()
    for kind in {kind for kind, _ in old} & {kind for kind, _ in new}:
        pairs = [(a, b) for k, a in old if k == kind for j, b in new if j == kind]
        same = any(_equal(a, b) for a, b in pairs)
        agreeing = agreeing or same
        conflicting |= set() if same else {kind}
    return agreeing, conflicting


def _equal(a: object, b: object) -> bool:
    return a.agrees(b) if isinstance(a, Number) and isinstance(b, Number) else a == b
