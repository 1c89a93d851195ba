"""What the words of a request alone say: that it is a courtesy, that it asks for all that is remembered, and whether
it is worth looking for memories before it is answered.

A wrong skip loses a memory the user expected; a needless search costs some milliseconds and finds little. So every
rule fires only when it is sure, and the last row is: search."""

import json
import re
from pathlib import Path

from semmem.memory import Conversation, Role
from semmem.retrieval.decide.request_words import speaks_of_user
from semmem.text.digest import Remembered
from semmem.text.words import words

SEARCH = "search"


def decide(conversation: Conversation, *, fact: bool | None = None, tool: bool | None = None) -> str:
    """``greeting``, ``general_fact``, ``tool_turn``, or SEARCH. ``fact`` and ``tool`` are the verdicts of an earlier
    filter (a question of general knowledge; a tool will answer). They replace semmem's own judgement, except that a
    question about the user is searched for whatever was said."""
    said = (message.text for message in reversed(conversation.messages) if message.role is Role.USER)
    text = next(said, "")
    if is_social(text):
        return "greeting"
    if fact and not speaks_of_user(text):  # it may take the user's own budget for general knowledge
        return "general_fact"
    return "tool_turn" if (conversation.tool_turn if tool is None else tool) else SEARCH


# --- courtesies ------------------------------------------------------------------------------------------------------

# Nothing but greeting, thanks, goodbye, or a bare yes or no: no word beyond a closed list of courtesies and the small
# words around them, and at least one courtesy of its own. One other word ("Hi, what's my budget?") makes it an ordinary
# message.
GREETING_CHARS_MAX = 120
"""Longer messages say more than hello."""

_LISTS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_COURTESIES, _SMALL_WORDS = (frozenset(words(" ".join(_LISTS[name]))) for name in ("courtesies", "small_words"))
_PHRASES = re.compile(
    r"""
    ¿?\b(?:
        (?:hope\ )?how(?:'?s|\ is|\ are|\ r|\ have|\ has|\ do|\ goes|'ve|'re|'d)?\ ?
            (?:you|ya|u|it|things|everything|life|(?:the|your)\ (?:day|night|week|weekend|morning|evening|life))?
            (?:\ (?:been|going|doing|doin|hanging|holding\ up|feeling|feel|treating|you|ya|do|with|lately|all|goes))*
            (?=[\ ,.!?]*(?:$|[,.!?]|today|tonight|right\ now|this))
      | what(?:'?s|\ is)\ (?:up|new|happening|going\ on|good|cooking|shaking)(?:\ with\ you)?
      | are\ (?:you|ya)\ (?:doing\ |feeling\ )?(?:ok|okay|well|good|alright|there|awake|around)
      | (?:need|have|got|gotta|must|better|want)(?:\ to)?\ (?:go|run|leave|(?:get|be)\ going|head\ out)
      | until\ (?:next\ time|tomorrow|then|later) | take\ (?:care|it\ easy)
      | (?:see|catch|meet|meeting|talk\ (?:to|with)|chat\ with)\ (?:you|ya|u)
      | of\ course | \A(?:morning|evening|afternoon)
      | i'?(?:m|\ am)\ (?:out|off|leaving)(?:\ of\ here)?
      | you'?(?:re|\ are)\ the\ best | (?:big|great|huge|real)\ help | owe\ you(?:\ one)?
      | (?:glad|happy)\ (?:that\ )?you | i'?(?:ll|\ will)\ pass
      | not\ (?:really|sure|at\ all) | makes\ sense | sounds\ good | what\ you(?:\ just)?\ (?:said|did)
      | (?:don't|dont|do\ not|can't|cannot|couldn't)\ (?:know|say|tell)
      | qu[ée]\ tal | c[óo]mo\ (?:est[áa]s|est[áa]|va|te\ va) | wie\ geht(?:'s|\ es)?(?:\ dir|\ ihnen)?
      | d'accord | (?:comment\ )?ça\ va | comment\ (?:allez|vas)[\ -](?:vous|tu)
    )(?![\w'])\ ?\?*
    """,
    re.VERBOSE,
)
_QUESTION = re.compile(
    r"\?|(?:^|[,.!;]\s*)(?:is|are|am|was|were|do|does|did|have|has|had|will|would|should|can|could)\s"
    r"(?:i|you|we|my|your|that|this|there|the|it)\b"
)
_CHINESE = re.compile(
    r"(?:你好|您好|大家好|哈喽|嗨|嘿|早安|早上好|上午好|下午好|晚上好|晚安|在吗|最近好|谢谢|多谢|感谢|辛苦|不客气|再见|拜拜|回头见"
    r"|明天见|是的|对的|好的|好|对|行|可以|没问题|不|是|要|用|没有|没事|嗯|早|非常|你的帮助|你的帮忙|你|您|们|吗|呀|啊|了|呢"
    r"|[\s,.!，。！、～~])+[?？]?"
)
_SAYS_SOMETHING = re.compile(r"[\w?？]")
_OTHER = re.compile(r"[\d@#$%&*/\\+=<>|{}\[\]^_]")
_DRAWN_OUT = re.compile(r"(\w)\1{2,}")


def is_social(text: str) -> bool:
    """Whether the message holds courtesies only. English, and the basics of Spanish, German, French and Chinese."""
    return len(text) <= GREETING_CHARS_MAX and _holds_courtesies(text)


def _courtesies_alone(text: str) -> bool:
    line = _DRAWN_OUT.sub(r"\1", text.casefold().replace("’", "'").strip())
    if not _SAYS_SOMETHING.search(line):  # a thumb, a smile; nothing to search for
        return bool(line)
    if _CHINESE.fullmatch(line):
        return True
    rest, phrases = _PHRASES.subn(" ", line)
    if _OTHER.search(rest) or _QUESTION.search(rest.lstrip(" ?!.,")):
        return False
    said = words(rest)
    courtesy = phrases > 0 or not _COURTESIES.isdisjoint(said)
    return courtesy and all(word in _COURTESIES or word in _SMALL_WORDS for word in said)


_holds_courtesies = Remembered(_courtesies_alone)


# --- all that is remembered ------------------------------------------------------------------------------------------

# A closed form in front of the learnt classes: these name no topic, so no memory is nearer to them than another, and a
# vector tells "what do you remember" from a question about one memory only by the words that it lacks. Whatever names a
# topic ("what do you remember about the trip") is none of these.
OPEN_CHARS_MAX = 100
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
    if len(text) > OPEN_CHARS_MAX:
        return False
    return _FORMS.fullmatch(_GAPS.sub(" ", text.lower()).strip()) is not None
