"""Words of five languages and the class of each. One letter is one class; ``grammar`` is written in these letters.

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

from semmem.text.number_words import CARDINALS, FRENCH, GERMAN, SPANISH
from semmem.text.times.names import MONTHS, WEEKDAYS

Entry = tuple[str, object]

AMBIGUOUS_MONTHS = {"march": 3, "april": 4, "may": 5, "june": 6, "august": 8, "mars": 3, "mai": 5, "mayo": 5}
"""Months that are also verbs, names, planets or sauces."""


def _words(letter: str, rows: str) -> dict[str, Entry]:
    """``rows``: "value: word word, value: word". A value of digits is a number."""
    found: dict[str, Entry] = {}
    for row in rows.split(","):
        value, _, words = row.partition(":")
        name = value.strip()
        read: object = int(name) if name.lstrip("-").isdigit() else name
        found |= dict.fromkeys(words.split(), (letter, read))
    return found


def _plain(letter: str, words: str) -> dict[str, Entry]:
    return {word: (letter, word) for word in words.split()}


WORDS: dict[str, Entry] = {
    **_plain("L", "last past previous letzte letzten letzter letztes letztem vergangene vergangenen vergangenes"),
    **_plain("L", "vergangener últimos últimas último última pasado pasada"),
    **_plain("T", "this diese diesen dieses dieser diesem este esta cette ce cet"),
    **_plain("X", "next coming nächste nächsten nächster nächstes nächstem kommende kommenden próximo próxima"),
    **_plain("l", "dernier dernière derniers dernières passé passée"),
    **_plain("x", "prochain prochaine"),
    **_plain("I", "in during im en throughout early mid late around mid-"),
    **_plain("n", "on am"),
    **_plain("f", "of de del du"),
    **_plain("t", "the el le la los les den dem der"),
    **_plain("e", "end beginning start middle anfang ende mitte"),
    **_plain("A", "ago"),
    **_plain("H", "hace vor"),
    **_plain("s", "since seit depuis desde"),
    **_plain("b", "before"),
    **_plain("v", "after"),
    **_plain("k", "every each jeden jede cada chaque"),
    **_plain("F", "from between von zwischen entre"),
    **_plain("o", "to and until till through bis und hasta y et"),
    **_plain("N", "couple few"),
    **_words("d", "0: today tonight heute hoy aujourd'hui, -1: yesterday gestern ayer hier, 1: tomorrow demain"),
    **_words("d", "-2: vorgestern anteayer antier, 1: morgen mañana, 2: übermorgen"),
    **_words("P", "part: morning afternoon evening night nacht abend noche"),
    **_words("U", "day: day days tag tage tagen día días jour jours, week: week weeks woche wochen semana semanas"),
    **_words("U", "week: semaine semaines, month: month months monat monate monaten monats mes meses mois"),
    **_words("U", "year: year years jahr jahre jahren jahres año años an ans année, weekend: weekend wochenende"),
    **_words("U", "quarter: quarter quartal"),
    **{name: ("W", number) for number, name in enumerate(WEEKDAYS)},
    **{name: ("M", number) for number, name in enumerate(MONTHS, 1) if name not in AMBIGUOUS_MONTHS},
    **_words("W", "0: montag lunes lundi, 1: dienstag martes mardi, 2: mittwoch miércoles"),
    **_words("W", "2: mercredi, 3: donnerstag jueves jeudi, 4: freitag viernes vendredi"),
    **_words("W", "5: samstag sábado samedi, 6: sonntag domingo dimanche"),
    **_words("w", "0: mon, 1: tue tues, 2: wed, 3: thu thur thurs, 4: fri, 5: sat, 6: sun"),
    **_words("M", "1: jan januar enero janvier, 2: feb februar febrero février, 3: märz marzo"),
    **_words("M", "4: abril avril, 6: juni junio juin, 7: juli julio juillet, 8: agosto août"),
    **_words("M", "9: sept septiembre septembre, 10: oct oktober octubre octobre"),
    **_words("M", "11: nov noviembre novembre, 12: dezember diciembre décembre"),
    **_words("c", "3: mar, 4: apr, 6: jun, 7: jul, 8: aug, 12: dec"),
    **_words("S", "spring: spring frühling primavera printemps, summer: summer sommer verano été"),
    **_words("S", "autumn: autumn fall herbst otoño automne, winter: winter invierno hiver"),
    **_words("S", "christmas: christmas weihnachten, halloween: halloween"),
    **_words("K", "1: q1, 2: q2, 3: q3, 4: q4"),
    **{word: ("N", value) for word, value in CARDINALS.items() if value},
    # not the French "sept", which is September in more languages
    **{word: ("N", value) for some in (GERMAN, SPANISH, FRENCH) for word, value in some.items() if word != "sept"},
    **_words("N", "2: couple, 3: few"),
    **_words("a", "1: a an ein eine einem einer un una une"),
}

TELLING = (
    frozenset(word for word, (letter, _) in WORDS.items() if letter in "dPUWwMcSK")
    | AMBIGUOUS_MONTHS.keys()
    | {"aujourd"}
)
"""Every time is named with one of these words, or a digit, or in Chinese."""

PHRASES: dict[str, tuple[tuple[tuple[str, ...], Entry], ...]] = {
    "day": ((("day", "before", "yesterday"), ("d", -2)), (("day", "after", "tomorrow"), ("d", 2))),
    "avant": ((("avant", "-", "hier"), ("d", -2)),),
    "après": ((("après", "-", "demain"), ("d", 2)),),
    "pasado": ((("pasado", "mañana"), ("d", 2)),),
    "il": ((("il", "y", "a"), ("H", "il y a")),),
    "from": ((("from", "now"), ("R", "from now")),),
    "que": ((("que", "viene"), ("x", "que viene")),),
}
"""Several words that are one."""

MORNING_WORDS = frozenset({"morgen", "mañana"})
NOT_TOMORROW_AFTER = frozenset("heute gestern am guten jeden good la esta por de cada buena früher vom bis zum".split())
"""After these words, "morgen" and "mañana" are the morning."""

MAY_FOLLOW_A_MONTH = frozenset(
    "i we my our with about and when of de del du at in to on for from last this did was were do if because but".split()
)
"""A word in small letters that is a month only in doubt is one before these, before a number, or at the end."""

NOT_PLURAL = frozenset("is was as us has this his its does yes vs always".split())
