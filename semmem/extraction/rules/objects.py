"""What a verb must (or must not) go on with to say something lasting. Verbs without a row take anything.

Patterns are matched right after the verb. "I run every morning" is a habit, "I run the script" is not.
"""

from __future__ import annotations

import re

from semmem.extraction.rules.patterns import folded

_THIS = (
    r"(?!(?:it|this|that|these|those|you|your|what you|how you|the (?:idea|following|first|second|former|latter))\b)"
)
_ROUTINE = (
    r".*\b(?:every|each|daily|weekly|monthly|twice|once a|on \w+days?|times a|at night|before|mornings?|weekends?"
    r"|of (?:the|each|every) (?:month|week|year))\b"
)

_TABLE: dict[str, str] = {
    # verbs of doing, which need a habit or a certain object
    "run": r"(?:(?-i:[A-Z])\w+ .*\bon (?:my|our)\b|a|an|my|the|our|two|three|\d+)\b.*\b(?:marathons?|races?|k|10k|5k"
    r"|half|miles?|km|shop|business"
    r"|company|bakery"
    r"|firm|team|club|store|farm|studio|blog|kilometres|kilometers|channel|hotel|caf[eé]|restaurant|clinic|school"
    r"|agency)\b"
    rf"|(?:barefoot|marathons|ultras|long distance)|\d|{_ROUTINE}",
    "go": r"(?:vegan|vegetarian|keto|back to (?:school|university|college|work)|by (?!the\b)|through a|with the"
    r"|with an?\b|for the"
    r"|(?:hiking|swimming|fishing|climbing|running|cycling|skiing|surfing|sailing|diving|dancing|camping|jogging"
    r"|skating"
    r"|bouldering|rowing|kayaking|riding|birding|foraging) ?|to (?:church|mosque|temple|school|college|uni|university"
    r"|the gym"
    r"|bed (?:at|before|around|early|late))|to .*\b(?:last|ago|in (?:19|20)\d\d|university|college|high)\b"
    rf"|on (?:a|my|our) (?:honeymoon|first|cruise)|{_ROUTINE})",
    "take": r"(?:an? (?:\w+ )?(?:course|class|workshop|gap year)|up (?!with)|over |early|part in|a (?:job|gap|new job"
    r"|course|class|sabbatical)|\d+ ?(?:mg|mcg|units)"
    r"|(?:all |most of )?(?:my|our) (?:notes|\w+ notes|coffee|tea"
    r"|meds|medication|insulin|pills)|medication|meds|insulin|metformin|statins|antihistamines|vitamin|blood thinners"
    r"|beta"
    rf"|antidepressants|the (?:bus|train|tram|metro|subway|ferry) to|.*\b(?:lessons|classes)\b|{_ROUTINE})",
    "make": r"(?:a living|my own|our own|the decision|up my mind|(?:about |around |roughly )?[$€£]?\d|jewellery"
    r"|jewelry|pottery"
    rf"|furniture|music|it a rule|sourdough|kombucha|wine|cheese|cider|beer|candles|{_ROUTINE})",
    "do": r"(?:yoga|pilates|crossfit|karate|judo|ballet|a phd|my (?:phd|masters?|own|\w+ (?:in|with|at|by|on|using))"
    r"|triathlons?|keto|pottery|dairy|gluten|meat"
    rf"|the (?:dishes|laundry|cooking|cleaning|bookkeeping|books|accounts|shopping|gardening|ironing|driving"
    rf"|school run)|shift|night shifts?|intermittent|spicy|volunteer|improv|stand-?up|{_ROUTINE})",
    "get": r"(?:married|engaged|divorced|promoted|fired|hired|laid off|diagnosed|accepted|pregnant"
    r"|back from (?-i:[A-Z])|into (?!the|an?\b"
    r"|this|it)"
    r"|my (?:first|degree|licen[cs]e|diploma|phd|msc|ba|bachelor|master|visa|green card|citizenship|black belt)"
    r"|up (?:at|every|early|before)|an? (?:new |second |part-time )?(?:job|dog|cat|puppy|kitten|car|bike|tattoo"
    r"|scholarship"
    r"|internship|divorce|promotion|degree|phd|master|hamster|parrot|rabbit|horse|motorbike|piano|guitar|house)"
    r"|carsick|seasick|migraines|hives|a rash|hay ?fever|nosebleeds|vertigo|sunburn\w* easily|nervous when)",
    "have": r".*\b(?:surgery|baby|operation|heart attack|stroke|transplant|miscarriage|twins|kids|dog|cat|allerg\w+"
    r"|reaction"
    r"|chickenpox|cancer|c-section|stent|pacemaker|interview)\b",
    "keep": r"(?:bees|chickens|hens|goats|sheep|(?:a )?kosher|halal|a (?:diary|journal|dog|cat|garden|spare|food)|my"
    r"|horses|koi"
    r"|fish|pigeons|reptiles|rabbits|tropical|two|three|four|five|the sabbath)\b",
    "want": r"to (?:learn (?!an? (?:\w+ )?(?:fact|joke|word|thing)\b|about|more|the (?:rules|name|difference)"
    r"|something|what|if|how to (?:change|fix|get))|become|run (?:a|my)|visit|travel|lose (?:weight|\d|ten|five|some)"
    r"|quit|retire|get (?:fit|a degree|a dog"
    r"|married|into)|climb|study|publish|hike|live|have (?:kids|children)|move to|go to (?!bed|the)|be an?"
    r"|stop (?:smoking|drinking"
    r"|eating)|start (?:a (?:business|family|company|band|podcast|blog|garden)|my own|running|learning)"
    r"|buy an? (?:\w+ )?(?:house|home|flat|apartment|boat|farm|van|piano|guitar|camper))\b|(?:no |more )?(?:kids"
    r"|children)\b",
    "need": r"(?:glasses|a wheelchair|a hearing|insulin|reading glasses|(?:at least )?\w+ hours of sleep|subtitles"
    r"|captions"
    r"|large print|to (?:avoid|limit)\b|step-free|gluten-free)",
    "hope": r"to (?!hear|see you|get an?|find)",
    "know": r"(?:how to (?!\w+ (?:this|it)))|sign language|basic \w+"
    r"|(?:(?:some|a (?:bit|little)(?: of)?) )?(?-i:[A-Z])\w+(?: and| fluently| well|,|$)",
    "start": r"(?!getting|to get|over|with|by|at the|the (?:app|program|server|computer|car))\w+ \w",
    "stop": r"(?!getting|by|at|working|to)\w+",
    "change": r"(?:jobs?|careers?|schools?|majors?|my (?:name|diet|major|job|career)|doctors?|companies)\b",
    "leave": r"(?:my (?:job|husband|wife|partner|country|church)|the (?:company|army|navy|firm|church|country|bank"
    r"|shipyard|police"
    r"|party)|home (?:at|when)|school|our|(?-i:[A-Z])\w+ (?:to|in|after|for))\b",
    "lose": r"(?:my|our) (?:\w+ ){0,2}(?:cat|collie|puppy|pet|horse|grandma|grandmother|grandfather|grandpa|son"
    r"|daughter)\b|.*\b(?:weight|job|kg|kilos?|pounds|lbs|dad|father|mother|mum|mom|wife|husband|dog|cat|hearing"
    r"|sight"
    r"|sense|leg|finger)\b",
    "break": r"(?:my (?:\w+ )?(?:wrist|arm|leg|ankle|knee|shoulder|hip|back|neck|finger|thumb|toe|foot|hand|elbow"
    r"|collarbone|ribs?"
    r"|nose|tooth|jaw)|both|two ribs|three ribs|a (?:rib|leg|toe|bone|tooth|finger)|up with|the record)\b",
    "hurt": r"my\b",
    "order": r"my (?:steak|coffee|eggs)|(?:takeaway|takeout|groceries) ",
    "help": r"(?:out|run|my|at|coach)\b",
    "root": r"for\b",
    **dict.fromkeys(("call", "phone", "visit", "chat", "check", "text", "walk", "feed", "rehearse", "clean"), _ROUTINE),
    "try": rf"not to\b|{_ROUTINE}",
    "see": r"(?:a (?:therapist|psychologist|physio)|my therapist|.* (?:every|weekly|once a|twice a))\b",
    "cut": r"(?:out|down)\b",
    "come": r"(?:from (?!the store|work)|out as|of age)",
    "work": r"(?!(?:on (?:this|that|it|an?)|out|with (?:this|that|you)|through|around|well|fine)\b).*",
    "fail": r"(?:my|the (?:bar|driving|exam)|an? exam|out of)\b",
    "hold": r"(?:an? (?:degree|phd|master|licen[cs]e|black|passport|diploma|patent|record)|two|dual)\b",
    "read": r"(?!(?:this|that|your|it|somewhere|about|online|the (?:docs|manual|error|article))\b)",
    "write": r"(?!(?:this|that|it|you|an? (?:function|script|program|query|e-?mail|essay|letter)|the (?:code|function"
    r"|script))\b)\w+",
    "follow": r"(?:a (?:\w+ )?(?:diet|plan|regime)|the (?:nba|nfl|news|\w+ diet)|(?-i:[A-Z])\w+|formula|jewish"
    r"|islam\w*)\b",
    "watch": r"(?!the (?:video|clip)\b)\w+ ?\w*",
    "listen": r"to (?!you|this|it\b|that)",
    "spend": r".*(?:\d|every|most|summers|winters|weekends|evenings|hours)",
    "save": r"(?:up|[^\d\n]*+\d.*\b(?:month|week|year|for)|every)\b",
    "pay": r"(?:[^\d\n]*+\d.*\b(?:rent|month|year|week|for my|mortgage)|child support)\b",
    "report": r"to (?:the (?:cto|ceo|cfo|coo|head|director|vp|board)|my|our|(?-i:[A-Z])\w+)\b",
    "support": r"(?:(?-i:[A-Z])\w+|my (?:mother|father|parents|family|brother|sister)|two|three)\b",
    "care": r"for (?:my|our|an?)\b",
    "park": r"(?:in|at|on|under|behind|by)\b",
    "shop": r"at\b",
    "store": r"my\b",
    "turn": r"(?:\d+|thirty|forty|fifty|sixty|eighteen|twenty\S*|vegan|down (?:a|the) (?:job|offer))\b",
    "learn": r"(?!that|about this|how (?:this|it))\w+",
    "stay": r"(?:away from|up (?:until|till|late)|sober|with my)\b",
    "deliver": r"(?:for|parcels|mail|food|newspapers|babies)\b",
    "journal": r"every|in|before",
    "design": r"(?!an? (?:function|system|class))\w+",
    "code": r"(?:in|for|mostly)\b|$",
    "box": r"(?:at|on|every|in|twice)\b",
    "observe": r"(?:ramadan|lent|shabbat|the sabbath|\w+ (?:fast|holidays))\b",
    "build": r"(?!the (?:app|project)|an? (?:function|query|app that))\w+ \w+",
    "lift": r"weights|\d|$",
    "struggle": r"with (?!this|it\b|the (?:code|question))",
    "react": r"(?:badly|to)\b",
    "skip": r"(?:breakfast|lunch|dinner|meals|gluten|.*every)",
    "translate": r"for a living",
    "play": r"(?!the (?:video|song|file)|with (?:this|it))\w+",
    "drive": r"(?:an? (?:\w+)|my \w+|trucks?|automatic|stick|electric|to work|for (?:a living|uber|lyft))\b"
    r"|.*\b(?:miles|km)\b",
    "ride": r"(?:an? |my |horses|to work|motor)",
    "sleep": r"(?!well last|badly last|on it)\w+",
    "pass": r"(?:my|the (?:bar|driving|exam|first)|an? exam)\b",
    "meet": r"(?:my (?:wife|husband|partner|girlfriend|boyfriend|best|now)|our|.* (?:every|each) )",
    "grow": r"(?:up|my own|tomatoes|\w+ (?:in|at|on)|\w+$|most of)",
    "commit": r"to\b",
    "wake": r"up (?:at|early|before|every|around)",
    "agree": r"on (?!that|this|it\b)",
    "type": r"(?:about |around |over )?\d|with\b",
    "find": r"(?!(?:a|an|the|my|out|myself|how)\b)[\w -]{3,40} (?:\w+ing|disgusting|hard|difficult|boring|gross|awful"
    r"|delicious|too \w+|impossible)\b",
    "give": r"(?:up|birth|away my|blood|(?:piano|guitar|\w+) lessons|notice)\b",
    "return": r"(?:to|from) (?-i:[A-Z])",
    "land": r"(?:a job|an? \w+ job|in (?-i:[A-Z]))",
    "place": r"(?:first|second|third|\w+th) (?:in|at)\b",
    "transfer": r"(?:to|from) (?-i:[A-Z])\w+ (?:university|college|office)",
    "trade": r"(?:stocks|crypto|options|forex|my|in my (?:car|old))\b",
    "replace": r".* (?:with|by)\b|(?:my|our)\b",
    "drop": r"out of\b",
    "cancel": r"(?:my|our|the) (?:\w+ )?(?:trip|gym|wedding|membership|holiday|vacation|lease|party|tour)\b",
    "schedule": r"(?:my|an?|our) .*\b(?:on|for)\b",
    "book": r"(?:an?|the|my|our|two|three|flights?|tickets|\d+) \w+",
    "register": r"(?:for|as)\b",
    "accept": r"(?:an?|the|my) (?:\w+ ){0,2}(?:job|offer|position|role|place|spot|proposal)\b",
    "reject": r"(?:an?|the) (?:\w+ ){0,2}(?:job|offer)\b",
    "plan": r"(?:to (?!ask|use|make|write|do|cook|have|buy|eat|cut|print)\w+|on \w+ing|my (?:wedding|retirement)"
    r"|our (?:wedding|honeymoon)"
    r"|an? (?:\w+ )?(?:party|wedding|trip|surprise|sabbatical|move))\b",
    "intend": r"to\b",
    "aim": r"(?:to|for)\b",
    "decide": r"(?!(?:it is|which|what|how|if|whether)\b)\w+",
    "attend": r"(?!(?:a|the|my) (?:meeting|call)\b)\w+",
    "name": r"(?:my|our|the|her|him)\b",
    "bear": r"\d",
    "wash": r"my (?:hair|car)",
    "stand": r"\b\B",
    "let": r"\b\B",
    "put": r"\b\B",
    "hit": r"\b\B",
    "set": r"\b\B",
    "perform": r"(?:in|at|as|with)\b",
    "finish": r"(?!this|that|it\b|the (?:task|code))\w+",
    "hate": rf"{_THIS}(?!to (?:ask|bother|say|break|admit|interrupt))",
    "like": rf"{_THIS}(?!to (?:know|hear|see|get|have you|ask|order|book|report|make|transfer|check|cancel|pay|change"
    rf"|be called \w+$))"
    r"(?!the way you|an? (?:refund|table|copy))",
    "love": rf"{_THIS}(?!to (?:know|hear|see|get|have you))",
    "enjoy": rf"{_THIS}(?!talking)",
    "prefer": rf"{_THIS}(?!the one|not to (?:say|answer))",
    "miss": rf"{_THIS}(?!the (?:bus|train|call|point|deadline))",
    "own": r"(?!up\b)",
    "sign": r"(?:up (?:for|to)|the|a|my|with)\b",
    "use": rf"{_THIS}(?!the (?:code|command|below)|an? (?:function|loop|query))\w+",
    "be": r"(?:born|raised|brought up|diagnosed|vegan|vegetarian|promoted|married|divorced|laid off|hired|fired|made"
    r"|named|elected"
    r"|accepted|admitted|adopted|allergic|(?!charged|billed|declined|asked|told|supposed|confused"
    r"|scheduled)\w+ed (?:on|last|yesterday)|an? (?!kid\b|child\b|teen|baby\b|bit|little|mistake|question|lot|while"
    r"|joke|great|good|bad"
    r"|pleasure)|in the (?:army|navy"
    r"|military|air)|the (?:youngest|oldest|first|captain|head))\b",
}
VERB_OBJECTS: dict[str, re.Pattern[str]] = {verb: folded(pattern) for verb, pattern in _TABLE.items() if pattern}

_VAGUE = folded(
    r"""(?:it(?! when\b| if\b)|this|that|these|those|them|so|one(?! (?:about|on|for|in|every)\b)|you|your|to know
    |something|anything|nothing|everything|what|how|if
    |whether|him
    |her|the (?:same|following|above|other one))\b(?! (?:is|are)\b)"""
)


def is_vague(tail: str) -> bool:
    """Whether the object is only understood from what was said before ("it", "that")."""
    return _VAGUE.match(tail) is not None


def fits(verb: str, tail: str) -> bool:
    """Whether what follows the base form ``verb`` makes a lasting, self-contained statement."""
    pattern = VERB_OBJECTS.get(verb)
    return not is_vague(tail) and (pattern is None or pattern.match(tail) is not None)
