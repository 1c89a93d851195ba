"""From a conversation to the text that memories are searched with.

A question that stands on its own is searched as it is. "How much?" means nothing without what came before; with the
key terms of the messages before it, its similarity to the right memory rises from noise to certainty."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from semmem.memory import Conversation, Role
from semmem.retrieval.decide.signals import asks_for_all, is_social
from semmem.text import stop_words
from semmem.text.words import words, written_words

EARLIER_MESSAGES_MAX = 3
"""How many user messages before the last one lend their key terms."""
LOOKED_BACK_MAX = 50
"""How far back those are looked for: a request may hold half a million thanks."""
KEY_TERMS_MAX = 12
_TERM_CHARS_MAX = 40
_READ_CHARS_MAX = 2000
_VAGUE_WORDS_MAX = 8
_GAP = " … "

_LIGHT = frozenset(
    """
    actually after again all also anyone anything ask because before else ever get give go going got having hello
    help hi know let like look make many mean more most much must need now off ok okay one ones only other others
    out over please really same say see show something still such sure take tell thank thanks thing things think try
    two up use want way well yes yet
    """.split()
)
"""English words that are more than grammar and still name nothing: a question made of them is understood from what
came before. To the ranking they are words like any other."""
_NAMING_NOTHING = _LIGHT.union(stop_words.ENGLISH, stop_words.SPANISH, stop_words.GERMAN, stop_words.FRENCH)
_CONTINUES = re.compile(
    r"^(?:and|or|but|then|what about|how about|what else|what if|y|o|pero|und|oder|aber|et|ou|mais)\b"
    r"|^(?:那么?|还有|另外)|呢[？?]?$"
)
_REFERS_BACK = re.compile(
    r"\b(?:it|its|that|this|those|these|they|them|their|he|she|him|her|his|there|then|one|ones|other|others|another|same"
    r"|former|latter|so|ese|esa|eso|otro|otra|él|ella|das|dies\w*|jene\w*|andere\w*|er|sie"
    r"|ça|cela|celui|celle|autres?|il|elle|lui)\b"
    r"|[它他她这那]"
)
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|she|him|her|his|ones?|él|ella|lo|la|ihn|ihm|sie|elle|ils)\b")
_BARE_WORDS_MAX = 3
_BARE = re.compile(
    r"^(?:in |for |to |at |by |until |since |from |and )?(?:which|what|who|whom|whose|how|when|where|too"
    r"|wie|welche[rsmn]?|wer|quién|qué|cuál|cómo|quel(?:le)?s?|qui|comment)\b(?!['’]| (?:is|are|does|do|causes)\b)"
)
"""The beginning of a question that may be all there is of it: "Which seat?", "How often?", "What helped?"."""
_PAST_BARE = re.compile(r"^(?:what|which|who|where) (?:was|were)\b")
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|my|mine|me|we|our|us|ich|mein\w*|mir|mich|unser\w*|yo|mi|mis|nuestr\w+|je|mon|ma|mes|notre|nos)\b"
)
_CHINESE_VAGUE = re.compile(r"^(?:多少钱?|为什么|什么时候|在?哪里?|谁|怎么样?|几个?|哪个|什么)[？?。]?$")


def build_query(conversation: Conversation, *, chars_max: int = 2000) -> str:
    """The last user message, at most ``chars_max`` characters of it; key terms of earlier ones when it is vague, and
    does not ask for all that is remembered. Of a message that is too long its beginning and its end are kept: that is
    where people put the question. Empty when the user has said nothing in words."""
    newest_first = (message.text for message in reversed(conversation.messages) if message.role is Role.USER)
    last = _head_and_tail(next(newest_first, "").strip(), max(chars_max, _READ_CHARS_MAX))
    if is_vague(last) and not asks_for_all(last):
        last = " ".join([last, *_key_terms(last, islice(newest_first, LOOKED_BACK_MAX))]).strip()
    return _head_and_tail(last, chars_max)


def is_vague(text: str) -> bool:
    """Whether a message needs the ones before it: it is short, and asks of nothing by name or points back."""
    line = text[:_READ_CHARS_MAX].casefold().strip(" ¿¡")
    if _CHINESE_VAGUE.match(line) or (len(line) <= _VAGUE_WORDS_MAX and _CONTINUES.search(line)):
        return True  # in Chinese a word is a character or two
    said = written_words(line)
    if len(said) > _VAGUE_WORDS_MAX:
        return False
    named = [word for word in said if _names_something(word)]
    if len(named) == 1:
        return bool(_REFERS_BACK.search(line) or _CONTINUES.search(line)) or _is_bare(text, line, said, named[0])
    if len(named) == 2 and not _FIRST_PERSON.search(line):
        return bool(_PRONOUN.search(line) or _CONTINUES.search(line))
    return not named


def _names_something(word: str) -> bool:
    """Whether a folded word as it stands, or any part of it ("l'hôtel"), is more than a word of grammar."""
    if word.isalnum():
        return word not in _NAMING_NOTHING
    return any(len(part) > 1 and part not in _NAMING_NOTHING for part in words(word))


def _is_bare(text: str, line: str, said: Sequence[str], name: str) -> bool:
    """Whether a short question asks for a property without saying whose: "Which seat?", not "Who is Emma?"."""
    if _FIRST_PERSON.search(line) or name.title() in text[1:]:
        return False
    return (len(said) <= _BARE_WORDS_MAX and bool(_BARE.search(line))) or bool(_PAST_BARE.search(line))


def key_words(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, in small letters."""
    said = (word.casefold().replace("’", "'") for word in written_words(text) if len(word) <= _TERM_CHARS_MAX)
    return frozenset(word for word in said if _names_something(word))


def _key_terms(last: str, earlier: Iterable[str]) -> list[str]:
    """Words that carry meaning, newest message first, each once, none that the last message has. Thanks and greetings
    use up none of the few places."""
    seen = {word.casefold() for word in written_words(last)}
    terms: list[str] = []
    telling = (text for text in earlier if text and not text.isspace() and not is_social(text))
    for text in islice(telling, EARLIER_MESSAGES_MAX):
        for term in written_words(_head_and_tail(text, _READ_CHARS_MAX)):
            key = term.casefold().replace("’", "'")
            if key in seen or len(term) > _TERM_CHARS_MAX or not _names_something(key):
                continue
            seen.add(key)
            terms.append(term)
            if len(terms) == KEY_TERMS_MAX:
                return terms
    return terms


def _head_and_tail(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    room = chars_max - len(_GAP)
    if room < 2:
        return text[:chars_max]
    head = room - room // 2
    return text[:head] + _GAP + text[-(room // 2) :]
