"""What a clause opens or ends with and means nothing ("by the way"), or asks to be remembered ("remember that")."""

from __future__ import annotations

from typing import NamedTuple

from semmem.extraction.rules.patterns import folded

_FILLER = folded(
    r"""(?:(?:oh|hey|hi|hello|hiya|ah|um|well|so|ok|okay|btw|by the way|fyi|also|and|but|then|actually|basically
    |honestly|tbh|sorry
    |yes|yeah|yep|right|look|listen|anyway|plus|thanks|thank you|great|cool|just so you know|for (?:the record
    |context|reference
    |your information)|fun fact|random fact|quick (?:note|update)|in case it matters|as you (?:may )?know|(?:as
    |like) I said
    |to be (?:honest|clear|fair)|update|correction|edit|context|background|note to self|also for you
    |(?:it )?turns out(?: that)?
    |the thing is(?: that)?|fwiw|because|since(?= (?:I|we|my) )|cause|cuz|coz|although|though|not sure if it matters
    |no worries
    |I (?:think|guess|suppose|mean|believe|must say|must admit|have to (?:say|admit))(?: that)?(?= (?:I|my|we|our)\b)
    |no problem|one more thing|another thing|on another note|speaking of which|unfortunately|luckily|fortunately
    |sadly|hm+|ha(?:ha)*
    |lol|wow|no(?=,)|nope|guess what|(?:good|bad|big) news|personally|as for me|scratch that|ignore (?:the
    |my) old (?:\w+ )?\w+)
    \b[ ,:!.…-]+){1,5}"""
)
_REMEMBER = folded(
    r"""(?:please |pls |also |and |can you |could you |kindly ){0,3}(?:remember|note|keep in mind|bear in mind
    |do not forget
    |make a note|take note|I want you to (?:know|remember)|you should know|for (?:the )?future reference)
    (?: the fact)?(?: that|:|,)?
    \s(?=(?:(?:all|both|most|some|one|none|each|every|half) (?:of )?(?:my|our)|I|my|we|our|the|there)\b)"""
)
_REMEMBER_ALONE = folded(
    r"(?:please |pls ){0,2}(?:remember|note|keep in mind|bear in mind|do not forget)(?: this| that)?"
)
_CLOSING = folded(
    r"""[ ,]+(?:lol|haha+|btw|tbh|rn|though|fyi|xd|<3|you know|I guess|so far so good|if that matters|by the way
    |just so you know
    |thanks|thank you|please|believe it or not|(?:nice|pleased|good|great|happy) to (?:meet you|be here))\W{0,5}$"""
)


class Opening(NamedTuple):
    """A clause without its filler. ``remember``: the user asked to remember it."""

    text: str
    remember: bool


def opened(clause: str) -> Opening:
    """The clause without filler at its start and end."""
    start = _FILLER.match(clause)
    text = clause[start.end() :] if start else clause
    if _REMEMBER_ALONE.fullmatch(text):
        return Opening("", True)
    asked = _REMEMBER.match(text)
    text = text[asked.end() :] if asked else text
    tail = text[-60:]
    return Opening(text[: len(text) - len(tail)] + _CLOSING.sub("", tail), asked is not None)
