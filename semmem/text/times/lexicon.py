"""Words of five languages (lexicon.json) and the class of each. One letter is a class; ``grammar`` is written in them.

d  a day by its distance (value: days)     L T X  last, this, next (before)     l x  the same (after)
U  unit of time                            P  part of a day                     W w  weekday, short form
M  month                                   m c i  a month's word that means something else too (see ``tokens``)
S  season or feast    K  quarter           E  decade (value: its first year)    Y  year       r  years from-to
D  a whole date                            Z  year and month                    N O  number, ordinal     a  one, "a"
I  in, during         n  on                f  of         t  the                 e  beginning, end
A  ago                H  ago (before it)   R  from now   s  since    b  before  v  after      k  every
F  from, between      o  to, and           p  a plural noun                     , . -  themselves      ;  the rest
"""

from __future__ import annotations

import json
from pathlib import Path

from semmem.text.number_words import CARDINALS, FRENCH, GERMAN, SPANISH
from semmem.text.times.names import MONTHS, WEEKDAYS

Entry = tuple[str, object]

AMBIGUOUS_MONTHS = {"march": 3, "april": 4, "may": 5, "june": 6, "august": 8, "mars": 3, "mai": 5, "mayo": 5}
"""Months that are also verbs, names, planets or sauces."""


_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _valued(letter: str, values: dict[str, str]) -> dict[str, Entry]:
    """A value of digits is a number."""
    read = {name: int(name) if name.lstrip("-").isdigit() else name for name in values}
    return {word: (letter, read[name]) for name, words in values.items() for word in words.split()}


WORDS: dict[str, Entry] = {
    **{word: (letter, word) for letter, words in _DATA["plain"].items() for word in words.split()},
    **{name: ("W", number) for number, name in enumerate(WEEKDAYS)},
    **{name: ("M", number) for number, name in enumerate(MONTHS, 1) if name not in AMBIGUOUS_MONTHS},
    **{word: ("N", value) for word, value in CARDINALS.items() if value},
    # not the French "sept", which is September in more languages
    **{word: ("N", value) for some in (GERMAN, SPANISH, FRENCH) for word, value in some.items() if word != "sept"},
}
for _letter, _values in _DATA["valued"].items():
    WORDS |= _valued(_letter, _values)

TELLING = (
    frozenset(word for word, (letter, _) in WORDS.items() if letter in "dPUWwMcSK")
    | AMBIGUOUS_MONTHS.keys()
    | {"aujourd"}
)
"""Every time is named with one of these words, or a digit, or in Chinese."""

PHRASES: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
for _words, _letter, _value in _DATA["phrases"]:
    PHRASES.setdefault(_words[0], []).append((tuple(_words), (_letter, _value)))
"""Several words that are one."""

MORNING_WORDS = frozenset({"morgen", "mañana"})
NOT_TOMORROW_AFTER = frozenset("heute gestern am guten jeden good la esta por de cada buena früher vom bis zum".split())
"""After these words, "morgen" and "mañana" are the morning."""

MAY_FOLLOW_A_MONTH = frozenset(
    "i we my our with about and when of de del du at in to on for from last this did was were do if because but".split()
)
"""A word in small letters that is a month only in doubt is one before these, before a number, or at the end."""

NOT_PLURAL = frozenset("is was as us has this his its does yes vs always".split())
