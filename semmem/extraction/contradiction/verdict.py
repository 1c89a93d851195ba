"""What a new statement is to an old one. In doubt both stay: losing is worse than doubling."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.pair import Pair, across, covered, groups
from semmem.extraction.contradiction.replaced import loses, numbers_replaced, replaces
from semmem.extraction.contradiction.statement import read, stem
from semmem.extraction.contradiction.wording import repeats

NEARLY_COSINE_MIN = 0.9
"""From here on a number that differs is another value of the same thing, in scripts that the rules cannot read."""


class Verdict(StrEnum):
    """What a new statement is to an old one."""

    SAME = "same"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


_read_again = lru_cache(maxsize=1)(read)
"""One fact is compared with all its neighbours, one after another."""


def judge(old: str, new: str, cosine: float) -> Verdict:
    """What ``new`` is to the stored ``old``; ``cosine`` is that of their embeddings, in [-1, 1]."""
    if repeats(old, new):
        return Verdict.SAME
    if not (_is_readable(old) and _is_readable(new)):
        replaced = cosine > NEARLY_COSINE_MIN and numbers_replaced(old, new)
        return Verdict.CONTRADICTION if replaced else Verdict.DIFFERENT
    pair = Pair(read(old), _read_again(new))
    apart = _other_person(pair) or _other_thing(pair)
    return Verdict.CONTRADICTION if not apart and replaces(pair, old, new) else Verdict.DIFFERENT


def may(verdict: Verdict, old: str, new: str) -> bool:
    """Whether somebody else's verdict may be believed, a language model's or that of vectors alone: nothing that is
    said must be lost by it. Only a repetition is dropped, and only what is replaced whole is retired."""
    if verdict is Verdict.SAME:
        return repeats(old, new)
    if verdict is Verdict.CONTRADICTION:
        readable = _is_readable(old) and _is_readable(new)
        return not loses(old, new, Pair(read(old), _read_again(new)) if readable else None)
    return True


def details_differ(old: str, new: str) -> bool:
    """Whether numbers, days, names or a negation are not the same in both, which embeddings hardly see."""
    one, other = read(old), _read_again(new)
    return (one.quantities, one.names, one.negative) != (other.quantities, other.names, other.negative)


def _is_readable(text: str) -> bool:
    """Whether the rules can read the script. In any other one only a changed number replaces, all else stays."""
    letters = [char for char in text if char.isalpha()]
    return sum(char.isascii() for char in letters) * 2 >= len(letters)


_SIDES = groups(lexicon.SIDES.splitlines())
_PARTNERS = frozenset(stem(word) for word in ("spouse", "partner", "ex", "friend"))


def _other_person(pair: Pair) -> bool:
    """Whether they are about different people: the user, the user's sister, the user's daughter."""
    old, new = pair.old, pair.new
    if old.persons and new.persons:
        return not old.persons & new.persons and not covered(old, new)[0] and not _same_partner(pair)
    owner = (old.subject | new.subject) & (old.persons or new.persons)
    return bool(owner) and not pair.shared & (old.names | new.names) and not pair.attributes & {"#marital"}


def _same_partner(pair: Pair) -> bool:
    """Whether both are about one partner by name, who was a girlfriend and is a wife now, or an ex."""
    return bool(pair.shared & pair.old.names) and pair.old.persons | pair.new.persons <= _PARTNERS


def _other_thing(pair: Pair) -> bool:
    """Whether they are about different things: the test cluster and the live cluster, the camera and the drone."""
    if pair.old.change or pair.new.change:
        return False
    if across(_SIDES, pair.old_only, pair.new_only) and not pair.attributes & {"#prefer", "#favourite"}:
        return True
    old, new = pair.old.subject - pair.new.words, pair.new.subject - pair.old.words
    return bool(old and new) and not pair.exclusive | bool(pair.shared & pair.old.names)
