"""How a passage becomes the content of a memory: a plain English statement in the third person, all else as written."""

from __future__ import annotations

import re

from semmem.extraction.rules.grammar import expand, third_person
from semmem.text.quoting import quoted

WORDS_MAX = 14
_PLAIN = re.compile(r"(?:I|my) [\w'’ %$€£.+/-]+[.!]?", re.IGNORECASE)
_ENGLISH = re.compile(r"\b(?:am|is|are|was|were|have|has|had|do|not|an?|the|to|of|for|with|my|and|from|by|at|on)\b")
_OTHERS = re.compile(r"\b(?:you|your|he|she|it|they|this|that|these|those|here|there|we|our|us)\b", re.IGNORECASE)


def phrased(passage: str) -> str:
    """ "I'm allergic to nuts." as "User is allergic to nuts"; whatever is less plain in quotation marks."""
    statement = expand(passage)
    if not _PLAIN.fullmatch(statement) or len(statement.split()) > WORDS_MAX:
        return quoted(passage)
    if _OTHERS.search(statement) or not _ENGLISH.search(statement):
        return quoted(passage)
    return third_person(statement)
