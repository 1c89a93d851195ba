"""What is seen of a unit without understanding it: the words it is made of, its signs, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

from semmem.extraction.lasting.features import formal
from semmem.extraction.voice.units import Unit
from semmem.text.orders import STEM_CHARS, tokens
from semmem.text.words import is_unspaced

BUCKETS = 1 << 13
"""Places for the words' vectors. A word's place is the CRC-32 of its spelling: the same everywhere, and fast."""
WORDS_READ = 60
"""Of a unit; no sentence has more."""

_SHAPES = tuple(
    re.compile(source, re.IGNORECASE)
    for source in (
        r"\s*(?:[-*•·–]|\d{1,3}[.)])\s",  # an item of a list
        r"\s*>",  # quoted in a mail
        r"\s*(?:```|~~~|[-=_*#+]{3,}|\[/?\w+\]|</?\w)",  # a fence, a rule, a tag
        r"\s*#{1,6}\s",  # a heading
        r"\s*[\[(]?\d{1,4}[:./-]\d{1,2}(?:[:./-]\d{1,4})?",  # a date or a time
        r".*\b\d{1,2}:\d\d",
        r".*https?://|.*\bwww\.|.*\w@\w",
        r"\s*[^\W\d]{1,20}(?: [^\W\d]{1,20}){0,2}\s*[:：]",  # a name or a word with a colon
        r"\s*(?:from|to|subject|sent|date|cc|von|an|betreff|de|para|à|asunto|objet)\s?:",
        r"\s*(?:dear|hi|hello|hey|hallo|liebe[rs]?|bonjour|hola|caro|cara)\b.{0,40}[,!]\s*$",
        r".*[{}<>=|\\]",
        r".*[\"“”„«»「」『』]",
        r".*[:：]\s*$",
        r".*[?？]\W*$",
        r".*[.!。！…]\W*$",
        r".*[,，、;]\s*$",
        r"\W*[a-zà-ÿа-я]",  # begins with a small letter
        r".*[★☆⭐]|.*\b\d/(?:5|10)\b",
    )
)
_CAPITALS = re.compile(r"[A-ZÀ-Þ]{4,}")


def words_of(text: str) -> list[int]:
    """The places of the words, pairs of neighbours and openings of a unit."""
    found = tokens(text)[:WORDS_READ]
    stems = [token if is_unspaced(token) else token.casefold()[:STEM_CHARS] for token in found]
    spelt = {*stems, *map(" ".join, pairwise(stems)), *(f"^{' '.join(stems[:count])}" for count in (1, 2, 3))}
    return sorted({crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS for feature in spelt})


def shapes(text: str, found: Sequence[Unit]) -> list[list[float]]:
    """One row a unit, each value in [0, 1]."""
    lines = len({unit.line for unit in found})
    return [
        [
            *formal(text[unit.start : unit.end]),
            *(float(shape.match(text[unit.start : unit.end]) is not None) for shape in _SHAPES),
            float(_CAPITALS.search(text[unit.start : unit.end]) is not None),
            float(unit.opens),
            float(unit.quoted),
            float(index > 0 and unit.line - found[index - 1].line == 1),
            float(index > 0 and unit.line - found[index - 1].line > 1),
            float(index == 0),
            float(index == len(found) - 1),
            min(1.0, index / 10),
            min(1.0, len(found) / 10),
            min(1.0, lines / 10),
            min(1.0, (unit.end - unit.start) / 200),
        ]
        for index, unit in enumerate(found)
    ]
