"""A judge for tests whose embedder knows no meanings: the closed forms, and that people have one home, one employer,
one of each that is "theirs", and nothing that they sold."""

from __future__ import annotations

import re

from semmem.extraction.contradiction.verdict import Verdict, closed

_ONE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"user (?:lives in|moved to|has moved to|now lives in) (.+)", r"user works (?:at|for) (.+)",
                    r"(?:the )?user's (?:favourite|favorite) \w+ is (.+)")
)  # fmt: skip
_OWNS, _SOLD = (
    re.compile(r"user owns (?:a|this) (\w+)$", re.IGNORECASE),
    re.compile(r"user sold the (\w+)", re.IGNORECASE),
)


def judge(old: str, new: str, cosine: float) -> Verdict:
    found = closed(old, new, cosine)
    if found is not None:
        return found
    one = any((a := each.fullmatch(old)) and (b := each.fullmatch(new)) and a[1] != b[1] for each in _ONE)
    owned, sold = _OWNS.match(old), _SOLD.match(new)
    gone = bool(owned and sold and owned[1] == sold[1])
    return Verdict.CONTRADICTION if one or gone else Verdict.DIFFERENT
