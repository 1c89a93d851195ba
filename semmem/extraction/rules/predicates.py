"""Whether what "I" or "we" do, are or have is lasting enough to remember."""

from __future__ import annotations

from semmem.extraction.rules import lexicon
from semmem.extraction.rules.grammar import GERUND_TO_BASE, PAST_TO_BASE, is_adverb, is_past
from semmem.extraction.rules.objects import VERB_OBJECTS, fits, is_vague
from semmem.extraction.rules.patterns import folded

_AM_DENIED = folded(
    r"""(?:an? (?:bit|little|lot|tad|fool|idiot|mess|failure|genius|user|human|person|robot|bot|customer|ai)
    |tired|back|here|there|sorry|sure|certain|happy|glad|sad|bored|hungry|thirsty|ready|done|busy|late|lost|fine|ok
    |okay|well
    |curious|confused|excited|impressed|wondering|looking (?!after)|asking|having|getting (?!married|divorced|engaged
    |a (?:dog|cat))
    |stuck (?:on|with|at the|here|again)|afraid (?:I|that|so|not|it)|good$|good (?:now|thanks|to go)|about to|gonna
    |running
    |testing|thinking|talking|telling|kidding|joking|saying|trying|hoping|feeling|guessing|waiting|calling|sending
    |missing|unable
    |able|supposed|free|available|worried|concerned|angry|mad (?!about)|upset|stressed|nervous|grateful|thankful
    |welcome|proud
    |jealous|surprised|shocked|amazed|what|who|the one|your|you|positive|aware|familiar|dying to|starving|freezing
    |new (?:here|to this)
    |all (?:ears|set|good|done)|right|wrong|no expert|like|alive|like|scared (?:that|right)|on (?:my way|hold
    |the (?:phone|way|bus
    |train|road|fence))|in (?:an? (?:hurry|rush|meeting|good mood|bad mood)|trouble|need|line|the (?:middle|mood))
    |out of
    |at (?:the|a|home|work right)|interested in (?:knowing|learning about|your|the|buying)|doing (?:well|fine|good
    |great|ok|this|it
    |some|research|alright)|reading (?:this|the|an?)|working on (?:this|it|an?|the|some)|from the future
    |the same)\b"""
)
_AM_LASTING = folded(
    r"""(?:an?|one of|your average|the kind of|no fan|mostly an?|both an?|more of an?|such an?) \S
    |the (?:oldest|youngest|eldest|only|middle|founder|owner|(?:\w+ )?head|father|mother|manager|author|lead|captain
    |treasurer
    |president|chair|secretary|proud|conductor|chef|editor|caretaker)\b
    |(?:allergic|vegan|vegetarian|pescatarian|coeliac|celiac|lactose|gluten|married|single|divorced|retired|diabetic
    |pregnant
    |left[- ]handed|right[- ]handed|ambidextrous|colou?r[- ]?blind|(?:partially |legally |half )?(?:blind|deaf)
    |hard of hearing
    |autistic|dyslexic|bipolar|epileptic|asthmatic|an[a]?emic|sober|teetotal|jewish|muslim|christian|catholic|hindu
    |buddhist
    |atheist|agnostic|gay|lesbian|bisexual|trans|non-?binary|queer|afraid of|scared of|terrified of|phobic
    |obsessed with|into
    |fond of|keen on|crazy about|mad about|fluent|bilingual|trilingual|based (?:in|at|near|out of)|from|born
    |originally|raised
    |interested in|passionate about|(?:very |really )?(?:good|bad|terrible|great|awful|hopeless|rubbish
    |useless) (?:at|with)
    |intolerant|sensitive to|named|called|engaged|widowed|separated|self-employed|unemployed|employed|responsible for
    |in charge of
    |on (?:(?:an?|the) )?(?:\w+ )?(?:diet|medication|board|committee|team|statins|insulin|antidepressants
    |blood thinners|keto
    |parental leave|maternity leave|paternity leave|sabbatical|night shifts?|waiting list)
    |(?:in|on) (?:the )?\S{2,12}(?: european| standard)? time(?: ?zone)?
    |(?:at|on) (?-i:[A-Z])\w+|between (?:jobs|homes|houses)|(?:\w+est|at my best|most \w+) (?:when|in|at|near)
    |in (?:the (?:army|navy|military|choir|band|process of)|my (?:\w+ )?(?:\w+ties|year)|recovery|sales|marketing
    |finance|tech
    |construction|insurance|real estate|education|high school|college|grade|(?:my )?\w+ (?:year|grade)
    |(?:an? )?(?:\w+ )?(?:band
    |choir|wheelchair|relationship|book club|orchestra|team)|(?-i:[A-Z])\w+)|at (?:university|uni|college|school)
    |part of
    |partial to|prone to|(?:short|near|far)-?sighted|(?:almost |nearly |about |over |turning )?(?:\d+|thirty|forty
    |fifty|sixty
    |twenty)\b|off (?:to|sugar|alcohol|meat|gluten|dairy|caffeine)|half|bald|recovering|expecting|hypertensive
    |claustrophobic
    |immunocompromised|stuck in an?|up (?:at|by) \d|introverted|extroverted|shy|tone-?deaf|homeschooled|adopted
    |due (?:in|on)
    |french|german|spanish|italian|american|british|irish|polish|dutch|indian|chinese|japanese|korean|mexican
    |canadian|brazilian
    |portuguese|swedish|norwegian|danish|finnish|turkish|greek|russian|ukrainian|nigerian|kenyan|egyptian|iranian
    |swiss|austrian
    |belgian|australian|english|scottish|welsh)\b
    |trying to (?:lose|quit|eat|stop|cut|gain|save|conceive|reduce|avoid|get (?:fit|pregnant|in shape)|become)\b
    |(?-i:[A-Z][\w'-]+)(?: (?-i:[A-Z][\w'-]+)){0,3}(?:,.*)?$"""
)
_DOING = {
    "go": folded(
        r"to (?!be\b|have\b|the\b|bed\b|try|ask|need|use|do\b|say|sleep|eat|make|get\b|work\b|cook)\w|with (?:the"
        r"|an?)\b"
    ),
    "get": folded(r"(?:married|divorced|engaged|a (?:dog|cat|puppy|divorce))\b"),
    "take": folded(
        r"(?:.*\b(?:class|classes|lessons|course|medication|pills|antibiotics|sabbatical|leave)\b|(?:my|our) \w+"
        r"|\d+ ?mg|care of my)"
    ),
    "do": folded(
        r"(?:an?|my) (?:phd|master|degree|doctorate|apprenticeship|internship|mba|course|residency)|keto|intermittent"
    ),
    "prepare": folded(
        r"for (?:my|the|an?) (?:\w+ )?(?:exam|marathon|move|wedding|test|bar|finals|triathlon|ironman|competition)"
    ),
    "plan": folded(
        r"(?:to (?:move|visit|travel|retire|quit|study|learn|run|start|marry|adopt|get|become|go|fly)|on \w+ing"
        r"|(?:my|our) (?:\w+ )?(?:wedding|retirement|honeymoon|trip)|an? (?:\w+ )?(?:party|wedding|trip|surprise"
        r"|sabbatical))\b"
    ),
    "look": folded(r"after\b"),
    "stay": folded(r"(?:with|at|in|sober)\b"),
    "use": folded(r"(?-i:[A-Z])\w+ .*\b(?:for|at|in|on) (?:my|our|work)\b"),
    "read": folded(r"(?:my way|.* (?:trilogy|series|novels?)\b)"),
    "leave": folded(r"(?:my job|for (?-i:[A-Z]))"),
    "see": folded(r"(?:a (?:therapist|psychologist|physio)|someone)"),
    "come": folded(r"to (?-i:[A-Z])"),
    "start": folded(r"(?!to\b|with\b|this|over|the\b)\w+"),
    "write": folded(r"(?:an?|my) (?:\w+ )?(?:novel|book|thesis|dissertation|memoir|musical|screenplay|opera)"),
    "build": folded(
        r"(?:an?|my|our) (?:\w+ )?(?:house|shed|boat|cabin|deck|treehouse|guitar|greenhouse|studio|kayak|table"
        r"|startup)"
    ),
    "host": folded(r".*\b(?:on|in|next|this)\b"),
    "apply": folded(r"(?:to|for) (?!this)"),
    "work": folded(r"(?:as|at|for|in|from|on my|part|full|night|towards|two|with (?:children|animals))\b"),
    "play": folded(r".*\b(?:in|for|with)\b"),
    "expect": folded(r"(?:an?|our|my|twins)\b"),
    "run": folded(r"(?:an?|the|my) (?:\w+ )?(?:marathon|race|half|10k|5k|shop|business|company|workshop)"),
    "visit": folded(r"(?!this)\w+"),
}
_HAVE_DENIED = folded(
    r"""(?:\S+ ){0,4}?(?:questions?|problems?|issues?|doubts?|ideas?|feeling|trouble|files?|list|table|function|array
    |columns?
    |variable|text|paragraph|essay|document|dataset|pdf|code|string|script|query|this|these|that|following|time
    |minute|seconds?
    |moment|favou?r|request|nothing|something|anything|everything|plenty|enough|fun|charges?|transactions?|balance
    |bills?|clue
    |luck|reason|concerns?|difficult\w*|activity|more|any more|it|them|homework|look|fever|cold|headache|hiccups|free
    |hard time|to|choice|data|case|on my (?:card|calendar|list|schedule|account)|in my (?:account|wallet|bank
    |checking|savings)
    |from (?:mon|tues|wednes|thurs|fri|satur|sun|yester)day|left|lead|leads|meeting|points|reservation|been|say
    |access|package)\b"""
)
_HAVE_LASTING = folded(
    r""".*(?:[$€£]\d|\d ?k\b|\b\d[\d.,]*k? (?:dollars|euros|pounds|quid|bucks|€|£)\b|allerg
    |set aside|\bto spend\b)"""
)
_HAVE_TO = folded(r"to (?:avoid|take .*(?:every|daily|mg)|wear|inject|watch my)\b")
_HAVE_DONE = folded(
    r"""been (?:(?:\w+ly|always|together) )?(?:living|working|studying|learning|playing|training|married|vegan
    |vegetarian|an?|in (?!a\b|the\b)|with
    |sober|dating|teaching|running|to (?-i:[A-Z])|on|retired|diagnosed|together|single|saving
    |doing (?!great|well|good|fine|ok|okay|better|this|some|it\b|that|research))\b
    |(?:lived|worked|moved|switched|decided|bought|started|stopped|quit|picked|chosen|settled|become|given up
    |taken up|joined
    |visited|played|owned|booked|signed|graduated|adopted|retired|studied|run|gone (?:vegan|vegetarian|back)|written
    |published
    |won|collected|sold|accepted|always (?:wanted|loved|hated|been|lived|liked)|agreed|changed|committed|opted
    |converted|replaced
    |never (?:been|eaten|had|flown|smoked|learned|learnt|drunk|driven|owned|liked|seen snow|ridden|skied))\b"""
)
_NOT_DONE = folded(
    r"(?:eaten|drunk|smoked|had (?:an?|any)|touched|been able to (?:eat|drink|walk|run|sleep)|driven|flown) "
)
_NEVER_DID = folded(
    r"(?:go to (?:college|university|uni)|finish (?:high |law |medical )?school|grow up|graduate|vote)\b"
)
_NOT_DO = folded(
    r"""(?:have (?:an? (?!question|problem|clue|preference|choice|lot|answer|idea)|any (?:kids|children|siblings|pets
    |allergies|brothers|sisters|food|known|experience|tattoos)
    |kids|children|siblings|pets|wifi|allergies)|want (?:kids|children)|go to (?:church|the gym|bars)|go out much
    |know how to (?!\w+ (?:this|it)|do|say|spell|fix|get|make|use)
    |take (?:sugar|milk|any medication)|get (?:along with|seasick|carsick|migraines))\b"""
)
_NOT_STATES = frozenset(
    """live work study own like love enjoy eat drink cook run drive ride speak use wear smoke vape celebrate tolerate
    belong swim dance play watch read do trust earn share practise practice own rent commute attend sleep drink
    support""".split()
)  # fmt: skip
_CAN = folded(
    r"""(?:eat|drink|stand|tolerate|digest|handle|swim|drive|ride|have (?:dairy|gluten|nuts|alcohol|caffeine|sugar
    |spicy|kids)|do (?:gluten
    |dairy|spicy|push|pull|without|heights)|speak|play|read (?:music|sheet|braille|\w+ script|(?-i:[A-Z]))|cook
    |juggle|sing|dance
    |ski|sail|fly (?:a|small|planes)|whistle|code|program|sew|knit|weld|draw|bear|stomach|abide|smell|lift (?:heavy
    |more|\d)|bend
    |type (?:\d|with)|sleep (?:with|on|without|more)|spend (?!the|my|time).*\d|go (?:up to|as high as|over|above).*\d
    |afford.*\d|put (?:aside|away|by|in|towards).*\d
    |walk (?:far|long|more)|hear (?:on|in|out|well)|park)\b(?! (?:it|this|that|you)\b)"""
)
_WOULD = folded(r"rather .+ than |(?:love|like) to (?:learn|visit|become|travel|retire|run a)\b(?! more about)")
_WILL = folded(
    r"""(?:be (?!needing|using|looking|asking|waiting|having|doing|getting)(?:\w+ing(?= \w)|in (?-i:[A-Z])|travel\w+
    |moving|visiting|flying|starting|turning|away|\d+|attending|working|on (?:holiday|vacation
    |leave|parental|maternity))|move|fly|visit|travel|marry|start (?:a (?:job|new job|course|phd|masters?)|my|at
    |work)|retire
    |run (?:an?|my|the) (?:\w+ )?(?:marathon|race|half)|turn \d|graduate|become)\b"""
)


