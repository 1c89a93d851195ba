"""Cuts a message into units: a sentence, or the part of one before and behind a colon, a dash or a quotation.

A unit is what one voice speaks. Linear in the text's length: every pattern is anchored or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from semmem.text.words import ABBREVIATION, counted

UNITS_MAX = 200
"""Of one message so many units are read: those of its beginning and of its end, half and half."""
UNIT_CHARS_MAX = 400
"""A sentence that is longer is cut."""
QUOTED_WORDS_MAX = 8
"""Longer passages within quotation marks are somebody's words; shorter ones may be names and titles."""

_END = re.compile(
    r"""(?<=[.!?…])["'”’)\]]{0,3}[ ](?=\S) | (?<=[。！？])["”’」』）)]{0,3}
      | (?<=[?!])(?=[\u3040-\u30ff\u3400-\u9fff]) | [:：](?:[ ]|(?=["“„«「『])) | ：
      | (?<=\S)[ ](?:[-–—]{1,3}|<-{1,2}|-{1,2}>|[→←])[ ](?=\S)""",
    re.VERBOSE,
)
_LINE_END = re.compile("\n")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "‘": "’", "`": "`", "'": "'"}
_FENCE = re.compile(r"\s*(?:```|~~~)")
_TAG = re.compile(r"\s*<(/?)([a-zA-Z][\w-]{1,20})>")
_MAILED = re.compile(r"\s*>")
_UNSPACED = "「『“"
"""Those that open a quotation behind a letter too, where a script has no spaces; others may end one there: »Emma«."""
_FIRST_PERSON = re.compile(
    r"\b(?:I|i'm|me|my|mine|we|us|our|ich|mein\w{0,2}|je|mon|ma|yo|mi|eu|meu|minha)\b|[我私僕俺]"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """``start`` and ``end``: its place in the text. ``line``: the number of its line, blank ones counted; ``opens``: it
    is the first of its line. ``quoted``: it stands within quotation marks that hold somebody's words, or is marked as a
    text of its own: code, a tag and what stands in it, a quoted line of a mail."""

    start: int
    end: int
    line: int
    opens: bool
    quoted: bool


def units(text: str) -> list[Unit]:
    """In the order of the text. What is left out of a text with more than UNITS_MAX of them is nobody's voice."""
    found = list(_units(text))
    half = UNITS_MAX // 2
    return found if len(found) <= UNITS_MAX else found[:half] + found[-half:]


def _units(text: str) -> Iterator[Unit]:
    quotes = _merged([*quotations(text), *marked(text)])
    quote = line = 0
    opens = True
    for start, end in pairwise(_cuts(text, quotes)):
        while quote < len(quotes) and quotes[quote][1] <= start:
            quote += 1
        piece = text[start:end]
        if piece.strip():
            quoted = quote < len(quotes) and quotes[quote][0] <= start
            yield Unit(start, start + len(piece.rstrip()), line, opens, quoted)
            opens = False
        if piece.endswith("\n"):
            line, opens = line + 1, True


def _cuts(text: str, quotes: list[tuple[int, int]]) -> list[int]:
    """Where units begin and end, in order."""
    cuts = {0, len(text), *(place for quote in quotes for place in quote)}
    cuts.update(match.end() for match in _LINE_END.finditer(text))
    cuts.update(match.end() for match in _END.finditer(text) if not _is_abbreviated(text, match.start()))
    ends = sorted(cuts)
    return [place for start, end in pairwise(ends) for place in range(start, end, UNIT_CHARS_MAX)] + ends[-1:]


def _is_abbreviated(text: str, end: int) -> bool:
    return ABBREVIATION.search(text[max(0, end - 8) : end]) is not None


def quotations(text: str) -> list[tuple[int, int]]:
    """Where somebody's words stand within quotation marks: long passages, and those in the first person.

    Not nested. An apostrophe inside or behind a word opens nothing, and a single quote does not go over a line's end.
    """
    found = []
    start, closing = -1, ""
    for index, char in enumerate(text):
        if not closing:
            if char in _QUOTES and (char in _UNSPACED or not (index and text[index - 1].isalnum())):
                start, closing = index, _QUOTES[char]
        elif char == closing and not (char in "'’" and text[index + 1 : index + 2].isalnum()):
            inside = text[start + 1 : index]
            if counted(inside) > QUOTED_WORDS_MAX or _FIRST_PERSON.search(inside):
                found.append((start, index + 1))
            closing = ""
        elif char == "\n" and closing in "'’":
            closing = ""
    return found


def marked(text: str) -> list[tuple[int, int]]:
    """Where lines stand in a fence or a tag, or begin as a mail quotes another one. A fence or tag that nothing ends
    goes on to the end of the text."""
    found = []
    fenced, tag, start = False, "", 0
    for line in text.split("\n"):
        end = start + len(line)
        opening, fence = _TAG.match(line), _FENCE.match(line) is not None
        if fenced or tag or opening or fence or _MAILED.match(line):
            found.append((start, end))
        if fence:
            fenced = not fenced
        elif opening and not fenced:
            tag = "" if opening[1] and opening[2] == tag else tag or ("" if opening[1] else opening[2])
        start = end + 1
    return found


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, none of which overlaps the next."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
