"""Facts that stand inside a question or a request: "gift ideas for my sister Emma, who is turning 30?"."""

from __future__ import annotations

from semmem.extraction.rules import lexicon
from semmem.extraction.rules.grammar import third_person
from semmem.extraction.rules.patterns import folded
from semmem.extraction.rules.sentences import CUT
from semmem.text.number_words import CARDINALS

_KIN = "|".join(sorted(lexicon.RELATIONS | lexicon.PETS, key=len, reverse=True))
_RECALL = folded(
    r"\b(?:remember|recall|remind|mention\w*|told you|tell you|I said|you know|forgot\w*|what is my|who is my)\b"
)
_WHO = folded(
    rf"\b(?:my|our) (?P<who>(?:[\w-]+ )?(?:{_KIN})\b(?: (?-i:[A-Z])[\w'-]+)?),? who (?P<does>(?:is|are|was|has|have"
    rf"|only|just"
    rf"|\w+s|cannot|do|does|used|will)\b[^,.?!]*)"
)
_PRONOUN = folded(
    rf"\b(?:my|our) (?P<who>(?:[\w-]+ )?(?:{_KIN})(?: (?-i:[A-Z])[\w-]+)?)\b[^.?!]{{0,40}}, (?:he|she|they) "
    rf"(?P<does>(?:is|are|has|have|cannot|can|does|do|will|only|just|also|always|never|loves?|likes?|hates?|lives?"
    rf"|works?|was|\w+s)\b[^.?!]*)"
)
_NAMED = folded(rf"\b(?-i:my|our) (?P<kin>(?:\w+ )?(?:{_KIN})),? (?P<name>(?-i:[A-Z])[\w-]+)\b")
_SEVERAL = "|".join(word for word, value in CARDINALS.items() if value > 1)
_LIKE_THIS = folded(
    rf"""\b(?:my|our) (?P<how>vegan|vegetarian|diabetic|pregnant|elderly|deaf|blind|autistic|coeliac|celiac|teenage
    |newborn|lactose-intolerant
    |dyslexic|(?:\d+|{_SEVERAL})[- ](?:year|month|week)[- ]old) (?P<kin>{_KIN})\b"""
)
_AS_A = folded(
    r"""(?:.*, )?as (?P<what>an? (?!result|rule|reminder|test|joke|side|bonus|consequence|start|starter|gift|thank
    |whole|kid|child|teenager
    |follow|language|model|general|backup|last|first|matter|treat|snack|present|favou?r|beginner|user|person|human
    |side|team|group
    |family|friend)[\w' -]{3,40}?)(?:,|$| (?=I\b|we\b|what\b|which\b|how\b|should\b|can\b|is\b|do\b))"""
)
_FOR_MY = folded(
    r"""(?:it|they|this|that|these) (?:is|are) for (?P<what>(?:my|our) (?!homework|essay|class\b|report|presentation
    |assignment|own\b
    |project|website|app\b|understanding|reference|exam\b|blog|job\b|cv\b|resume)\w.*)"""
)


def buried_in(clause: str) -> str | None:
    """What a question or request lets slip about the user, in the third person, or None."""
    if CUT in clause or _RECALL.search(clause):
        return None
    if match := _WHO.search(clause):
        return third_person(f"my {match['who']} {match['does'].strip()}")
    if match := _PRONOUN.search(clause):
        return third_person(f"my {match['who']} {match['does'].strip()}")
    if match := _NAMED.search(clause):
        return f"User's {match['kin'].lower()} is called {match['name']}"
    if match := _LIKE_THIS.search(clause):
        article = "an" if match["how"][0].lower() in "aeiou8" else "a"
        return f"User has {article} {match['how'].lower()} {match['kin']}"
    if match := _AS_A.match(clause):
        return f"User is {match['what']}"
    return None


def meant_for(clause: str) -> str | None:
    """What the request was for ("it is for my choir, 32 people"), in the third person, or None."""
    match = _FOR_MY.match(clause)
    return f"User asked for something for {third_person(match['what'], capital=False)}" if match else None
