"""Finds, in one clause of the user's own voice, a statement that says something lasting about them.

Works on expanded clauses ("I am", "do not"). The subject is I or we; or somebody or something of the user's; or the
user is touched otherwise ("olives are not my thing"); or the subject is left out ("moved to Porto") and is put back.
"""

from __future__ import annotations

from semmem.extraction.rules import guards, lexicon
from semmem.extraction.rules.completion import appointed, completed
from semmem.extraction.rules.grammar import is_past
from semmem.extraction.rules.patterns import folded
from semmem.extraction.rules.predicates import tells, without_adverbs
from semmem.extraction.rules.sentences import CUT
from semmem.text.times.names import WEEKDAYS

CLAUSE_CHARS = range(5, 400)
FRONTED_WORDS_MAX = 12

_OWN = folded(r"\b(?:I|my|me|mine|we|our|(?-i:us))\b")


def recognise(clause: str, *, explicit: bool = False) -> str | None:
    """The clause as a full first-person statement if it says something lasting, else None.

    ``explicit``: the user asked to remember it, so the choice of words no longer matters.
    """
    if CUT in clause or " " not in clause or len(clause) not in CLAUSE_CHARS:
        return None
    statement = completed(clause)
    if guards.is_question(statement) or guards.is_hypothetical(statement) or guards.is_request(statement):
        return None
    if explicit and (_OWN.search(statement) or (appointment := appointed(statement))):
        return statement if _OWN.search(statement) else appointment
    if guards.is_passing(statement) or _OPEN_END.search(statement):
        return None
    return statement if _is_about_subject(statement) or _touches_user(statement) else None


_OPEN_END = folded(
    r"\byou(?:rs?|rself)?\b|\b(?:those|these|this|that|it is|on for a while|(?:live|work|stay|go|been) there"
    r"|here)[.!]?$|^(?:I|we)(?: \w+){1,4} there[.!]?$"
)


# --- I ..., my ... ---------------------------------------------------------------------------------------------------

_MY = folded(r"(?:(?:both|all|one|some|most|none|half|neither) (?:of )?)?(?:my|our)\b")
_SAYS = folded(
    r"""\b(?:says?|said|thinks?|thought|told|tells|asked|asks|claims?|claimed|believes?|suggested|insists?|wrote
    |reckons?|swears?
    |wonders?|keeps? (?:saying|telling|asking)|wants? (?:to know|to see|me to)|pinged|messaged|texted|tasked|bugging
    |calls me (?:an?|the|so|too))\b"""
)
_EXPERT_SAYS = folded(
    r"""\b(?:doctor|dr|dentist|therapist|gp|optician|cardiologist|allergist|dermatologist|physio|specialist|vet
    |test results?|tests)
    (?: just| recently| has)? (?:says?|said|told|thinks?|confirmed|suggested|diagnosed)\b"""
)
_TODAY = folded(r"\b(?:is|are|was|were)\b.{2,60}\b(?:today|right now|at the moment|just now|this morning)$")
_MAIN = folded(r",| but | and ")
_TROUBLE = folded(
    r"""\b(?:not work|not working|(?:is|are|was|got) broken|crash\w*|will not (?:start|load|open|run|build|work
    |connect|turn|charge)|does not (?:work|load
    |run|start|connect|respond|open|compile|charge)|is (?:down|slow|stuck|frozen|loud|offline|acting|flat|on empty)
    |stopped working
    |keeps? \w+ing|declined|stolen|was (?:lost|stolen|declined|charged)|expired|expires|frozen|locked|blocked|lost
    |damaged|missing
    |needs? (?:to|be|me|my|an?|new|changing|fixing|help|changed|maintenance|servic\w+)|run out|about to|not showing
    |(?:is|are) not$|went missing|jump start\w*|is dead|is on$|due to)\b"""
)
_MACHINERY = folded(
    r"""(?:my|our) (?:[\w-]+ ){0,2}(?:code|script|program|app|application|function|query|tests?|build|loop|regex|model
    |server|api|file|page|class|method|macro|formula|pipeline|container|pods?|compiler|notebook|array|list|variable)
    (?: \w+ly)? (?:throws?|raises?|returns?|gives?|shows?|prints?|outputs?|fails?|failed|hangs?|exits?|loads?
    |crash\w*|runs?|looks?|takes?|has|have|is|are)\b(?! (?:called|named|written|hosted|in (?-i:[A-Z])))"""
)
_EVERYBODYS = folded(
    r"""our (?:\w+ )?(?:solar system|planet|galaxy|universe|sun|moon|species|society|world|civili[sz]ation|ancestors
    |atmosphere|climate|oceans?|brains?|bodies|immune systems?|economy|constitution|forefathers|genes|cells)\b"""
)
_FINITE = folded(
    r"""(?:my|our)(?: [\w'’,.&-]{1,30}){1,7}? (?:is|are|was|were|has|have|had|does|do|did|will|cannot|can|got|went
    |began|came|ran|made
    |gave|broke|became|met|won|left|taught|grew|born|passed|turned|lives?|works?|loves?|likes?|hates?|plays?|studies
    |sleeps?
    |just|also|always|never|only|usually|both|still|[a-z]{2,}(?:[^s]s(?= \w)|ed)|(?:kids|children|parents|twins|sons
    |daughters|sisters|brothers|friends|cats|dogs|neighbou?rs|grandparents|in-laws|hens|folks)
    (?!and\b|who\b|with\b|from\b|in\b|at\b|or\b)[a-z]{2,}
    |go (?:to|by)|take|attend|use|speak|run|wear|start|end|begin|live|work|come|hate|love|eat|play|drink
    |sleep|cost|lay|last|close|open|grow|hurt|ache|snores|smokes|retired|moved|cooks)\b"""
)


