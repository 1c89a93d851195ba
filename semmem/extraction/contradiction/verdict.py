"""Compare the slots of two statements. Rules are asked in order; the first that knows decides."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.pair import VALUE_WORDS_MAX, Pair, Words, covered
from semmem.extraction.contradiction.statement import read, stem

SAME_COSINE_MIN = 0.84
"""Above it two short statements that no rule tells apart are a paraphrase (median of these: 0.86). Not lower: "owns a
boat" and "owns a canoe" are at 0.83, and a fact that is taken for a paraphrase is lost, where a double is only double.
"""
NEARLY_COSINE_MIN = 0.9
"""As SAME_COSINE_MIN, where the new statement has more than two words of its own."""
AGREEING_COSINE_MIN = 0.7
"""As SAME_COSINE_MIN, where a number or a date agrees."""
SYNONYM_COSINE_MIN = 0.85
"""Above it two values without a name may be two words for one thing."""


class Verdict(StrEnum):
    """What a new statement is to an old one."""

    SAME = "same"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


_read_again = lru_cache(maxsize=1)(read)
"""One fact is compared with all its neighbours, one after another."""


def judge(old: str, new: str, cosine: float) -> Verdict:
    """What ``new`` is to the stored ``old``; ``cosine`` is that of their embeddings, in [-1, 1]."""
    if not (_is_readable(old) and _is_readable(new)):
        return Verdict.CONTRADICTION if cosine > NEARLY_COSINE_MIN else Verdict.DIFFERENT
    pair = Pair(read(old), _read_again(new), cosine)
    for rule in _RULES:
        verdict = rule(pair)
        if verdict is not None:
            return verdict
    return Verdict.DIFFERENT


def details_differ(old: str, new: str) -> bool:
    """Whether numbers, days, names or a negation are not the same in both, which embeddings hardly see."""
    one, other = read(old), _read_again(new)
    return (one.quantities, one.names, one.negative) != (other.quantities, other.names, other.negative)


def _is_readable(text: str) -> bool:
    """Whether the rules know the script: in any other, what is very near replaces and the rest stands beside."""
    letters = [char for char in text if char.isalpha()]
    return sum(char.isascii() for char in letters) * 2 >= len(letters)


def _groups(lines: str, separator: str) -> dict[str, Words]:
    """Every word, with the other words of its groups."""
    found: dict[str, Words] = {}
    for line in lines.replace("\n", separator).split(separator):
        group = frozenset(stem(word) for word in line.split())
        for word in group:
            found[word] = found.get(word, frozenset()) | (group - {word})
    return found


_SIDES = _groups(lexicon.SIDES, "\n")
_OPPOSITES = _groups(lexicon.OPPOSITES, "|")
_ONE_AT_A_TIME = frozenset(stem(word) for word in lexicon.ONE_AT_A_TIME)
_PARTNERS = frozenset(stem(word) for word in ("spouse", "partner", "ex", "friend"))


def _across(groups: dict[str, Words], old: Words, new: Words) -> bool:
    """Whether a word of ``old`` and one of ``new`` are of one group."""
    return any(not new.isdisjoint(groups[word]) for word in old if word in groups)


def _other_person(pair: Pair) -> Verdict | None:
    """The user's sister is not the user's daughter, and neither is the user."""
    old, new = pair.old, pair.new
    if old.persons and new.persons:
        apart = not old.persons & new.persons and not covered(old, new)[0]
        return Verdict.DIFFERENT if apart and not _ends_together(pair) else None
    persons = old.persons or new.persons
    owner = (old.subject | new.subject) & persons
    if owner and not pair.shared & (old.names | new.names) and not pair.attributes & {"#marital"}:
        return Verdict.DIFFERENT
    return None


def _ends_together(pair: Pair) -> bool:
    """A partner of the same name: a girlfriend who is a wife now, or an ex."""
    return bool(pair.shared & pair.old.names) and pair.old.persons | pair.new.persons <= _PARTNERS


def _other_thing(pair: Pair) -> Verdict | None:
    """The test cluster is not the live cluster, and the camera is not the drone."""
    if pair.old.change or pair.new.change:
        return None
    if _across(_SIDES, pair.old_only, pair.new_only) and not pair.attributes & {"#prefer", "#favourite"}:
        return Verdict.DIFFERENT
    old, new = pair.old.subject - pair.new.words, pair.new.subject - pair.old.words
    if old and new and not pair.exclusive | bool(pair.shared & pair.old.names):
        return Verdict.DIFFERENT
    return None


def _opposite_sign(pair: Pair) -> Verdict | None:
    """Yes against no about one thing."""
    if pair.old.negative == pair.new.negative:
        return None
    if pair.old.additional or pair.new.additional:
        return Verdict.DIFFERENT
    if pair.both_differ and not pair.new.change and "#like" in pair.attributes:
        return None
    return Verdict.CONTRADICTION if pair.near else None


def _other_quantity(pair: Pair) -> Verdict | None:
    """Another number, day or time for the same thing; numbers of two things say nothing."""
    if not pair.conflicting:
        return None
    if pair.old.additional or pair.new.additional or (pair.both_differ and not pair.new.change and not pair.exclusive):
        return Verdict.DIFFERENT
    if pair.conflicting == {"year"} and "#visit" in pair.attributes:
        return Verdict.DIFFERENT
    return Verdict.CONTRADICTION if pair.near or not (pair.old_only or pair.new_only) else None


def _announced_change(pair: Pair) -> Verdict | None:
    """``switched to``, ``instead``, ``replaced``: about something that was known."""
    if not pair.new.change or pair.new.additional or not pair.new_only:
        return None
    if pair.near and (pair.old_only or pair.new.replaced):
        return Verdict.CONTRADICTION
    few = len(pair.old_only) <= 2 and len(pair.new_only) <= 2
    return Verdict.CONTRADICTION if few and pair.old_only and pair.attributes & {"#use", "#prefer"} else None


def _opposite_words(pair: Pair) -> Verdict | None:
    """A window seat against an aisle seat."""
    if _across(_OPPOSITES, pair.old_only, pair.new_only) and pair.near:
        return Verdict.CONTRADICTION
    return None


def _one_at_a_time(pair: Pair) -> Verdict | None:
    """Two homes, two employers, two favourites."""
    if not pair.both_differ or pair.agreeing or pair.new.additional or pair.new.past or pair.old.past:
        return None
    if max(len(pair.old_only), len(pair.new_only)) > VALUE_WORDS_MAX:
        return None
    if "#favourite" in pair.attributes or ("#prefer" in pair.attributes and len(pair.attributes) == 1):
        return Verdict.CONTRADICTION if pair.shared else None
    if pair.shared & pair.old.persons - _ONE_AT_A_TIME:
        return None
    if pair.exclusive and (pair.named or pair.cosine < SYNONYM_COSINE_MIN):
        return Verdict.CONTRADICTION
    return _one_value(pair)


def _one_value(pair: Pair) -> Verdict | None:
    """``User's browser is ...``: what is called the user's, as one thing, has one value."""
    subject = pair.old.subject or pair.new.subject
    if not subject or not subject <= pair.shared or (subject & pair.old.persons and not subject & _ONE_AT_A_TIME):
        return None
    if pair.old.attributes != pair.new.attributes and not pair.attributes:
        return None
    return Verdict.CONTRADICTION


def _says_more(pair: Pair) -> Verdict | None:
    """A refinement stands beside what it refines."""
    if pair.old_only or not pair.old.words:
        return None
    more = len(pair.new_only) + len(pair.new.quantities - pair.old.quantities) * (not pair.agreeing)
    if more >= 2 or (more and pair.new_only & pair.new.names) or (more and pair.cosine < SAME_COSINE_MIN):
        return Verdict.DIFFERENT
    return None


def _same(pair: Pair) -> Verdict | None:
    """Nothing is left that only one of them says, or only words that mean nothing to the rules."""
    if pair.old.negative != pair.new.negative:
        return None
    if not pair.new_only and len(pair.old_only) <= len(pair.shared) + 1:
        return Verdict.SAME if pair.shared or pair.attributes or pair.agreeing else None
    if pair.agreeing and pair.cosine > AGREEING_COSINE_MIN and len(pair.new_only) <= 2 and not pair.named:
        return Verdict.SAME
    if (pair.old_only & pair.old.names) or (pair.new_only & pair.new.names):
        return None
    least = SAME_COSINE_MIN if len(pair.new_only) <= 2 else NEARLY_COSINE_MIN
    return Verdict.SAME if pair.cosine >= least else None


_RULES: tuple[Callable[[Pair], Verdict | None], ...] = (
    _other_person,
    _other_thing,
    _opposite_sign,
    _other_quantity,
    _opposite_words,
    _announced_change,
    _one_at_a_time,
    _says_more,
    _same,
)