def tells(words: list[str]) -> bool:
    """Whether the words after "I" or "we", in their own case, say something lasting about the user."""
    often = bool(words) and words[0].lower() in _OFTEN
    said, words = words, without_adverbs(words)
    if not words:
        return False
    verb, tail = words[0].strip(",").lower(), words[1:]
    if verb in {"am", "are", "was", "were"}:
        return _is(verb, tail)
    if verb in {"have", "had"}:
        return _has(verb, tail)
    if verb == "did" and tail[:1] == ["not"]:
        return _NEVER_DID.match(" ".join(tail[1:])) is not None
    if verb == "do" and tail[:1] == ["not"]:
        return _does_not(without_adverbs(tail[1:]))
    if verb == "do" and tail[:1] and tail[0] in lexicon.LASTING_VERBS:
        return _habitual(tail[0], without_adverbs(tail[1:]))
    if verb in lexicon.MODALS:
        return _modal(verb, tail)
    if verb == "used" and tail[:1] == ["to"]:
        return bool(tail[1:]) and tail[1] in lexicon.STATE_VERBS | lexicon.EVENT_VERBS
    base = PAST_TO_BASE.get(verb)
    if base in lexicon.EVENT_VERBS and verb not in lexicon.SAME_PAST:
        return fits(base, " ".join(tail))
    if base is not None and words is not said and said[0].lower() == "never":
        return base in lexicon.LASTING_VERBS and not is_vague(" ".join(tail))
    if often and tail and verb not in _NEVER_LASTING and not is_past(verb):
        return verb.isalpha() and not is_vague(" ".join(tail))
    return _habitual(verb, without_adverbs(tail))


