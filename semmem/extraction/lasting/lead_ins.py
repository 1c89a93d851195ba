"""What people put before the thing itself: "Remember:", "By the way,", "Actually,".

A lead-in says nothing of the user, and with it a clause looks less like what the classifier was taught. What is to be
remembered is kept because the user says so, where it is of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

READ_CHARS_MAX = 80
"""No lead-in is longer."""
OWN_WORDS_MIN = 3
"""Fewer words of one's own tell nothing: "remember my name"."""

_ASIDE = (
    r"(?:(?:please|pls|ok|okay|oh|hey|hi|hello|so|well|also|btw|by the way|fyi|just so you know|so you know"
    r"|for the record|for your information|for (?:future )?reference|to be clear|one more thing|another thing|heads up"
    r"|quick note|side note|note|reminder|update|important|übrigens|por cierto|au fait)[,:][ ])"
)
_CORRECTING = r"(?:(?:actually|sorry|wait|oops|correction|eigentlich|perdón|pardon)[,:][ ])"
_REMEMBER = (
    r"(?:(?:(?:please|pls|and|also|hey|ok|okay|can you|could you|will you|i want you to|i'd like you to|i need you to)"
    r",?[ ]){0,3}(?:always[ ])?(?:remember|keep in mind|bear in mind|don['’]?t forget|do not forget|make a note"
    r"|note down|memori[sz]e|take note)"
    r"(?:[ ](?:this|the following|this fact|this about me|for (?:later|next time|the future)))?"
    r"(?:[,:][ ](?:that[ ])?|[ ]that[ ]|[ ](?=(?:i|i['’]m|i['’]ve|my|we|we['’]re|our)[ ]))"
    r"|(?:bitte[ ])?(?:merke?[ ]dir|denke?[ ]daran|vergiss[ ](?:bitte[ ])?nicht)[,:]?[ ](?:bitte[,:][ ])?"
    r"|(?:por favor,?[ ])?(?:recuerda|ten en cuenta|no olvides|acuérdate de)(?:[ ]que[ ]|[:,][ ])"
    r"|(?:souviens-toi|rappelle-toi|n['’]oublie pas|retiens|note bien)(?:[ ]que[ ]|[ ]qu['’]|[ ]?[:,][ ]))"
)
_LEAD = re.compile(rf"(?P<aside>{_ASIDE}*)(?P<correcting>{_CORRECTING}?)(?P<remember>{_REMEMBER}?)", re.IGNORECASE)
_OWN = re.compile(
    r"(?:(?:that|dass)[ ])?(?:i|i['’](?:m|ve|ll|d)|im|my|we|we['’](?:re|ve)|our|ich|mein\w*|wir|unser\w*|yo|mi|mis|soy"
    r"|tengo|je|mon|ma|mes|nous|notre|nos)\b|j['’]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LeadIn:
    """``said``: where the thing itself begins; ``written``: from where a memory is written, since a correction is told
    by its first word. ``to_keep``: the user asks to remember it, and it is of their own."""

    said: int
    written: int
    to_keep: bool


def lead_in(text: str, start: int, end: int, *, asked: bool) -> LeadIn:
    """Of the sentence at these places; ``asked``: it ends with a question mark, as "can you remember that" may."""
    found = _LEAD.match(text[start : min(end, start + READ_CHARS_MAX)])
    if found is None or start + found.end() >= end:
        return LeadIn(start, start, to_keep=False)
    said = start + found.end()
    written = said if found["remember"] else start + found.end("aside")
    rest, told = text[said:end], found["remember"].lower()
    own = _OWN.match(rest) is not None and len(rest.split()) >= OWN_WORDS_MIN
    if found["correcting"] and not told and not own:  # "Sorry, 14 not 12." is nothing without it
        return LeadIn(written, written, to_keep=False)
    return LeadIn(said, written, to_keep=bool(told) and own and (not asked or "that " in told))
