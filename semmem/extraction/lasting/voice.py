"""Where in a message the user speaks in their own voice, and where somebody or something else does.

Every step reads each character a bounded number of times: lines are looked at one by one, patterns are anchored or
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

QUOTED_WORDS_MAX = 8
"""Longer passages within quotation marks are somebody's words; shorter ones may be names and titles."""
LINE_CHARS_READ = 200
"""Of a line's beginning and of its end so much is looked at to tell code and mail from prose."""

_FENCE = re.compile(r"\s*(?:```|~~~|[-=_*]{3,})")
_TAG = re.compile(r"\s*<(/?)([a-zA-Z][\w-]{1,20})>")
_MAIL = re.compile(
    r"\s*(?:(?:from|to|subject|sent|date|cc|von|an|betreff|de|para|asunto|objet)\s?: ?\S|on .{5,80} wrote:)",
    re.IGNORECASE,
)
_SALUTATION = re.compile(
    r"\s*(?:dear|hi|hello|hey|hallo|liebe[rs]?|bonjour|hola|caro|cara)\b[^.!?\n]{0,40}[,!]\s*$", re.IGNORECASE
)
_CODE = re.compile(
    r"\s*(?:[$>#|]\s|//|/\*|\w[\w.$]{1,80}\(.{0,80}\)\s*[{:;]?\s*$|[\w.]{1,40} ?= ?\S|\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|traceback|file \"|\[?(?:error|warn|info|debug)\b\]?[: ]|</?\w)",
    re.IGNORECASE,
)
_CODE_END = re.compile(r"(?:[{};]|=>)\s*$")
_CODE_INSIDE = re.compile(r"\w\(\w{0,40}[\"',)]|\w ?= ?[\"'\d\[{]|=>|==|::|&&| --\w|</?\w{1,20}>")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "‘": "’", "`": "`", "'": "'"}
_UNSPACED = "「『“"
"""Those that open a quotation behind a letter too, where a script has no spaces; others may end one there: »Emma«."""
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FIRST_PERSON = re.compile(
    r"\b(?:I|i'm|me|my|mine|we|us|our|ich|mein\w{0,2}|je|mon|ma|yo|mi|eu|meu|minha)\b|[我私僕俺]"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a text that is one line or less, ``start`` to ``end``.

    ``own``: the user speaks. ``introduced``: it stands below or behind a line that ends with a colon, and may be
    something that the user has pasted. ``listed``: it is an item of a list.
    """

    start: int
    end: int
    own: bool
    introduced: bool = False
    listed: bool = False


_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)])\s+")


def stretches(text: str) -> Iterator[Stretch]:
    """The lines of a text, empty ones left out, and whose each is."""
    fenced = mailed = introduced = False
    tag = ""
    begun = False
    for start, line in _lines(text):
        head, tail = line[:LINE_CHARS_READ], line[-LINE_CHARS_READ:]
        if not line.strip():
            continue
        if _FENCE.match(head):
            fenced = not fenced
            continue
        opening = _TAG.match(head)
        if opening:
            tag = "" if opening[1] and opening[2] == tag else tag or ("" if opening[1] else opening[2])
        mailed = mailed or (not fenced and bool(_MAIL.match(head) or (begun and _SALUTATION.match(line))))
        begun = True
        foreign = fenced or mailed or bool(tag) or bool(opening) or _is_code(head, tail)
        item = _ITEM.match(head)
        begin = start + (item.end() if item else 0)
        yield Stretch(begin, start + len(line), not foreign, introduced, item is not None)
        introduced = introduced or tail.rstrip().endswith((":", "："))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    lines = text.split("\n")
    yield from zip(accumulate((len(line) + 1 for line in lines[:-1]), initial=0), lines, strict=True)


def _is_code(head: str, tail: str) -> bool:
    return bool(_CODE.match(head) or _CODE_END.search(tail) or _CODE_INSIDE.search(head))


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
            if _words(inside) > QUOTED_WORDS_MAX or _FIRST_PERSON.search(inside):
                found.append((start, index + 1))
            closing = ""
        elif char == "\n" and closing in "'’":
            closing = ""
    return found


def _words(passage: str) -> int:
    """How many; where a script has no spaces two characters count as one."""
    return len(passage.split()) + len(_WIDE.findall(passage)) // 2