_OFTEN = frozenset("always never usually often rarely normally typically seldom mostly generally".split())
_NEVER_LASTING = lexicon.MODALS | frozenset(
    """get need want wonder think know guess mean see understand hope wish forget remember believe feel say tell ask
    try""".split()
)


def _habitual(verb: str, tail: list[str]) -> bool:
    """Whether a verb in the present tense tells a habit: by its object, or because it is no verb of the moment."""
    text = " ".join(tail)
    if is_past(verb):
        return False
    if verb in VERB_OBJECTS or verb in lexicon.LASTING_VERBS:
        return fits(verb, text)
    return verb.isalpha() and bool(text) and verb not in lexicon.PASSING_VERBS and fits(verb, text)


def without_adverbs(words: list[str]) -> list[str]:
    index = 0
    while index < len(words) and is_adverb(words[index].strip(",").lower()):
        index += 1
    return words[index:]


def _is(verb: str, tail: list[str]) -> bool:
    tail = without_adverbs(tail)
    negated = tail[:1] == ["not"]
    text = " ".join(without_adverbs(tail[1:]) if negated else tail)
    if verb in {"was", "were"}:
        return not negated and fits("be", text)
    if _AM_LASTING.match(text) and not (negated and text.startswith(("trying", "the ", "a robot", "a bot"))):
        return not _AM_DENIED.match(text) or text.startswith("trying")
    return not negated and not _AM_DENIED.match(text) and _is_doing(text)


