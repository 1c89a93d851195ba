"""Which notes a language model names as wrong, and which of those namings are not followed.

A pasted text may steer a model. So what has no reason, or a number that was not shown, is passed over, and so is an
answer that does away with most of what a conversation told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from semmem.extraction.model_items import WRONG, Item
from semmem.text.words import words

NO_REASON, UNKNOWN_NUMBER, TOO_MANY = "no_reason", "unknown_number", "too_many"
FEW = 3
"""Of more notes than these at most half may be named."""
WHY_CHARS_MAX = 500
"""Of a reason, as much is looked at."""


def wrong_notes(named: Sequence[Item], shown: Collection[int]) -> tuple[frozenset[int], Counter[str]]:
    """The places (from 0) of notes that go, of those that were shown, and what was ignored, by reason. ``named``: the
    items of ``read_items``, which count from 1."""
    ignored: Counter[str] = Counter()
    places: set[int] = set()
    for item in named:
        number, why = item[WRONG], item["why"]
        if number is None or number - 1 not in shown:
            ignored[UNKNOWN_NUMBER] += 1
        elif not words(why[:WHY_CHARS_MAX]):
            ignored[NO_REASON] += 1
        else:
            places.add(number - 1)
    if len(shown) > FEW and 2 * len(places) > len(shown):
        ignored[TOO_MANY] += len(places)
        places.clear()
    return frozenset(places), ignored