def _is_about_subject(statement: str) -> bool:
    words = statement.split()
    start = _subject_at([word.lower() for word in words])
    if start < 0:
        return False
    if words[start].lower() in {"i", "we"}:
        return tells(words[start + 1 :]) or _is_routine(words[:start], words[start + 1 :])
    main = _MAIN.split(statement, maxsplit=1)[0]
    if _SAYS.search(main) and not _EXPERT_SAYS.search(statement):
        return False
    if both_at := _AND_I.match(" ".join(words[start:])):
        return tells(" ".join(words[start:])[both_at.end() :].split())
    if _EVERYBODYS.match(statement) or _MACHINERY.match(statement):
        return False
    if _TROUBLE.search(main) or _TODAY.search(main.rstrip(" .!")):
        return False
    return _FINITE.match(" ".join(words[start:])) is not None


_ROUTINE = folded(
    r"(?:every|each|most|on \w+days|once an?|twice an?|\w+ times an?|before (?:bed|breakfast|work)|after (?:work"
    r"|lunch|dinner))\b"
)


def _is_routine(fronted: list[str], rest: list[str]) -> bool:
    """ "Every Sunday I ...", whatever it is that is done."""
    done = without_adverbs(rest)
    if not done or not done[0].isalpha() or done[0].lower() in _NOT_ROUTINE:
        return False
    return _ROUTINE.match(" ".join(fronted)) is not None and not is_past(done[0].lower())


_NOT_ROUTINE = lexicon.MODALS | frozenset(
    "am are was were have had need want see think know wonder feel forget do did get".split()
)
_AND_I = folded(r"(?:my|our) (?:[\w'-]+ ){1,3}and I\b")
_SUBORDINATE = frozenset("when while because until till whenever back".split())
_TIME_WORDS = frozenset("last this next yesterday today tomorrow every".split())
_FRONTED = frozenset(
    """mornings evenings weekends summers winters weekdays for since on every in at during before
    after last these as when because of with until by to from most each some
    sometimes usually nowadays currently now today yesterday next this once twice normally professionally originally
    back due growing whenever while only instead lately recently mostly apart besides half till tomorrow tonight always
    never generally outside all where both same""".split()
).union(WEEKDAYS, (f"{day}s" for day in WEEKDAYS))


def _subject_at(words: list[str]) -> int:
    """The place of the word (I, we, my ...) with which the user is the subject; -1 when they are not."""
    if not words:
        return -1
    if words[0] in {"i", "we", "my", "our"} or _MY.match(" ".join(words[:4])):
        return next((index for index, word in enumerate(words) if word in {"i", "we", "my", "our"}), -1)
    if words[0].strip(",") not in _FRONTED and not any(word.strip(",") == "ago" for word in words[:5]):
        return -1
    if words[0] in _SUBORDINATE and not any(word.endswith(",") for word in words):
        return -1
    timed = words[0] in _TIME_WORDS
    for index, word in enumerate(words[:FRONTED_WORDS_MAX]):
        if word in {"i", "we"}:
            return index
        if index and word in {"my", "our"} and (words[index - 1].endswith(",") or (timed and index <= 2)):
            return index
    return -1


# --- the user elsewhere in the clause --------------------------------------------------------------------------------