def _is_doing(text: str) -> bool:
    verb, _, tail = text.partition(" ")
    base = GERUND_TO_BASE.get(verb.strip(",").lower())
    if base is None or not tail:
        return False
    pattern = _DOING.get(base)
    return not is_vague(tail) and (pattern is None or pattern.match(tail) is not None)


def _has(verb: str, tail: list[str]) -> bool:
    text = " ".join(tail)
    if tail[:1] == ["not"]:
        return bool(_NOT_DONE.match(" ".join(tail[1:])))
    text_plain = " ".join(plain := without_adverbs(tail))
    if verb == "have" and (_HAVE_DONE.match(text) or _HAVE_DONE.match(text_plain)):
        return "been a while" not in text
    if verb == "had":
        return fits("have", text)
    if plain[:1] == ["to"]:
        return bool(_HAVE_TO.match(text_plain))
    if not plain or _HAVE_DENIED.match(text_plain):
        return bool(plain and _HAVE_LASTING.match(text_plain))
    base = PAST_TO_BASE.get(first := plain[0].lower())
    if verb == "have" and base in lexicon.EVENT_VERBS:
        return fits(base, " ".join(plain[1:]))
    return not first.endswith("ed") and base is None


def _does_not(words: list[str]) -> bool:
    text = " ".join(words)
    if _NOT_DO.match(text):
        return True
    verb = words[0].strip(",") if words else ""
    lasting = verb in _NOT_STATES or (verb.isalpha() and verb not in lexicon.PASSING_VERBS and verb not in VERB_OBJECTS)
    return lasting and bool(words[1:] or verb in _NOT_STATES) and not is_vague(" ".join(words[1:]))


def _modal(verb: str, tail: list[str]) -> bool:
    negated = tail[:1] == ["not"]
    text = " ".join(tail[1:] if negated else tail)
    if verb in {"can", "cannot"}:
        return bool(_CAN.match(" ".join(without_adverbs(text.split()))))
    if verb == "would":
        return not negated and bool(_WOULD.match(text))
    return verb in {"will", "shall"} and not negated and bool(_WILL.match(text))
