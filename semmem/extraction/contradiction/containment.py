"""Whether a statement has nothing that another one has not: what vectors cannot tell, and words can."""

from __future__ import annotations

from semmem.extraction.contradiction.quantities import compared, take_quantities
from semmem.extraction.contradiction.reading import (
    CHANGE,
    DIRECTIONS,
    ENDING,
    KIN,
    NEGATIONS,
    TEXT_CHARS_MAX,
    Told,
    listed,
    read,
    swapped,
)
from semmem.extraction.contradiction.wording import clauses
from semmem.text.quoting import unquoted
from semmem.text.stems import stem, stems

STEM_CHARS_MIN = 5
"""Stems that begin with as many letters alike may be forms of one word ("allerg", "allergi")."""
STEM_TAIL_MAX = 2
"""So many letters of the shorter one may differ."""
LEFT_MAX = 1
"""So many words of the old statement a repetition may leave out: more are another emphasis at the least."""
MEANT = listed("meant")
"""What makes an intention, a wish or a guess of a statement."""
DENIED_CHARS_MIN = 3
"""So much of a word must stand behind a prefix that denies it."""
_DENYING = ("un", "dis", "non-", "non")
_NAMING = frozenset({"call", "name"})
"""Stems of what says no more than that a name follows."""
_FREE = frozenset({"to"})
"""The preposition that other forms of a word call for ("a peanut allergy", "allergic to peanuts")."""


def contains(old: str, new: str) -> bool:
    """Whether all that the new text says is said by the old one, of the same person, in the same order and tense."""
    one, other = read(old), read(new)
    mine, theirs = _beside_quantities(old), _beside_quantities(new)
    return (
        all(_is_said(word, mine) for word in theirs.content)
        and sum(not _is_said(word, theirs) for word in mine.content) <= LEFT_MAX
        and not compared(one.quantities, other.quantities)[2]
        and denies(one, other) == denies(other, one)
        and persons(one) == persons(other)
        and one.marks == other.marks
        and _of(MEANT, one) == _of(MEANT, other)
        and _of(DIRECTIONS, theirs) - _FREE <= _of(DIRECTIONS, mine)
        and not swapped(mine, theirs)
    )


def denies(told: Told, other: Told) -> bool:
    """Whether it denies what the other one may affirm, be it by a prefix ("unlocked" to "locked")."""
    prefixed = sum(_affirms(word, other) for word in told.content - other.content)
    return (told.negations + prefixed) % 2 == 1


def told_of_another(old: Told, new: Told) -> bool:
    """Whether the same is said of a relative as of the user, or of two of them."""
    about = [told.owner if told.owner in KIN else "" for told in (old, new)]
    shared = (old.content & new.content) - old.names - new.names - frozenset(stems(sorted(old.kin | new.kin)))
    return about[0] != about[1] and persons(old) != persons(new) and bool(shared)


def persons(told: Told) -> frozenset[str]:
    """Whom it is about, "ex-wife" and "daughter-in-law" included."""
    words = (word.removesuffix("'s") for word in told.words)
    return told.kin | {word for word in words if "-" in word and not KIN.isdisjoint(word.split("-"))}


def drops_a_clause(old: str, new: Told, told: Told) -> bool:
    """Whether the new one ends or denies one clause of the old text, and says nothing in the place of the other one:
    who is "no longer allergic to nuts" may be allergic to bee stings still. ``told``: the old text as it was read."""
    parts = clauses(unquoted(old))
    known = frozenset(new.stems)
    left = [part for part in parts if any(stem(token) not in known for token in part)]
    come = new.content - told.content - frozenset(stems([*ENDING, *CHANGE, *NEGATIONS]))
    return len(parts) > len(left) > 0 and not come and not compared(told.quantities, new.quantities)[2]


def _beside_quantities(text: str) -> Told:
    return read(take_quantities(unquoted(text)[:TEXT_CHARS_MAX].lower().replace("’", "'"))[1])


def _is_said(word: str, told: Told) -> bool:
    return word in told.content or any(
        _is_form(word, other) or _is_denial(word, other) or _is_denial(other, word) or {word, other} <= _NAMING
        for other in told.content
    )


def _is_form(one: str, other: str) -> bool:
    if not (one.isalpha() and other.isalpha()):
        return False
    alike = max(STEM_CHARS_MIN, min(len(one), len(other)) - STEM_TAIL_MAX)
    return one[:alike] == other[:alike] and min(len(one), len(other)) >= STEM_CHARS_MIN


def _affirms(word: str, told: Told) -> bool:
    return any(_is_denial(word, other) for other in told.content)


def _is_denial(word: str, other: str) -> bool:
    """Whether a stem is the other one behind a prefix that denies it ("dislik", "like")."""
    rests = (word.removeprefix(prefix) for prefix in _DENYING if word.startswith(prefix))
    return any(
        len(rest) >= DENIED_CHARS_MIN and other.startswith(rest) and len(other) - len(rest) <= STEM_TAIL_MAX
        for rest in rests
    )


def _of(listed: frozenset[str], told: Told) -> frozenset[str]:
    return listed & frozenset(told.words)
