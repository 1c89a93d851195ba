"""Requests for all that is remembered: they name no topic, so no memory is nearer to them than another.

A closed form in front of the learnt classes: a vector tells "what do you remember" from a question about one memory
only by the words that it lacks. Whatever names a topic ("what do you remember about the trip") is none of these.
"""

from __future__ import annotations

import re

READ_CHARS_MAX = 100
"""A longer request names something."""

_KEEP = r"(?:remember(?:ed)?|recall(?:ed)?|saved?|stored?|kept?|noted?|memori[sz]ed?)"
_KNOW = r"(?:remember(?:ed)?|recall(?:ed)?|know|known|learn(?:ed|t)?|saved?|stored?|kept?|noted?|memori[sz]ed?)"
_ALL = r"(?:everything|anything|something|all(?: things)?|whatever|what)"
_TAIL = (
    r"(?: (?:about|of|on|regarding) (?:me|myself|us)| me| so far| already| yet| now| still| from before| up to now"
    r"| please)*"
)
_ENGLISH = (
    r"(?:(?:so|and|ok|okay|hey|hi|hello|please|well|now|tell me|can you tell me|could you tell me) )*(?:"
    rf"(?:what|which things|how much)(?: all| exactly| else)? (?:do|did|can|have|could) you"
    rf"(?: still| already| actually| even| really)? {_KNOW}"
    rf"|(?:do|did|can|have|could) you(?: still| already| actually| even| really)?"
    rf" (?:{_KEEP} {_ALL}|{_KNOW} (?:me|{_ALL} (?:about|of|on) (?:me|myself|us)))"
    rf"|(?:tell|show|give|list)(?: me| us)? {_ALL}(?: that)? you(?: have)?(?: still| already)? {_KNOW}"
    rf"|(?:tell|show|give|list|read)(?: me| us)?(?: all)?(?: of)? (?:your|the|my) (?:stored |saved )?memor(?:y|ies)"
    rf"|{_ALL}(?: that)? you {_KNOW}"
    rf"|what(?: is| s| are| do you have)(?: all)? (?:in|on|of) (?:your|the) memor(?:y|ies)"
    r"|(?:do you know |tell me )?who (?:am i|i am)"
    rf"){_TAIL}"
)
_GERMAN = (
    r"(?:(?:und|also|hallo|hi|sag mal|sag mir) )*(?:was (?:alles )?(?:weißt|weisst) du|was du (?:weißt|weisst)"
    r"|was hast du dir|woran erinnerst du dich|an was erinnerst du dich|erinnerst du dich|wer (?:bin ich|ich bin))"
    r"(?: (?:alles|noch|so|schon|bisher|über mich|von mir|an mich|über uns|gemerkt|gespeichert|bitte))*"
)
_SPANISH = (
    r"(?:(?:y|hola|oye|dime) )*(?:(?:de )?(?:qué|que)(?: cosas)? (?:te )?(?:recuerdas|acuerdas|sabes)"
    r"|(?:quién|quien) soy(?: yo)?)(?: (?:de|sobre|acerca de) (?:mí|mi)| todavía| hasta ahora)*"
)
_FRENCH = (
    r"(?:(?:et|bonjour|salut|dis moi) )*(?:(?:que|qu est ce que tu|de quoi)(?: te)? (?:sais|souviens|rappelles)"
    r"(?: tu)?|qui suis je)(?: (?:de|sur) moi| encore| déjà)*"
)
_FORMS = re.compile("|".join(f"(?:{form})" for form in (_ENGLISH, _GERMAN, _SPANISH, _FRENCH)))
_GAPS = re.compile(r"[\W_]+")


def asks_for_all(text: str) -> bool:
    """Whether a request asks for whatever is known of the user, in one of four languages."""
    if len(text) > READ_CHARS_MAX:
        return False
    return _FORMS.fullmatch(_GAPS.sub(" ", text.lower()).strip()) is not None
