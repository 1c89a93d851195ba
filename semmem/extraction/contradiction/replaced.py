"""Is an old statement replaced by a new one, whole and for certain? Each rule names one kind of evidence.

Whoever is known has many attributes, and most new statements about somebody add one: that a statement is about the
same person, or even has the same verb, is no evidence. Nor may anything of the old statement be left over: what the
new one has no word for would no longer be found.
"""

from __future__ import annotations

from collections.abc import Callable

from semmem.extraction.contradiction import lexicon
from semmem.extraction.contradiction.pair import Pair, Words, across, groups
from semmem.extraction.contradiction.statement import read, stem
from semmem.extraction.contradiction.wording import (
    Change,
    Tokens,
    change,
    is_calendar,
    is_quantity,
    phrases,
    tokens,
)
from semmem.text.verbs import IRREGULAR_VERBS

COPULAS = frozenset({"is", "are", "am", "'s"})
INDEFINITE = frozenset({"a", "an", "another", "some"})
DIRECTIONS = frozenset({"from", "before", "after", "without", "until", "since"})
"""Prepositions that make something else of what stands behind them; ``at`` and ``for`` do not."""
ELSEWHEN = frozenset("night nights day days home weekend weekends times first last work".split())
"""What follows a preposition without being the name of a place or a firm."""
PAST = frozenset(past for past, _ in IRREGULAR_VERBS.values()) - {"cost", "set"} | {"were", "shut"}
"""Irregular forms that tell of the past; "cost" and "set" are as often of the present."""
_PLACED = frozenset({"#live", "#origin", "#employer"})
_EXCLUSIVE = frozenset(f"#{name}" for name in lexicon.EXCLUSIVE)
_MEASURED = frozenset(f"#{name}" for name in lexicon.MEASURED)
_DATES = frozenset({"day", "month", "weekday", "time"})
_MEASURES = {
    "#age": frozenset({"count", "months"}),
    "#budget": frozenset({"count", "money"}),
    "#birthday": frozenset({"day", "month"}),
    "#wake": frozenset({"time", "count"}),
    "#address": frozenset({"count", "code"}),
    "#expire": _DATES,
    "#due": _DATES,
}
"""The kinds of quantities that are the value of an attribute. A weekday is not somebody's age."""
_ENDED_BY_A_CHANGE = frozenset("#use #drive #have #live #employer #job".split())
_ONE_AT_A_TIME = frozenset(lexicon.ONE_AT_A_TIME | {"manager", "wife", "husband", "mum", "mom", "dad", "supervisor"})


def replaces(pair: Pair, old: str, new: str) -> bool:
    """Whether the new statement takes the old one's place, and nothing of the old one is lost with it."""
    if pair.new.additional or pair.old.additional or _differ_in_direction(old, new):
        return False
    changed = change(old, new)
    if changed is not None and any(rule(changed, old, new) for rule in _LITERAL):
        return True
    return any(rule(pair, old, new) for rule in _READ)


def loses(old: str, new: str, pair: Pair | None) -> bool:
    """Whether retiring the old text would lose more of it than one phrase.

    ``pair`` None: the rules cannot read it, and what differs must be one stretch without a conjunction in it. ``4
    engineers and a designer called Mei`` has three phrases, of which ``3 engineers`` replaces one.
    """
    if pair is None:
        changed = change(old, new)
        return changed is None or phrases(" ".join(changed.old)) != [changed.old]
    return len(_left_over(pair, phrases(old), new)) > 1


def numbers_replaced(old: str, new: str) -> bool:
    """For texts that the rules cannot read: whether they are alike but for one number."""
    changed = change(old, new)
    return changed is not None and is_quantity(changed.old) and is_quantity(changed.new) and not _of_a_year(changed)


def _of_a_year(changed: Change) -> bool:
    return changed.after[:1] in (("年",), ("년",))


# --- what the words themselves say: everything is alike but for one stretch -------------------------------------------


def _quantity(changed: Change, old: str, new: str) -> bool:
    """Another number of the same thing. A date or time counts only for something that belongs to somebody ("the user's
    exam"): else there may be two such days."""
    if not (is_quantity(changed.old) and is_quantity(changed.new)):
        return False
    if INDEFINITE & set(changed.before) or _tells_an_event(changed.before):
        return False
    dated = is_calendar(changed.old) or is_calendar(changed.new)
    return not dated or any(token.endswith("'s") for token in changed.before)


def _tells_an_event(before: Tokens) -> bool:
    """Whether a past event is told: with another number it is another event, and the first one stays true."""
    return any((len(token) > 4 and token.endswith("ed")) or token in PAST for token in before)


def _opposite(changed: Change, _old: str, _new: str) -> bool:
    """The opposite choice: a window seat, and now an aisle seat."""
    chosen = changed.before[-1] in COPULAS or changed.before[-1] in ("prefers", "prefer")
    if not chosen or max(len(changed.old), len(changed.new)) > 2:
        return False
    old, new = (frozenset(map(stem, stretch)) for stretch in (changed.old, changed.new))
    return across(_OPPOSITES, old, new)


def _attribute(changed: Change, old: str, new: str) -> bool:
    """Another value of an attribute that has one at a time: a favourite, an address, a name."""
    if changed.before[-1] not in COPULAS or changed.after or not changed.before[0].endswith("'s"):
        return False
    attributes = read(" ".join((*changed.before, "1"))).attributes & _EXCLUSIVE
    if "#favourite" in attributes:
        return True
    numbered = all(any(token[0].isdigit() for token in stretch) for stretch in (changed.old, changed.new))
    return bool(attributes) and (numbered or (_is_name(changed.old, old) and _is_name(changed.new, new)))


