"""Says a first-person statement about the user in the third person, with its type and how much it matters."""

from __future__ import annotations

from typing import NamedTuple

from semmem.extraction.rules.completion import WHEN
from semmem.extraction.rules.grammar import third_person
from semmem.extraction.rules.patterns import folded
from semmem.memory import MemoryType


class Described(NamedTuple):
    """One fact found by rule: third person, no full stop at the end. ``importance`` is in [0, 1]."""

    type: MemoryType
    content: str
    importance: float = 0.5


VITAL_IMPORTANCE = 0.8

_EVENT = folded(
    r"""\b(?:decided|chose|picked|opted|booked|cancell?ed|broke|fractured|sprained|tore|won|ran|completed|passed
    |failed|got (?:married
    |engaged|promoted|fired|hired|laid off)|off to|flying|travell?ing|going|visiting|attending|appointment|check-?up
    |interview
    |surgery|exam|flight|wedding|signed|will (?:be|fly|visit|travel|move)|visited|went|flew|finished|started|bought
    |sold|adopted
    |gave birth|had|joined|leaving|plan(?:ning)? to|getting married|run the|moving|start)\b"""
)
_DECISION = folded(
    r"\b(?:decided|opted (?:for|to)|settled on|made up (?:my|our) minds?|going with|have chosen|chose)\b"
)
_VITAL = folded(
    r"""\b(?:allerg|intoleran|diabet|asthma|epilep|coeliac|celiac|medication|insulin|name is|called|pregnan
    |heart condition
    |anaphyla|wheelchair|blind|deaf)"""
)
_CALL_ME = folded(r"(?:[\w]+ ){0,3}?calls? me (?P<name>[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?).*")
_GO_BY = folded(r"I (?:just )?(?:go|like to be called|prefer to be called)(?: by)? (?P<name>(?-i:[A-Z])[\w'-]+)\b.*")
_AM_NAMED = folded(r"I am (?P<name>(?-i:[A-Z])[a-zà-ÿ'-]+),? (?:nice|pleased|good|great|happy) to (?:meet|be)\b.*")


def described(statement: str, kind: MemoryType | None = None) -> Described:
    """The statement as a fact; ``kind`` where it is known already."""
    return Described(
        kind or _type_of(statement),
        third_person(_renamed(statement)),
        VITAL_IMPORTANCE if _VITAL.search(statement) else Described._field_defaults["importance"],
    )


def _type_of(statement: str) -> MemoryType:
    if _DECISION.search(statement) or (_EVENT.search(statement) and WHEN.search(statement)):
        return MemoryType.EPISODIC
    return MemoryType.SEMANTIC


def _renamed(statement: str) -> str:
    if match := _CALL_ME.fullmatch(statement) or _GO_BY.fullmatch(statement):
        return f"I want to be called {match['name']}"
    if match := _AM_NAMED.fullmatch(statement):
        return f"My name is {match['name']}"
    return statement
