"""Puts back the subject that a clause left out: "moved to Porto in May" -> "I moved to Porto in May"."""

from __future__ import annotations

from semmem.extraction.rules import lexicon
from semmem.extraction.rules.patterns import folded
from semmem.text.times.names import MONTHS, WEEKDAYS

_EXPERT_SAYS_SO = folded(
    r"(?:the )?(?:doctor|doc|dentist|therapist|gp|optician|cardiologist|dermatologist|physio|specialist) (?:says?"
    r"|said|thinks|told me)"
    r"(?: that)? (?:it is|I am|I have|my|this is|I need|I should not|I cannot)\b"
)
_LEFT_OUT_AM = folded(
    r"""(?:currently |still |now |both )?(?:stuck in an?|based (?:in|at|near|out of)|(?:living|staying) (?:in|with|on
    |near|at)|located in|working (?:as|at|for)
    |studying|allergic to|vegetarian|vegan|pescatarian|lactose|diabetic|born|married|divorced|retired|engaged|pregnant
    |originally from|raised in|afraid of|scared of|terrified of|off to|fluent in|training for|expecting|learning
    |recovering from)\b"""
)
_LEFT_OUT_I = folded(
    r"""(?:just |recently |finally |already |also |then |really |absolutely |never |always |usually |honestly ){0,3}
    (?:moved|relocated|switched|migrated|bought|adopted|quit (?:my|smoking|drinking|sugar|caffeine|coffee|school|law
    |vaping)|started|stopped|joined|married|graduated|retired|sold|broke|sprained
    |finished|signed up|turned \d|got (?:married|engaged|divorced|promoted|fired|hired|laid off|a (?:new )?(?:job|dog
    |cat|puppy
    |kitten|car|bike))|gave up|took up|ended up|went vegan|grew up|passed|decided|chose|booked|enrolled|used to
    |learned|learnt
    |been (?:living|working|a|an)|prefer|(?:love|hate)(?! (?:is|yourself|island|actually|story|songs?|me|you)\b)
    |dislike|adore|detest|loathe|cannot (?:stand|bear|eat|swim|stomach)
    |do not (?:eat|drink|like|drive|own|smoke)|never (?:eat|drink|smoke|had|learn\w+|smoked?)|(?:have|got) (?:two
    |three|four|five|a (?:dog
    |cat|son|daughter|kid|sister|brother)|\d+ (?:kids|children|cats|dogs))|live (?:in|at|on|near|with)|work (?:as|at
    |for)
    |drive an?|own an?)\b"""
)
_OVER = folded(
    r"(?:give me )?([^,]{2,60}?) (?:over|beats|instead of|before) ([^,]{2,60}?),? (?:always|any ?day|every ?time"
    r"|any ?time|for me|hands down)\b.*$"
)
_NO_FOR_ME = folded(r"(?:no|nothing (?:with|containing)) (?P<what>[\w' -]{2,40}?) for me\b.*$")
_DATED = folded(
    r"""(?:(?:the|an?|next|upcoming) )?(?P<what>(?:(?:doctor|dentist|vet|job|thesis|driving|eye|final|law
    |maths?)(?:'s)? )?
    (?:appointment|check-?up|interview|surgery|operation|exam|flight|wedding|due date|viewing|scan|move-in date
    |defen[cs]e
    |graduation|move|anniversary|birthday)\b.{0,60}?
    (?: (?:is|are|was moved to|moved to|got moved to|got pushed to|falls|takes place|leaves|departs)\b|:).*)$"""
)
_FAMILIAR = "|".join(sorted(lexicon.PETS | {"wife", "husband", "boss", "baby", "missus", "landlord"}))
_NAMED_ONE = folded(rf"(the )(?:{_FAMILIAR}),? (?-i:[A-Z])[a-z]+,? \w")
_BARE_KIN = folded(
    r"(?:dad|mum|mom|mama|papa|grandma|grandpa|granny|nana|hubby|wifey|auntie) "
    r"(?:is|was|has|had|lives|works|loves|likes|hates|turns|turned|died|passed|used|never|always|only|just|cannot"
    r"|does)\b"
)
_AT_MOST = folded(
    r"(the )[\w -]{2,40} (?:can|may|should|must)(?: not)? (?:cost|be) .*\d.*\b(?:at most|max\w*|tops"
    r"|or less|no more)\b"
)
_BUDGET = folded(
    r"(?:the |total |max |maximum )?budget"
    r"(?P<what> for (?:the|an?|this|my|our) [\w' -]{2,40}?(?= is\b|:))?(?: is|:| of|,)? "
    r"(?P<amount>(?:(?:is|a|of|around|about|up|to|at|most|roughly|approximately|exactly|under|below|over|max|maximum|total"
    r"|only|just|now|not|no|less|more|than|between|somewhere) ){0,5}[^a-z ]?\d.*)$"
)
_APPOINTMENT = folded(
    r"""(?:the|an?) (?P<what>(?:[\w'-]+ ){0,2}?
    (?:meeting|call|appointment|interview|deadline|exam|flight|party|dinner|lunch|delivery|presentation|demo|review
    |visit|concert|match|class|lesson|lecture|trip|conference|workshop|launch|release|train|show|game|session)\b
    (?: [\w'&.-]+){0,6}? (?:is|are|will be|starts?|begins?|takes place|ends?|leaves?|arrives?|departs?|was moved to
    |got moved to|got pushed to|has been moved to)\b.*)$"""
)
_CLOCK = folded(r"\b(?:\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\b)|\d{1,2}:\d\d|noon|midnight|(?:end|start|beginning) of)")
WHEN = folded(
    rf"""\b(?:{"|".join(month for month in MONTHS if month != "may")}|jan|feb|apr|aug|sept?|oct|nov|dec
    |may \d|\w+ of may|in may|last may|next may|{"|".join(WEEKDAYS)}|tomorrow|tonight|yesterday|today
    |(?:next|last|this|coming) (?:week|weekend|month|year|night|spring|summer|fall|autumn|winter|morning|afternoon
    |evening|\w+day)
    |(?:\w+ )?(?:days?|weeks?|months?|years?) ago|in (?:19|20)\d\d|\d{{1,2}}(?:st|nd|rd|th)|\d{{1,2}}[./]\d{{1,2}}
    |the weekend)\b"""
)