def _one_at_a_time(changed: Change, old: str, new: str) -> bool:
    """Another name for a relation of which people have one at a time: a spouse, a boss."""
    if changed.before[-1] not in COPULAS or len(changed.before) < 2 or changed.after:
        return False
    whose = changed.before[-2].removesuffix("'s")
    return whose in _ONE_AT_A_TIME and _is_name(changed.old, old) and _is_name(changed.new, new)


def _is_name(stretch: Tokens, text: str) -> bool:
    written = {word.strip(",.;!?").casefold() for word in text.split()[1:] if word[:1].isupper()}
    return all(token in written for token in stretch)


# --- what the rules read in them --------------------------------------------------------------------------------------


def _denied(pair: Pair, old: str, new: str) -> bool:
    """One affirms and the other denies exactly the same."""
    if pair.old.negative == pair.new.negative or pair.old_only or pair.new_only or not _denies_all(pair):
        return False
    if not (pair.shared or pair.attributes) or not _same_subject(old, new):
        return False
    differing = pair.old.attributes ^ pair.new.attributes
    return differing <= {"#have"} or pair.new.change or not pair.old.attributes


def _denies_all(pair: Pair) -> bool:
    """Whether the denial covers the quantities of the other: who does not smoke does not smoke ten a day, but who eats
    no meat on Mondays may eat some on Tuesdays."""
    old, new = pair.old.quantities, pair.new.quantities
    return new <= old if pair.new.negative else new == old


def _measure(pair: Pair, old: str, new: str) -> bool:
    """Another value of an attribute that has one: an age, a budget, a birthday."""
    kinds = {kind for kind, _ in pair.old.quantities | pair.new.quantities}
    if pair.old_only or pair.new_only or pair.old.negative != pair.new.negative or pair.conflicting != kinds:
        return False
    if pair.old.attributes != pair.new.attributes or INDEFINITE & {*tokens(old), *tokens(new)}:
        return False
    return len(kinds) == 1 and any(kinds <= _MEASURES.get(attribute, frozenset()) for attribute in pair.attributes)


def _exclusive(pair: Pair, old: str, new: str) -> bool:
    """Another home, employer or occupation."""
    attributes = pair.attributes & (_EXCLUSIVE - _MEASURED - {"#favourite", "#name"})
    if not attributes or not pair.both_differ or pair.old.quantities != pair.new.quantities:
        return False
    if pair.old.past or pair.new.past or pair.old.negative or pair.new.negative or not _same_subject(old, new):
        return False
    if attributes <= _PLACED and not (pair.named or _bare(pair, old, new)):
        return False
    back = Pair(pair.new, pair.old)
    return len(_left_over(pair, phrases(old), new)) == 1 and len(_left_over(back, phrases(new), old)) == 1


def _bare(pair: Pair, old: str, new: str) -> bool:
    """Whether both values are names written in lower case: ``in texas``, and not ``in a tower``."""
    if old.replace("User", "user") != old.lower() and new.replace("User", "user") != new.lower():
        return False
    return all(_bare_value(tokens(text), only) for text, only in ((old, pair.old_only), (new, pair.new_only)))


def _bare_value(found: Tokens, only: Words) -> bool:
    values = [place for place, token in enumerate(found) if stem(token) in only]
    if not values or found[values[0]] in ELSEWHEN:
        return False
    return found[values[0] - 1] in ("in", "at", "for", "to", "from") and values[-1] == len(found) - 1


def _named_change(pair: Pair, old: str, new: str) -> bool:
    """``switched from Vim to Emacs``: the new statement names what it puts an end to."""
    if not pair.new.change or pair.old_only or not pair.old.words or not pair.new_only or pair.new.negative:
        return False
    told = tokens(new)
    leaves = any(word in told for word in ("from", "instead", "replaced", "replaces"))
    known = pair.old.attributes and pair.old.attributes <= _ENDED_BY_A_CHANGE
    return bool(leaves and known and pair.old.quantities <= pair.new.quantities)


def _left_over(pair: Pair, parts: list[Tokens], new: str) -> list[Tokens]:
    """Those parts of the old text that hold a word or a number which the new one does not have."""
    told = frozenset(tokens(new))
    return [part for part in parts if any(_is_lost(token, pair.old_only, told) for token in part)]


def _is_lost(token: str, only: Words, told: frozenset[str]) -> bool:
    if token[0].isdigit():
        return token not in told
    return stem(token.removesuffix("'s")) in only


def _same_subject(old: str, new: str) -> bool:
    """Both begin with the same words: the user, or the same thing of the same person's."""
    one, other = tokens(old)[:2], tokens(new)[:2]
    if not one or not other or one[0] != other[0]:
        return False
    return not one[0].endswith("'s") or one[1:] == other[1:]


def _differ_in_direction(old: str, new: str) -> bool:
    """Whether only the old one has a word like "from" or "before": ``from Oslo`` is not ``to Oslo``."""
    one, other = DIRECTIONS & set(tokens(old)), DIRECTIONS & set(tokens(new))
    return bool(one - other)


_OPPOSITES = groups(lexicon.OPPOSITES.replace("\n", "|").split("|"))
_LITERAL: tuple[Callable[[Change, str, str], bool], ...] = (_quantity, _opposite, _attribute, _one_at_a_time)
_READ: tuple[Callable[[Pair, str, str], bool], ...] = (_denied, _measure, _exclusive, _named_change)
