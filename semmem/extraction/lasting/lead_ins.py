"""What people put before the thing itself: "Remember:", "By the way,", "Actually,".

A lead-in says nothing of the user, and with it a clause looks less like what the classifier was taught. What is to be
remembered is kept because the user says so, where it is of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from semmem.extraction.lasting.requests import READ_CHARS_MAX, order_in

OWN_WORDS_MIN = 3
"""Fewer words of one's own tell nothing: "remember my name"."""

_ASIDE = (
    r"(?:(?:please|pls|ok|okay|oh|hey|hi|hello|so|well|also|btw|by the way|fyi|just so you know|so you know"
    r"|for the record|for your information|for (?:future )?reference|to be clear|one more thing|another thing|heads up"
    r"|quick note|side note|note|reminder|update|important|übrigens|por cierto|au fait)[,:][ ])"
)
_CORRECTING = r"(?:(?:actually|sorry|wait|oops|correction|eigentlich|perdón|pardon)[,:][ ])"
_LEAD = re.compile(rf"(?P<aside>{_ASIDE}*)(?P<correcting>{_CORRECTING}?)", re.IGNORECASE)
_OWN = re.compile(
    r"(?:(?:that|dass)[ ])?(?:i|i['’](?:m|ve|ll|d)|im|my|we|we['’](?:re|ve)|our|ich|mein\w*|wir|unser\w*|yo|mi|mis|soy"
    r"|tengo|je|mon|ma|mes|nous|notre|nos)\b|j['’]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LeadIn:
    """``said``: where the thing itself begins; ``written``: from where a memory is written, since a correction is told
    by its first word. ``to_keep``: the user asks to remember it, and it is of their own. ``linked``: they ask it with
    "that", so that it is no question whatever stands at its end."""

    said: int
    written: int
    to_keep: bool
    linked: bool = False


def lead_in(text: str, start: int, end: int, *, asked: bool) -> LeadIn:
    """Of the sentence at these places; ``asked``: it ends with a question mark, as "can you remember that" may."""
    last = min(end, start + READ_CHARS_MAX)
    found = _LEAD.match(text, start, last)
    aside, behind = (start, start) if found is None else (found.end("aside"), found.end())
    order = order_in(text, dict.fromkeys((behind, start)), last)
    said = behind if order is None else order.end
    if said >= end or not text[said:end].strip(" .,:;!?…"):
        return LeadIn(start, start, to_keep=False)
    rest = text[said:end]
    own = _OWN.match(rest) is not None and len(rest.split()) >= OWN_WORDS_MIN
    if order is None and behind > aside and not own:  # "Sorry, 14 not 12." is nothing without it
        return LeadIn(aside, aside, to_keep=False)
    if order is None:
        return LeadIn(said, aside, to_keep=False)
    return LeadIn(said, said, own and (not asked or order.linked), order.linked)
