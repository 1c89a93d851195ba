"""What must never become a memory: questions, requests, fiction, conditions, injected instructions, passing states."""

from __future__ import annotations

from semmem.extraction.rules.patterns import folded

# --- whole messages --------------------------------------------------------------------------------------------------

_INJECTION = folded(
    r"""\b(?:ignore|disregard|forget|override) (?:all |any |the |your |my ){0,3}
    (?:previous|prior|above|earlier|instructions|rules|guidelines|system)
    |\bfrom now on,? (?:you|always|never|only|answer|respond|reply|your)\b
    |\bin (?:all|every) (?:future|following|further)\b
    |\b(?:you|the assistant|the model|the ai) (?:shall|must|will always|will never|are now|have to|should (?:always
    |never))\b
    |\bsystem (?:prompt|message|override|note)\b|(?:^|\n)(?:system|assistant|developer) ?:
    |\b(?:note|message|attention|instructions?) (?:to|for) (?:the )?(?:ai|assistant|model|llm|bot|system)\b
    |\b(?:developer|admin|god|debug|dan) mode\b|\bjailbreak|\bas an ai\b|\[/?inst\]|<\|
    |\b(?:save|store|add|write|put) (?:this|that|the following|it) (?:in|to|into) (?:your )?memory\b
    |\bthe user(?:'s)? (?:prefers?|loves?|likes?|is|has|wants|name|favou?rite)\b"""
)
_FICTION = folded(
    r"""(?:^|[.!?\n:] ?)(?:now |ok |okay |so |please |let us |let's |hey |hi,? ){0,3}
    (?:you(?: are|'re) (?:now )?(?:a|an|my|the|in|going to play)\b|pretend|imagine|role-?play|act (?:as|like)\b
    |play the (?:role|part)|play pretend
    |play (?:an? |the )(?!song|game|track|playlist|video|movie|clip|podcast|sound|round)(?:\w+ ){0,2}\w+[.,;:!]
    |suppose|supposing|assume|assuming|what if\b|say (?:that )?(?:i|we|my)\b
    |hypothetically|theoretically|in (?:this|my|the|our) (?:scenario|story|novel|game|dream|play|screenplay|book
    |campaign)\b
    |in a world|once upon a time|picture (?:this|me)\b|for the sake of argument|consider (?:the following
    |a) (?:scenario|case)
    |(?:continue|finish|complete) (?:the|this|my) (?:story|tale|poem|scene|dialogue|sentence)
    |(?:my|the|our) (?:character|protagonist|narrator|hero|heroine|villain|avatar|persona)\b)
    |\b(?:in which|where) i(?: am|'m)? (?:turn|become|play|fight|wake|am|a|an|the)\b
    |\bfrom the (?:perspective|point of view|pov|viewpoint) of\b|\b(?:narrated|told) by\b|\bin the voice of\b
    |\bas if i (?:were|was)\b|\b(?:what|who) am i ?\?"""
)
_SARCASM = folded(
    r"""(?:^|[.!\n] ?)(?:oh,? |ah,? |well,? |wow,? )?
    (?:great|fantastic|wonderful|lovely|brilliant|awesome|amazing|perfect|super|nice|terrific|splendid|delightful),?
    (?: (?:a|an|another|just|more|yet|now|the|so)\b(?! thanks?)|[^.!?\n]{0,60}\bagain\b)
    |(?:^|[.!\n] ?)(?:oh,? (?:great|joy|goody|fantastic|wonderful|lovely|sure|yes|perfect)|yeah,? (?:right|sure)
    |just what i
    |exactly (?:what|how) i|just how i|lucky me|thanks a lot|how lovely|sure,? because|wow,? thanks|as if)\b
    |\b(?:just|simply|absolutely|really) (?:love|adore|enjoy) (?:it )?
    (?:when|how|being|waiting|standing|sitting|getting|paying|having|spending|doing taxes|listening to hold)\b
    |\bloves? it when\b|(?:^| )/s\b|\bwhat a (?:joy|treat|delight)\b|\bmy favou?rite thing in the (?:whole )?world\b
    |\bbecause i have nothing better\b|\b(?:best|greatest) (?:day|week|morning|start|monday|birthday) ever\b
    |\bmy lucky day\b|\bjust my luck\b
    |\bliving the dream\b|\b(?:totally|absolutely) love (?:mondays|traffic|taxes|paperwork|meetings|queues)\b
    |(?:^|[.!\n] ?)(?:oh,? )?(?:great|fantastic|wonderful|lovely|brilliant|awesome|amazing|perfect|super|terrific
    |splendid|marvell?ous|excellent),
    [^.!?\n]{0,80}\b(?:late|cancell?ed|broke|broken|failed|jammed|delayed|lost|crashed|stuck|stolen|dead|leak\w*
    |flooded|missed|closed|ruined
    |flat|left right|without me)\b"""
)
_TEXT_WORK = folded(
    r"""(?:^|[.!?\n,] ?)(?:hey |hi |ok |please |pls |can you |could you |would you |kindly |help me ){0,3}
    (?:translate|proofread|proof-read|rewrite|rephrase|paraphrase|summari[sz]e|correct|edit|fix|improve|shorten|polish
    |analy[sz]e|classify|check|explain|review|convert|reword|spellcheck|parse|tokeni[sz]e|count|repeat|say|reply to
    |put
    |respond to|answer|label|continue|finish|complete)\b[^.!?\n]{0,80}?
    (?:\b(?:this|these|following|below|sentence|paragraph|text|essay|phrase|line|lyrics|tweet|comment|into
    |(?:to|in) (?:french|german|spanish|english|italian|dutch|polish|formal \w+))\b|:)"""
)
_PASTE = folded(
    r"""(?:^|[.!?\n] ?)
    (?:(?:pasted|copied|copy-pasted|taken|quoted|quoting|excerpt|snippet|forwarded|found)\b[^.!?\n:]{0,40}(?:from|in
    |of|on|below)
    |(?:here(?:'s| is| are) (?:the|an?|my|some|what)|(?:the )?following|(?:from|in|on) (?:an?|the|my) (?:e-?mail
    |website
    |web ?page|flyer|article|review|letter|book|brochure|tweet|post|ad)|(?:the |an? )?(?:text|document|page|article
    |e-?mail
    |letter|flyer|review|manual|readme) (?:found |that |on |says|said|reads|from))\b[^.!?\n]{0,60}:
    |(?:text|article|review|transcript|log|output|lyrics|quote|input|context|document|prompt|example|customer|user
    |human
    |bio|ad|quote of the day)\s?:)
    |\bfollowing [^.!?\n:]{0,80}:|\b(?:übersetze|traduis|traduce|traduci)\b"""
)


