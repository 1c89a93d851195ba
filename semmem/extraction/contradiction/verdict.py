"""What a new statement is to an old one. In doubt both stay: losing is worse than doubling.

First the closed forms, which hold for any subject and need no vectors; what they leave open the trained judge may
decide, within guards: what is dropped must have the same numbers, names and negations, and nothing but one thing of
what is retired may be missing from the new statement."""

from dataclasses import dataclass
from enum import StrEnum

from semmem.extraction.contradiction.pair_model import Likelihoods
from semmem.extraction.contradiction.quantities import compared, take_quantities
from semmem.extraction.contradiction.reading import (
    CHANGE,
    DIRECTIONS,
    ENDING,
    INDEFINITE,
    KIN,
    NEGATIONS,
    OWN,
    SELF,
    TEXT_CHARS_MAX,
    Told,
    change,
    clauses,
    is_year,
    listed,
    read,
    repeats,
    replaced_quantity,
    same_quantity,
    swapped,
    tells_an_event,
    without_region,
)
from semmem.text.quoting import unquoted
from semmem.text.stems import stem, stems

NEARLY_COSINE_MIN = 0.9
"""From here on a number that differs is another value of the same thing, in scripts that the rules cannot read."""
COMPETE_MIN = 0.7
"""So likely two statements must say the same or exclude each other, for one of them to go."""
CORRECTED_MIN = 0.4
"""As much is enough where the new one corrects what was said just before."""
SAME_MIN = 0.92
"""So likely a statement in other words must be a paraphrase to be dropped; below it were different ones, in folds."""
CONTAINED_MIN = 0.5
"""As much is enough where every word of it is in the old statement."""
SWAPPED_WORDS_MAX = 2
"""So many words in the place of so many others are no paraphrase that vectors could tell: they take "left" for "right",
and "lends" for "borrows"."""
BOUNDS = frozenset("before after without until since".split())
"""Of the prepositions of direction those that change what is said even where the other statement has none."""
MORE_WORDS_MAX = 4
"""So many words more than the old one a paraphrase may have."""
UNSETTLED_MIN = 0.3
"""From here on a pair whose statements both stay is said to be unsettled."""
STEM_CHARS_MIN = 5
"""Stems that begin with as many letters alike may be forms of one word ("allerg", "allergi")."""
STEM_TAIL_MAX = 2
"""So many letters of the shorter one may differ."""
LEFT_MAX = 1
"""So many words of the old statement a repetition may leave out: more are another emphasis at the least."""
NAMED_AFTER = 2
"""Words before the name of somebody of whom the rest is said: whose they are, and what ("my friend")."""
MEANT = listed("meant")
"""What makes an intention, a wish or a guess of a statement."""
DENIED_CHARS_MIN = 3
"""So much of a word must stand behind a prefix that denies it."""
_DENYING = ("un", "dis", "non-", "non")
_NAMING = frozenset({"call", "name"})
"""Stems of what says no more than that a name follows."""
_FREE = frozenset({"to"})
"""The preposition that other forms of a word call for ("a peanut allergy", "allergic to peanuts")."""


class Verdict(StrEnum):
    """What a new statement is to an old one."""

    SAME = "same"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Judged:
    """``unsettled``: both stay, and yet they may contradict each other."""

    verdict: Verdict
    unsettled: bool = False


def closed(old: str, new: str, cosine: float) -> Verdict | None:
    """What the words alone decide; ``cosine`` is that of the embeddings, in [-1, 1]. None: they do not."""
    old, new = unquoted(old), unquoted(new)
    if _is_the_same(old, new):
        return Verdict.SAME
    if not (_is_readable(old) and _is_readable(new)):
        changed = change(old, new) if cosine > NEARLY_COSINE_MIN else None
        if changed is None or not changed.of_quantities or changed.after[:1] in (("年",), ("년",)):
            return Verdict.DIFFERENT
        return Verdict.CONTRADICTION
    one, other = read(old), read(new)
    denied = one.negations % 2 != other.negations % 2 and _affirmed(one) == _affirmed(other)
    if denied or replaced_quantity(old, new):
        return Verdict.CONTRADICTION
    return Verdict.DIFFERENT if _another_time(old, new) else None


