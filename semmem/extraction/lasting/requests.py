"""Where a message asks to remember something, in twelve languages: before it, behind it, or in a sentence of its own.

The forms are data (remember_requests.json). They say only that something is to be remembered: what it is stands
beside them, and is kept where it is not plainly nothing (``raised``). Questions for what is remembered ("do you
remember that ...?") and steps of a task ("remember to save") are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from semmem.text.courtesies import behind_courtesies

BEFORE_MAX, BEHIND_MAX = 4, 1
"""A clause with an order and no more words before and behind it says nothing else."""
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
READ_CHARS_MAX = 80
"""No order is longer."""


@dataclass(frozen=True, slots=True)
class Order:
    """``start`` and ``end``: places in the text, with the words that belong to it. ``linked``: it ends with "that";
    ``plain``: with that or a colon."""

    start: int
    end: int
    linked: bool
    plain: bool


def raised(probability: float, *, plainly: bool) -> float:
    """Of being lasting, for what the user asks to remember: the square root, so that 0.15 does for 0.38; where an
    order stands before it and ends with a colon or "that", the fourth root, so that 0.03 does."""
    return float(probability ** (1 / (4 if plainly else 2)))


def order_in(text: str, starts: Iterable[int], end: int) -> Order | None:
    """The first order that begins, behind words of courtesy, at one of these places of a sentence that ends at ``end``.
    Linear in the sentence's length."""
    for start in starts:
        said = text[start : min(end, start + READ_CHARS_MAX)]
        for opener in behind_courtesies(said):
            found = _order().match(said, opener)
            if found is not None:
                linked = found["link"] is not None
                return Order(start, start + found.end(), linked, linked or found[0].rstrip().endswith((":", "：")))
    return None


def is_only(order: Order, text: str, start: int, end: int) -> bool:
    """Whether these places hold the order and hardly anything else."""
    if order.start >= end or order.end <= start:
        return False
    before, behind = text[start : max(start, order.start)], text[min(end, order.end) : end]
    return _words(before) <= BEFORE_MAX and _words(behind) <= BEHIND_MAX


def _words(text: str) -> int:
    return len(re.findall(r"\w+", text)) + len(_WIDE.findall(text)) // 2


@cache
def _order() -> re.Pattern[str]:
    forms = json.loads(Path(__file__).with_name("remember_requests.json").read_text("utf-8"))
    fillers = rf"(?:[\s,]+(?:{forms['fillers']})(?=[\s,.:;!?…—–-]|$))*"
    step = r"(?!\s+(?:to|when|how|if|whether|what|where|who|why|(?:this|that|the) (?:rule|instruction|command))\b)"
    # a script without spaces has no end of a word to look for
    apart = r"(?=[\s,.:;!?…—–-]|$|[\u3040-\u30ff\u3400-\u9fff：。，、！])"
    links = rf"(?:\s*[:：,，;—–-]+\s*|\s+)?(?P<link>(?:{forms['links']})(?:\s+|(?<=['’])))?"
    return re.compile(rf"(?:{'|'.join(forms['orders'])}){apart}{step}{fillers}{links}", re.IGNORECASE)