_CREATION = folded(
    r"""(?:^|[.!?\n,] ?)(?:please |now |can you |could you |help me ){0,3}(?:write|compose|invent|create|make up|tell
    |draft|generate|come up with)
    (?: me| us)? (?:an?|the|some|two|three) (?:\w+ ){0,3}?(?:song|poem|story|stories|diary entry|limerick|haiku
    |dialogue|scene|novel|script|screenplay
    |tale|rap|monologue|ballad|sonnet|lyrics|backstory|fable|joke|legend|short story|fanfic|fan fiction|sketch
    |role-?play)\b[^.!?\n;:]*"""
)


_DICTATED = folded(
    r"""(?:^|[.!?\n] ?)(?:please |can you |could you |now ){0,3}(?:forward|send|post|e-?mail|tweet|text|reply|write
    |draft|type|transcribe
    |recite|read|publish|record|store)\b[^.!?\n:]{0,80}:
    |\b(?:who says|that says|saying|goes|reads|which says|says) ?:"""
)


def own_part(text: str) -> str:
    """What comes before pasted text or text to be worked on; empty when the message is fiction or an injection."""
    if _INJECTION.search(text) or _FICTION.search(text) or _SARCASM.search(text):
        return ""
    cuts = [match.start() for pattern in (_TEXT_WORK, _PASTE, _DICTATED) if (match := pattern.search(text))]
    cuts += [match.end() for match in [_CREATION.search(text)] if match]
    return text[: min(cuts)] if cuts else text


# --- clauses ---------------------------------------------------------------------------------------------------------