def decided(old: str, new: str, likely: Likelihoods, corrects: bool = False, beside: bool = False) -> Judged:
    """What the trained judge's likelihoods come to. ``corrects``: the new one was said right after the old one.
    ``beside``: one message says both, and ends what it says itself only where it says that something ends, changes or
    was wrong."""
    one, other = read(old), read(new)
    competing = 1 - likely.different
    enough = CORRECTED_MIN if corrects and "corrects" in other.marks else COMPETE_MIN
    if competing < enough or "adds" in other.marks:
        return Judged(Verdict.DIFFERENT, unsettled=likely.contradiction >= UNSETTLED_MIN or _values_clash(one, other))
    if likely.same >= CONTAINED_MIN and likely.same > likely.contradiction and contains(old, new):
        return Judged(Verdict.SAME)
    if "corrects" in other.marks and not corrects and one.content.isdisjoint(other.content):  # whatever it corrects
        return Judged(Verdict.DIFFERENT, unsettled=True)
    changed = change(unquoted(old), unquoted(new))
    swapped_words = 0 if changed is None else max(len(changed.old), len(changed.new))
    if 0 < swapped_words <= SWAPPED_WORDS_MAX and likely.same > likely.contradiction:
        return Judged(Verdict.DIFFERENT, unsettled=True)
    if likely.same >= SAME_MIN and _says_no_more(one, other):
        return Judged(Verdict.SAME)
    if likely.same > likely.contradiction or told_of_another(one, other):
        return Judged(Verdict.DIFFERENT, unsettled=True)
    if loses(old, new) or drops_a_clause(old, other, one) or _another(old, new) or _only_adds(one, other):
        return Judged(Verdict.DIFFERENT, unsettled=True)
    if beside and other.marks.isdisjoint({"ends", "changes", "corrects"}):
        return Judged(Verdict.DIFFERENT)
    return Judged(Verdict.CONTRADICTION)


def may(verdict: Verdict, old: str, new: str) -> bool:
    """Whether a language model's verdict, or that of vectors alone, may be believed: nothing must be lost by it."""
    if verdict is Verdict.SAME:
        return _is_the_same(unquoted(old), unquoted(new))
    return verdict is Verdict.DIFFERENT or not loses(old, new)


def loses(old: str, new: str) -> bool:
    """Whether retiring the old text would lose more of it than one clause, or more than one name that no other name
    replaces: who takes ``3 engineers`` for ``4 engineers and a designer called Mei`` forgets Mei, and who takes ``a
    poodle`` for ``Rex is a beagle from Spain`` forgets Rex or Spain."""
    old = without_region(unquoted(old))
    one, other = read(old), read(new)
    told = frozenset(other.stems)
    left = [part for part in clauses(old) if any(stem(token) not in told for token in part)]
    return len(left) > 1 or _names(one, other) > max(1, _names(other, one))


def _names(one: Told, other: Told) -> int:
    """How many names only the first one has; what stands side by side is one name."""
    own = [stem_ in one.names and stem_ not in other.content for stem_ in one.stems]
    return sum(here and not before for before, here in zip([False, *own], own, strict=False))


def details_differ(old: str, new: str) -> bool:
    """Whether numbers, days, names or a negation are not the same in both, which embeddings hardly see."""
    one, other = read(old), read(new)
    mine, theirs = (told.names | {word for word in told.words if word[0].isdigit()} for told in (one, other))
    return (mine, one.negations % 2) != (theirs, other.negations % 2)


def _is_the_same(old: str, new: str) -> bool:
    return repeats(old, new) or same_quantity(old, new)


def _says_no_more(old: Told, new: Told) -> bool:
    """Whether the new one has the names of the old one and no number besides, is of the user if that one is, denies as
    much and announces nothing."""
    return (
        not compared(old.quantities, new.quantities)[2]
        and all(_is_named(name, old) for name in new.names)
        and all(_is_named(name, new) for name in old.names)
        and SELF.isdisjoint(old.words) == SELF.isdisjoint(new.words)
        and persons(old) == persons(new)
        and denies(old, new) == denies(new, old)
        and not _leads_elsewhere(old, new)
        and not new.marks - old.marks - {"past"}
        and not (swapped(old, new) and not DIRECTIONS.isdisjoint(new.words))
        and len(new.content - old.content) <= len(old.content - new.content) + MORE_WORDS_MAX
    )