_ELSEWHERE = folded(
    r"""(?P<name>(?:you (?:can
    |may) |please |just |people |everyone |everybody |friends |they |most people |my friends ){0,2}calls? me\s
    (?!back|something|anything|whatever|when|if|at|on|later|tomorrow|an?\b|the\b|my\b|out\b|crazy|by\b|it\b|names
    |from|to\b|after
    |not|again|that|this|something|ai\b|what)\w.{0,40})
    |[^,;]{2,70}? (?:is|are|was|were) (?:(?:not|still|always|definitely|also|actually|really|now) ){0,2}
    (?:(?:one|part) of (?:my|our)|for (?:my|our)|my|our|mine)\b.*
    |[^,;]{2,60}? (?:is|are) (?:something|a thing|things|what|where|who|why|how|when) (?:I|we) .+
    |[^,;]{2,60}? (?:is|are) [^,;]{2,60}? (?:in|at|on|to|for|with|of|from|by) (?:my|our)\b.*
    |[^,;]{2,60}? (?:is|are) the (?:only|best|one|first|last) [\w -]{2,30} I \w+.*
    |[^,;]{2,50}? (?!says|tells|asks|shows|returns|lets|allows|reminds|confuses|worries|interests|seems|means|needs
    |wants|owes|charges|sends|takes
    |requires|gives|brings|lists|contains|has|does|is|was|keeps|helps)[a-z]{2,}[^s\W]s (?:\w{2,6} )?(?:my|our|me
    |(?-i:us))\b.*
    |[^,;]{2,30}? for me (?:is|are|means|starts)\b.*
    |there (?:is|are) .{2,80}?\b(?:my|our)\b.*
    |[^,;]{2,60}? (?:makes?|gives?|gets?|drives?|helps?|scares?|freaks?|bores?|suits?|relax(?:es)?|calms?|triggers?
    |upsets?|drains?
    |terrif(?:y|ies)|disgusts?|annoys?|irritates?|grosses|fascinates?|does not agree with|do not agree with|exhausts?
    |thrills?|soothes?
    |sends?|hurts?|kills?|gave|made|taught|raised|(?:do|does) nothing for|bothers?|stresses|wrecks?|turns?
    |energi[sz]es|excites?
    |overwhelms?|inspires?|motivates?|repels?|revolts?|sickens?|nauseates?|creeps?|intimidates?|puts?|messes with
    |spooks?|unsettles?
    |delights?|weirds?) (?:my|me|(?-i:us)|our)\b.*
    |[^,;]{2,60}? (?:lives?|works?|stays?|sleeps?|plays?|trains?|studies) (?:with|for|at|in|next to|near) (?:me
    |(?-i:us)|my|our)\b.*
    |[^,;]{2,50}? (?:is|are) not for me\b.*
    |[^,;]{2,50}? runs? in (?:my|our) family.*
    |an? (?:friend|cousin|colleague|neighbou?r|passion|hobby|habit|goal|dream|pet peeve|teacher
    |classmate) of mine .+"""
)
_NOBODY = folded(
    r"""(?:or|in|for|with|than|at|on|to|of|by|from|as|like|if|when|since|because|such|thanks|maybe|even|not|I|we|my
    |our|it|this|that|these|those|here|he|she|they|you|your|what|who|everything|something|nothing|anything|someone
    |one|which|below|above|based|in case|even though|the (?:error|code|output|problem|issue|question|answer|file|text
    |above
    |following|response|page|app|command|thing|point|first|last|next|best|rest|reason|goal|word|name|song
    |result))\b"""
)


_ORDER_ME = folded(r"\w+(?: (?:up|off|down|out|through|the \w+ (?:know|see)))? (?:me|my|our)\b")


_ATTRIBUTE = folded(
    r"""the (?:(?:code|brand|user|second|middle|working|maiden|stage|pen|full|real|main|due|start|move-in|opening
    |monthly|total|annual|weekly|current|new) )?
    (?:name|nickname|title|deadline|date|budget|size|colou?r|address|theme|venue|breed|price|cost|rent|owner|goal
    |birthday|age|make|model|brand|head|head count|capacity|boss|founder|location|motto|language|currency|topic
    |subject|phone number|number plate|time zone|limit)
    \s(?:of|for) (?:my|our)
    \s(?![\w -]{0,20}\b(?:variable|function|array|list|file|column|row|table|script|string|class
    |method|database|essay|paragraph|sentence|text|image|code|question|error|output)s?\b)
    (?:[\w'-]+ ){1,5}?(?:is|are|will be|moved to|starts|ends)\b
    (?! not\b| (?:too|so|very|wrong|confusing|unclear|missing|bad|boring|empty|unknown|important|more|less)\b).*"""
)
"""What something of the user's is called, costs or looks like: "the name of our boat is Second Wind"."""


def _touches_user(statement: str) -> bool:
    if _ATTRIBUTE.match(statement):
        return True
    match = _ELSEWHERE.fullmatch(statement)
    if match is None or _TROUBLE.search(statement):
        return False
    if match["name"]:
        return True
    if _NOBODY.match(statement) or _ORDER_ME.match(statement):
        return False
    return not _SAYS.search(statement) or _EXPERT_SAYS.search(statement) is not None