_QUESTION = folded(
    r"""(?:(?:in|at|on|for|to|from|by|with|of|about|under|until|since) )?(?:what|which|who|whom|whose|where|why
    |how)s?\b(?!ever)
    |(?:do|does|did|is|are|would|could|should|can|shall) (?!not\b)\w|will (?!is\b|was\b|has\b|and\b)\w
    |(?:do|does|did|is|are|am|was|were|can|could|should|would|will|shall|may|have|has|had|cannot) (?:not )?
    (?:I|you|we|he|she|it|they|there|this|that|these|those|my|our|your|the|a|an|any|anyone|someone|everything|some)\b
    |when (?:is|are|was|were|do|does|did|will|can|should|would|has|have)\b
    |(?:any|some) (?:idea|ideas|tips|advice|suggestion|recommendation|thoughts|chance|must|good|gift)
    |(?:was|were) (?!born\b)\w+ \w+"""
)
_TAG = folded(
    r""",? (?:right|correct|is it not|is not it|do not I|did not I|no|eh|huh|am I not|yes|have not I|is not (?:he|she
    |it)
    |does not (?:he|she|it)|are not (?:I|they|we))\s?\?{0,3}$|\bI forget$
    |\b(?:what|when|who|whom|which|how|how much|the|an?|to|of|for|and|or|my|our|what on it|with
    |what \w+)$"""
)
_REQUEST = folded(
    r"""(?:please|pls|plz|kindly|let us|let me|let's|lets|want to|wanna|need|looking for|how about|what about|not sure
    |just wondering|wondering|thinking|trying|no need|have a|start over|move \d|note to|double[- ]check|switch (?:to
    |on|off
    |the|back)|keep (?!in mind)|call (?!me))\b
    |(?:translate|write|rewrite|fix|explain|tell|give|show|help|find|list|make|create|generate|compose|draft
    |summari[sz]e
    |recommend|suggest|describe|compare|calculate|compute|convert|define|solve|debug|refactor|implement|add|remove
    |delete
    |update|change|set|turn|open|close|text|send|email|message|book|order|buy|schedule|remind|cancel|check|look|search
    |google|say|repeat|answer|ask|think|roll|flip|pick|choose|guess|name|spell|pronounce|count|sort|format|print|run
    |execute
    |transfer|pay|play|stop|pause|skip|forget|ignore|forgive|wait|hold|go|come|take|put|get|bring|imagine|pretend
    |suppose
    |assume|consider|provide|outline|plan|design|build|teach|quiz|advise|prove|simplify|shorten|expand|continue|finish
    |complete|try|use|do|be|see|read|watch|listen|reset|share|report|freeze|block|unlock|increase|raise|lower|enable
    |disable
    |locate|direct|navigate|measure|estimate|analy[sz]e|review|edit|improve|proofread|polish|paraphrase|rephrase
    |brainstorm
    |act|respond|reply|speak|talk|sing|tweet|post|rate|rank|evaluate|assess|test|verify|confirm|alert|notify|wake
    |assist|direct|apply|sign me|prefer not
    )\b(?! (?:is|are|was|makes?|has|beats)\b)"""
)
_CONDITION = folded(
    r"""(?:if|unless|whether|in case|provided|should I|had I|were I|even if|only if|wish|hopefully|maybe|perhaps)\b
    |.*?\b(?:if I (?:had|were|was|could|did)|I wish|would have|could have|as if|as though|wish I|if only
    |who would)\b"""
)
_TECHNICAL = folded(
    r"""\b(?:errors?|exceptions?|traceback|stack ?trace|undefined|null|segfault|stdout|crashes|crashed|crashing
    |compile
    |compiler|npe|404|50[0-4]|syntax|regex|dataframe|endpoint|api key|not responding|localhost|dicts?|json
    |keeps? (?:crashing|failing|freezing|disconnecting|loading|buffering))\b"""
)
_AT_HAND = folded(
    r"""\b(?:my|our) (?:[\w-]+ ){0,3}(?:questions?|query|code|script|program|function|error|issue|problem|guess|point
    |bad
    |apologies|understanding|attempt|goodness|god|gosh|turn|message|request|prompt|concern|doubt|mistake|fault|answer
    |order
    |cards?|accounts?|balance|bills?|statement|pin|transactions?|password|passcode|pto|paycheck|w2|deposit|debit
    |checking
    |savings|calendar|list|lists|list of things to do|todo|to-do|playlist|timer|alarm|volume|luggage|suitcase|bags?
    |location|reservation|text|essay
    |e-?mail|paragraph|application|refund|package|parcel|delivery|internet|wifi|connection|credit (?:score|limit|card
    |rating)
    |fraud|checks?|battery|engine|rewards|points|mpg|history|coverage|gps|insurance|requests?|tires?|tyres?|oil
    |meaning|intention|opinion|timeout|build|pipeline|container|deployment|variable|loop|merge|output|input|tests
    |unit test)\b
    (?=[;.]|$| (?:is|are|was|were|has|have|got|will|does|do|did|should|cannot|would|needs?|keeps?|went|broke|looks?
    |seems?|to be
    |returns?|loses?|fails?|says|hangs?|freezes|stops|just|still|not|never|\w+ed)\b|$)"""
)


_NO_PREDICATE = folded(r"[^,]*\b(?:is|are|was|were)$")


def is_question(clause: str) -> bool:
    return bool(
        _QUESTION.match(clause)
        or _NO_PREDICATE.fullmatch(clause.rstrip(" .!"))
        or _TAG.search(clause.rstrip(" .!,;…")[-40:])
    )


def is_request(clause: str) -> bool:
    return bool(_REQUEST.match(clause))


_SAYS_WHO = folded(r",? (?:says|said|claims|claimed|promises) (?:the|an?|this|that|every) \w+[^,]{0,40}$")
_ATTRIBUTED = folded(
    r"\b(?:says|said|claims|claimed|reads|goes|writes|wrote) (?:the|an?|his|her|this|that|my (?!doctor))\b"
    r"|\baccording to (?!my (?:doctor|dentist|tests))"
)


def is_attributed(clause: str) -> bool:
    """Whether it reports what somebody else says, without quotation marks."""
    return bool(_ATTRIBUTED.search(clause) or _SAYS_WHO.search(clause[-80:].rstrip(".!")))


def is_hypothetical(clause: str) -> bool:
    return bool(_CONDITION.match(clause))


def is_passing(clause: str) -> bool:
    """Whether it is about this moment or the task at hand, and not about the user's life."""
    return bool(_TECHNICAL.search(clause) or (_AT_HAND.search(clause) and "@" not in clause))