def _leads_elsewhere(old: Told, new: Told) -> bool:
    """Whether either has a preposition of direction that the other has not, or one of them a bound of time: "until
    May" is not "since May", and "goes to work by bike" is "cycles to work"."""
    mine, theirs = (DIRECTIONS.intersection(told.words) for told in (old, new))
    return bool(mine - theirs and theirs - mine) or not BOUNDS.isdisjoint(mine ^ theirs)


def _values_clash(old: Told, new: Told) -> bool:
    """Whether the new one announces a change and has another number of a kind."""
    _, gone, come = compared(old.quantities, new.quantities)
    kinds = {kind for kind, _ in gone} & {kind for kind, _ in come}
    return bool(kinds and old.content & new.content and "changes" in new.marks)


def _is_named(name: str, told: Told) -> bool:
    """Whether a name is in a text, if need be as the beginning of a longer one or the other way round."""
    return any(name == word or (min(len(name), len(word)) > 3 and name[:5] == word[:5]) for word in told.content)


def _another(old: str, new: str) -> bool:
    """Whether a name gives way to what is no name, or to that of another one: of several ("a cat called Loki"), or of
    whom it is said ("my friend Ada is a dentist", "my friend Eve is a dentist")."""
    one, other = read(old), read(new)
    gone = one.content - other.content
    said = other.marks & {"ends", "changes", "corrects"} or one.negations % 2 != other.negations % 2
    if gone and gone <= one.names and not (other.names - one.content) and not other.quantities and not said:
        return True
    changed = change(unquoted(old), unquoted(new))
    if changed is None or said or not gone & one.names:
        return False
    of_somebody = bool(changed.after) and len(changed.before) == NAMED_AFTER and changed.before[0] in OWN
    return of_somebody or not INDEFINITE.isdisjoint(changed.before[1:])


def _only_adds(old: Told, new: Told) -> bool:
    """Whether the new one says every word of the old one, denies and ends nothing, and says more besides: "is married",
    "has been married to Renzo since 2016"."""
    return (
        bool(old.content)
        and old.content <= new.content
        and old.negations % 2 == new.negations % 2
        and new.marks.isdisjoint({"ends", "changes", "corrects", "past"})
    )


def _affirmed(told: Told) -> list[str]:
    """What is left of it without what denies, each word of the user's alike."""
    left = NEGATIONS | {"do", "does", "a", "an", "the", "any"}
    pairs = zip(told.words, told.stems, strict=True)
    return ["" if word in SELF else stem_ for word, stem_ in pairs if word not in left]


def _another_time(old: str, new: str) -> bool:
    """Whether they tell of two happenings of a kind: alike but for a number or a year, and past or dated."""
    changed = change(old, new)
    if changed is None:
        return False
    if is_year(changed.old) and is_year(changed.new):
        return True
    return changed.of_quantities and tells_an_event(changed.before)


def _is_readable(text: str) -> bool:
    """Whether the rules can read the script. In any other one only a changed number replaces, all else stays."""
    letters = [char for char in text if char.isalpha()]
    return sum(char.isascii() for char in letters) * 2 >= len(letters)


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
        and MEANT.intersection(one.words) == MEANT.intersection(other.words)
        and DIRECTIONS.intersection(theirs.words) - _FREE <= DIRECTIONS.intersection(mine.words)
        and not swapped(mine, theirs)
    )


def denies(told: Told, other: Told) -> bool:
    """Whether it denies what the other one may affirm, be it by a prefix ("unlocked" to "locked")."""
    prefixed = sum(any(_is_denial(word, each) for each in other.content) for word in told.content - other.content)
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


def _is_denial(word: str, other: str) -> bool:
    """Whether a stem is the other one behind a prefix that denies it ("dislik", "like")."""
    rests = (word.removeprefix(prefix) for prefix in _DENYING if word.startswith(prefix))
    return any(
        len(rest) >= DENIED_CHARS_MIN and other.startswith(rest) and len(other) - len(rest) <= STEM_TAIL_MAX
        for rest in rests
    )