def completed(clause: str) -> str:
    """The clause with its subject put back."""
    if match := _OVER.match(clause):
        return f"I prefer {_lowered(match[1])} over {match[2]}"
    if match := _NO_FOR_ME.match(clause):
        return f"I avoid {match['what']}"
    if _BARE_KIN.match(clause):
        return f"my {clause[0].lower()}{clause[1:]}"
    if (match := _NAMED_ONE.match(clause)) or (match := _AT_MOST.match(clause)):
        return f"my {clause[match.end(1) :].strip()}"
    if (match := _DATED.match(clause)) and WHEN.search(clause):
        return f"my {_lowered(match['what'])}"
    if match := _BUDGET.match(clause):
        return f"my budget{match['what'] or ''} is {match['amount'].removeprefix('is ').lstrip(': ')}"
    if _EXPERT_SAYS_SO.match(clause):
        return f"my {_lowered(clause)}"
    if _LEFT_OUT_AM.match(clause):
        return f"I am {_lowered(clause)}"
    if _LEFT_OUT_I.match(clause):
        return f"I {'have ' if clause.lower().startswith('been') else ''}{_lowered(clause)}"
    return clause


def appointed(clause: str) -> str | None:
    """ "the meeting with Acme is on Thursday", which the user asked to remember, as the user's own, or None."""
    match = _APPOINTMENT.match(clause)
    if match is None or not (WHEN.search(clause) or _CLOCK.search(clause)):
        return None
    return f"my {match['what']}"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


_CORRECTED = folded(
    r"(?:the|our) (?P<what>[\w' -]{2,40}?) (?P<value>(?:is|are|costs?|ends?|starts?"
    r"|takes?)\b[^,]{0,40}\d[^,]{0,20}), "
    r"(?:I said|I told you|I wrote|and not|not|instead of)\b"
)


def corrected(sentence: str) -> str | None:
    """ "the fund is at 6500, I said 5000 earlier" as a statement, or None."""
    match = _CORRECTED.match(sentence)
    return f"my {match['what']} {match['value']}" if match else None
