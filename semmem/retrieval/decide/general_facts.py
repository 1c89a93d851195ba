"""Questions about the world, to which no memory of a user has the answer.

A question that names nobody is not yet general: "What is the name of that uncle?" is about the user's uncle. So a
question is general only when it has one of a few unmistakable shapes, speaks of nothing that belongs to somebody's own
life, and refers to neither user nor assistant. Everything else is searched for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from semmem.text.number_words import CARDINALS, MULTIPLES

CHARS_MAX = 200
"""Longer questions bring a story of their own; they are searched for."""
READ_CHARS_MAX = 2000
"""Of a longer text so much is read, at its beginning and at its end, to see whom it speaks of."""

_FIRST_OR_SECOND_PERSON = re.compile(
    r"""
    (?<!war\ )\bi\b | \b(?:
        me | my | mine | myself | we | our | ours | ourselves | you | your | yours | u(?![.\w]) | ur
      | i'm | i've | i'd | i'll | im | ive | we're | we've | lets | let's
      | yo | mí | mi | mis | mío | mía | conmigo | nosotros | nuestr[oa]s? | tú | tu | tus | usted
      | ich | mich | mir | mein\w* | wir | uns | unser\w* | dich | dir | dein\w* | ihnen
      | je | moi | nous | notre | nos | vous | votre | vos | toi | (?:mon|ma|mes|ton|ta|tes)(?=\ \w)
      | (?<!the\ )eu | meu | minha | io | mio | mia
    )\b | \b[jm]['’](?=\w)
    | \b(?:hast|bist|kannst|weißt|warst|willst|würdest|könntest)\ du\b
    | \bdu\ (?:hast|bist|kannst|weißt|warst|mir|mich)\b
    | (?<!the\ )(?<!in\ )\bus\b(?!\ (?:state|president|constitution|dollar|army|navy))
    | [我咱俺你您私僕]
    """,
    re.VERBOSE,
)
_EARLIER_TALK = re.compile(
    r"\b(?:remind|remember|recall|forg[eo]t\w*|mention\w*|discuss\w*|talked|told|said|earlier|previous\w*|last time|"
    r"recuerd\w+|erinner\w+|rappel\w+|souvien\w+)\b|记得|上次|之前"
)
_OWN_LIFE = re.compile(
    r"""
    \b(?:
        (?:mo|fa|bro|grandmo|grandfa)ther\w* | sister\w* | mom | mum | dad | grandma | grandpa | parents? | uncles?
        | aunt\w* | cousins?
      | nephews? | nieces? | sons? | daughters? | wife | husband | spouse | partner | girlfriend | boyfriend
      | fianc\w+ | kids?
      | famil(?:y|ies) | relatives? | friends? | neighbou?rs? | roommates? | boss | manager | co-?workers? | colleagues?
      | subordinates? | clients? | customers? | teachers? | doctor | dentist | landlord | team | company
      | department | office
      | meetings? | appointments? | projects? | deadlines? | reports? | presentations? | proposals? | emails?
      | contracts? | invoices?
      | tickets? | orders? | deliver\w+ | subscription | passwords? | accounts? | contact | phone | address
      | birthdays? | weddings?
      | part(?:y|ies) | trips? | vacations? | holidays? | honeymoon | itinerary | flights? | hotels?
      | reservations? | bookings?
      | events? | activit(?:y|ies) | person | someone | somebody | people\ who | those\ who | dog | cat | pets?
      | car | house
      | home | apartment | kitchen | garden | room | class | club | school | course | gym | notes? | lists?
      | plans? | budget
      | draft | slides? | conference | workshop | hobb(?:y|ies) | job | this\ (?:week|month|morning) | yesterday
      | tonight
      | attendees? | scale | it | its | that | this | these | those | they | them | their | he | him | his | she
      | her | hers
      | here | fence | choir | memo | code | essay | association | council | committee | board
      | visit\w* | travel\w* | flying | flew | went | going | lives? | lived | moved | moving | stay\w* | bought
      | met | works?
    )\b
    """,
    re.VERBOSE,
)
"""Whoever says "the uncle" or "that trip" means one of their own."""

_LEAD_IN = re.compile(
    r"^(?:(?:hi|hello|hey|ok|okay|so|well|and|please|pls|quick question|question)\b[\s,:!.-]*"
    r"|(?:can|could|would|will) (?:you|u) (?:please )?(?=tell|translate|define|explain|calculate|convert|give|spell)"
    r"|(?:please )?(?:tell|give) me (?:please )?|do you (?:happen to )?know |i (?:want|need|would like) to know "
    r"|i'd like to know |i wonder |i (?:don't|do not) know (?=how to )|help me (?=convert|spell|translate))+"
)
_TAIL = re.compile(r"(?:[ ,]+(?:please|for me|thanks|thank you))+$")
_WHAT_X_IS = re.compile(r"^what (?!is\b)(.+) is$")
_ANYBODY = re.compile(r"^how (?:do|would|can) (?:you|i) (?=spell|convert)")
_LANGUAGE = (
    r"(?:english|spanish|french|german|italian|portuguese|dutch|russian|polish|swedish|norwegian|danish|finnish|greek"
    r"|latin|turkish|arabic|hebrew|hindi|chinese|mandarin|cantonese|japanese|korean|vietnamese|thai|irish|czech"
    r"|ukrainian)"
)
_SUPERLATIVE = (
    r"(?:largest|biggest|smallest|tallest|highest|lowest|longest|shortest|deepest|oldest|youngest|fastest|slowest"
    r"|heaviest|hottest|coldest|richest|busiest|most \w+|least \w+)"
)
_ORDINAL = r"(?:first|second|third|last|only|youngest|oldest)"
_WORLD = r"(?:world|earth|planet|universe|solar system|history|sea|ocean|periodic table|bible|body|brain|atmosphere)"
_OFFICE = (
    r"(?:president|vice president|prime minister|chancellor|king|queen|emperor|empress|pope|pharaoh|tsar|sultan"
    r"|governor"
    r"|chief justice|speaker of the house|monarch|ruler|secretary of state)"
)
_UNIT = (
    r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|inch(?:es)?|feet|foot|yards?|miles?|met(?:er"
    r"|re)s?"
    r"|(?:kilo|centi|milli)met(?:er|re)s?|km|cm|mm|ounces?|pounds?|lbs?|grams?|kilograms?|kilos?|kg|tons?|tonnes?"
    r"|stones?"
    r"|cups?|pints?|quarts?|gallons?|lit(?:er|re)s?|milliliters?|ml|tablespoons?|teaspoons?|fahrenheit|celsius|degrees?"
    r"|bits?|bytes?|kilobytes?|megabytes?|gigabytes?|cents?|dimes?|nickels?|quarters?|acres?|calories|joules)"
)
_PUBLIC_EVENT = (
    r"(?:war|battle|revolution|treaty|empire|dynasty|republic|constitution|amendment|declaration of independence"
    r"|olympics?"
    r"|olympic games|world cup|super bowl|berlin wall|renaissance|reformation|crusades?|great depression|holocaust"
    r"|black death|titanic|civil rights act|cold war|soviet union)"
)
_WHAT_IS = r"(?:what(?:'?s| is)|how much is|calculate|compute|solve|evaluate|cu[áa]nto es|wie ?viel ist|combien font)"
_MULTIPLE = "|".join(MULTIPLES)
_CARDINAL = "|".join(sorted(CARDINALS, key=len, reverse=True))  # "seventy" before "seven"
_UNIT_WORD = "|".join(word for word, value in CARDINALS.items() if 0 < value < 10)
# Atomic: "one-one-one" is one number or none; trying every reading of its hyphens would take for ever.
_NUMBER = (
    rf"(?>\$?\d[\d.,]*(?: (?:{_MULTIPLE}))?"
    rf"|(?:(?:a )?(?:{_MULTIPLE})|{_CARDINAL})(?:[- ](?:{_MULTIPLE}|{_UNIT_WORD}))*)"
)

SHAPES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "capital": r"(?:what|which)(?:'?s| is| are| was| city is)? (?:the )?(?:name of the )?(?:current )?"
        r"(?:capital|currency|population|national (?:anthem|animal|flower|flag|motto|sport|bird)"
        r"|official (?:language|name)"
        r"|largest city|area|gdp|predominant religion|prevailing religion|main religion)(?: city)?"
        r"(?: and (?:the )?largest city)? (?:of|in) .+",
        "author": r"who (?:wrote|invented|discovered|painted|composed|directed|coined|assassinated|sings?|sang|sung"
        r"|narrates?"
        r"|first discovered|first proposed|originally (?:wrote|sang|recorded)) .+",
        "cast": r"who (?:played|plays(?! (?:tennis|golf|chess|football|soccer|basketball|baseball|piano|guitar"
        r"|violin|drums|bass|games?)\b)|voiced|voices|portrayed|portrays|starred|stars|is the voice of"
        r"|does the voice of) "
        r".+ (?:in|on|of|from) .+",
        "winner": r"who (?:won|has won|wins|is winning|hosted|is hosting) .*\b(?:world cup|super ?bowls?"
        r"|world series|nba|nfl|mlb|nhl"
        r"|olympics?|wimbledon|oscars?|grammy|emmy|academy award|nobel|election|season|league|championship|idol"
        r"|voice|grand prix"
        r"|masters|open|medals?|royal rumble|stanley cup|eurovision|tour de france|war|battle)\b.*",
        "office": rf"who (?:is|was|are|were|became|has been) (?:the )?(?:current |present "
        rf"|{_SUPERLATIVE} )?(?:\w+ )?{_OFFICE}s? "
        rf"(?:of|in|during|when) .+|who (?:is|was|were|became) (?:the )?{_ORDINAL} .+ (?:to|in|on) (?:space|the moon"
        rf"|mars|history"
        r"|the (?:world|olympics|nba|nfl|mlb|north pole|south pole|supreme court|us|u\.s\.?|united states))\b.*",
        "superlative": rf"(?:what|who|which)(?:'?s| is| was| are| were)? (?:the )?(?:second |third |\d+(?:nd|rd|th) )?"
        rf"(?:name of the )?{_SUPERLATIVE} .+ (?:in|on|of) (?:the )?(?:{_WORLD}"
        r"|africa|asia|europe|(?:north |south |latin )?america|australia|antarctica|us|usa|u\.s\.?|united (?:states"
        r"|kingdom)|uk"
        r"|india|china|canada|germany|france|england|japan|russia|brazil|mexico|spain|italy)\b.*"
        rf"|(?:what|who|which|where|how)(?:'?s| is| was| are| were| many .+ are| did| do| does) .+ (?:in"
        rf"|on) the (?:human )?{_WORLD}",
        "units": rf"how many {_UNIT} (?:are |is |does |make )?(?:there )?(?:in|make|per|to|equals?|up) (?:up )?(?:a"
        rf"|an|one|the|{_NUMBER}) .+",
        "countable": r"how many (?:\w+ )?(?:countries|continents|planets|oceans|moons|bones|teeth|chromosomes"
        r"|elements|provinces"
        r"|states|u\.?s\.? states|time zones|amendments|senators|stripes|seasons|episodes) (?:are|is|were|in|of|on"
        r"|border) .+",
        "part_of": r"how many [a-z]+(?: [a-z]+)? (?:are )?(?:there )?in (?:a|an|one) [a-z]+(?: [a-z]+)?",
        "release": r"when (?:did|does|will|is) \S+ .+ (?:come out|came out|coming out|premiere|premier|air|airs)\b.*",
        "discovery": r"when (?:was|were|is|will) .+ (?:aired|released|filmed|invented|discovered|abolished|ratified"
        r"|assassinated|canonized)\b.*",
        "season": r"(?:when|what|how many|who|where) .*\b(?:season|episode|series|sequel) (?:\d+|one|two|three|four"
        r"|five|six|seven|eight"
        r"|nine|ten|finale)\b.*",
        "history": rf"(?:when|where|why|how|in what year|what year|who) (?:did|was|were|fought|won|started|ended"
        rf"|began|caused) .*\b{_PUBLIC_EVENT}\b.*",
        "independence": r"when did .+ (?:(?:gain|get|win|declare|achieve)(?: its)? independence|become a (?:state"
        r"|country|republic|colony)"
        r"|(?:join|leave) (?:the )?(?:eu|european union|un|united nations|nato|union|wto)|land on the moon)\b.*",
        "filmed": r"where (?:is|was|were|are|did they) .*\b(?:filmed|film|shot)\b.*",
        "quiz": r"(?:(?:in |on |to |from |during |by )?which (?:one )?of (?:these|the following)|(?:in|on|to|of|from"
        r"|during|by) (?:what|which)"
        r" (?:century|decade|continent|ocean|war|battle|empire|dynasty|constellation|hemisphere|galaxy"
        r"|(?:u\.?s\.?|american|european|african|asian|ancient|modern) (?:state|country|city|war|empire))|(?:what"
        r"|which) (?:u\.?s\.? |american |european |african |asian |english |roman"
        r" |greek |french |egyptian |british )(?:president|king|queen|emperor|state|country|city|river|island|god"
        r"|goddess|general|explorer"
        r"|philosopher|war|battle)|(?:what|which) (?:planet|ocean|continent|river|constellation|chemical element"
        r"|president|emperor"
        r"|pharaoh|century|dynasty|war|battle)) .+",
        "meaning": r"(?:what (?:does|do|did) (?:the (?:word|term|name|phrase|abbreviation|acronym) )?.+ (?:mean"
        r"|stand for)"
        rf"(?: in {_LANGUAGE})?|what .+ (?:means|stands for)|what(?:'?s| is) (?:the )?(?:meaning|definition|origin"
        rf"|etymology|plural"
        r"|opposite|synonym) (?:of|for|to) .+|what(?:'?s| is| are) an? (?!"
        r"(?:good|better|best|great|nice|fun|fair|healthy|quick|easy|cheap|safe|suitable|typical|usual|normal"
        r"|realistic|reasonable)\b)"
        r"[a-z]+(?: [a-z]+){0,2}|define .+|definition of .+|meaning of .+|what is meant by .+)",
        "saying": rf"how (?:do|would|can|to|does)(?: you| i| one| they)? (?:say|write|pronounce) .+ in {_LANGUAGE}",
        "translation": rf"(?:translate .+ (?:to|into|in) {_LANGUAGE}"
        rf"|what(?:'?s| is) (?:the )?(?:{_LANGUAGE} (?:word )?for .+|.+ in {_LANGUAGE}))",
        "spelling": r"(?:how (?:do|does|to)(?: you| i| one)? spell .+|how (?:is )?.+ (?:is )?spelled|spell .+"
        r"|(?:the )?(?:correct )?spelling (?:of|for) .+|what(?:'?s| is) the (?:right |correct )?spelling (?:of"
        r"|for) .+)",
        "conversion": rf"(?:convert .+ (?:to|into) .+|how (?:do|to|can)(?: you| i)? convert .+"
        rf"|how (?:much|many|long|tall) is {_NUMBER} {_UNIT} in {_UNIT}|what(?:'?s| is) {_NUMBER} {_UNIT} in {_UNIT}"
        rf"|how many {_UNIT} (?:is|are|equal|make) {_NUMBER} {_UNIT})",
        "arithmetic": rf"(?:{_WHAT_IS} )?(?:(?:the )?(?:square|cube) root of {_NUMBER}"
        rf"|{_NUMBER} ?(?:%|percent) (?:of|off) {_NUMBER}"
        rf"|{_NUMBER}(?: (?:plus|minus|times|divided by|multiplied by|to the power of|mod|más|por|mal|et) {_NUMBER})+)",
        # A date or a telephone number alone is no sum: with "-" and "/" only, somebody has to ask.
        "expression": rf"(?:(?=.*[+*×÷^(x])|{_WHAT_IS} )(?=.*\d ?[-+*/x×÷^−] ?\(?\d)"
        rf"(?:{_WHAT_IS} )?[\d .,+*/x×÷^()=−-]+",
        "spanish": r"(?:cuál es la (?:capital|moneda|población) de .+|qui[ée]n (?:escribió|inventó|descubrió|pintó) .+"
        r"|cuántos (?:días|meses|horas|minutos|segundos) (?:tiene|hay en) .+|en qué año (?:empezó|terminó|comenzó) .+)",
        "german": r"(?:"
        r"(?:was|wie) (?:ist|heißt) die (?:hauptstadt|währung) von .+|wer (?:schrieb|erfand|entdeckte|malte) .+"
        r"|wer hat .+ (?:geschrieben|erfunden|entdeckt|gemalt)|wie ?viele (?:tage|stunden|minuten|sekunden) hat .+)",
        "french": r"(?:quelle est la (?:capitale|monnaie|population) .+|qui a (?:écrit|inventé|découvert|peint) .+"
        r"|combien (?:de |d')(?:jours|mois|heures|minutes|secondes) .+)",
        "chinese": r"(?:.+的(?:首都|货币|人口|官方语言)(?:是.*|在哪.*|有多少)?"
        r"|谁(?:发明|发现|写|画|创作)了.+|.+是谁(?:发明|发现|写|画|创作)的)",
    }.items()
}


def refers_to_user(text: str) -> bool:
    """Whether the text speaks of the user, the assistant, or an earlier talk between them. In doubt, yes.

    English, Spanish, German, French, and the pronouns of Portuguese, Italian, Chinese and Japanese.
    """
    line = _normalised(text if len(text) <= 2 * READ_CHARS_MAX else f"{text[:READ_CHARS_MAX]} {text[-READ_CHARS_MAX:]}")
    return bool(_FIRST_OR_SECOND_PERSON.search(line) or _EARLIER_TALK.search(line))


def is_general_fact(text: str) -> bool:
    """Whether the text is one question about the world, in one of SHAPES."""
    if len(text) > CHARS_MAX:
        return False
    question = _normalised(text)
    shape = next((name for name, pattern in SHAPES.items() if pattern.fullmatch(question)), None)
    if shape is None:
        return False
    question = question.replace("of these ", "")  # quizzes say it without having said anything before
    if shape == "saying":  # what is to be said may be in the first person
        return not _EARLIER_TALK.search(question)
    question = _ANYBODY.sub("how to ", question)
    return not (
        _FIRST_OR_SECOND_PERSON.search(question) or _EARLIER_TALK.search(question) or _OWN_LIFE.search(question)
    )


def _normalised(text: str) -> str:
    line = " ".join(text.casefold().replace("’", "'").split()).strip(' ?!.¿¡。？！"')
    line = _TAIL.sub("", _LEAD_IN.sub("", line))
    return _WHAT_X_IS.sub(r"what is \1", line)
