"""How a passage becomes the content of a memory: a plain English statement in the third person, all else as written.

Only what can be said of "User" word by word is: one short clause that begins with I or my, speaks of nobody else whom
only the words around it name, and joins nothing. Everything less plain stays as it is, in quotation marks.
"""

from __future__ import annotations

import re

from semmem.text.quoting import quoted
from semmem.text.verbs import IRREGULAR_VERBS, SAME_FORM

WORDS_MAX = 14

_NOT = {"don": "do", "doesn": "does", "didn": "did", "won": "will", "isn": "is", "aren": "are", "wasn": "was",
        "weren": "were", "haven": "have", "hasn": "has", "hadn": "had", "couldn": "could", "wouldn": "would",
        "shouldn": "should", "mustn": "must"}  # fmt: skip
_WRITTEN_OUT = {"can't": "cannot", "cant": "cannot", "i'm": "I am", "im": "I am", "i've": "I have", "ive": "I have",
                "i'll": "I will"}  # fmt: skip
_WRITTEN_OUT |= {f"{stem}{end}": f"{verb} not" for stem, verb in _NOT.items() for end in ("'t", "t")}
_WRITTEN_OUT.pop("wont")
_WORD = re.compile(r"[\w']+")

_PLAIN = re.compile(r"(?:I|my) (?:[\w' %$€£+./-]|(?<=\d),(?=\d))+", re.IGNORECASE)
_ENGLISH = frozenset("am is are was were have has had do not an the in to of for with my from by at on a like".split())
"""One of them is in nearly every English statement; "my" alone may be Afrikaans."""
_UNPLAIN = re.compile(
    r"\b(?:i|you|your|he|him|his|she|her|it|its|they|them|their|this|that|these|those|here|there|we|us|our|who|which"
    r"|and|or|but|so|because|when|while|if)\b|'d\b",
    re.IGNORECASE,
)
_MODALS = frozenset("can could will would shall should may might must cannot".split())
_ADVERBS = frozenset("no longer never not always also just still often usually now already really only".split())
_PAST = (
    {form for forms in IRREGULAR_VERBS.values() for form in forms} | {"was", "had", "did"}
) - IRREGULAR_VERBS.keys()
_OTHER_PERSON = {"am": "is", "are": "is", "have": "has"}


def phrased(passage: str) -> str:
    """ "I'm allergic to nuts." as "User is allergic to nuts"; whatever is less plain in quotation marks."""
    return third_person(passage) or quoted(passage)


def third_person(passage: str) -> str | None:
    """A plain statement about "User", without the full stop; None when the passage is none."""
    statement = written_out(passage).rstrip(" .!")
    words = statement.split()
    if not _PLAIN.fullmatch(statement) or len(words) > WORDS_MAX or _UNPLAIN.search(" ".join(words[1:])):
        return None
    if words[0].lower() == "i":
        return _of_user(words[1:])
    if _ENGLISH.isdisjoint(word.lower() for word in words):
        return None
    return " ".join(["User's", *_mine(words[1:], "User's", "User")])


def written_out(text: str) -> str:
    """The text with contractions written out: "I'm" as "I am", "dont" as "do not"."""
    return _WORD.sub(_written_out, text.replace("’", "'"))


def _written_out(match: re.Match[str]) -> str:
    return _WRITTEN_OUT.get(match[0].lower(), match[0])


def _of_user(words: list[str]) -> str | None:
    """What comes after "I", said of "User"; None where the verb does not tell which tense it is in."""
    place = next((place for place, word in enumerate(words) if not _is_adverb(word.lower())), len(words) - 1)
    verb = words[place].lower()
    if not verb.isalpha() or verb.endswith("i") or verb in SAME_FORM:  # "I miei figli" is Italian
        return None
    same = verb in _MODALS | _PAST or (verb.endswith("ed") and verb != "need")
    agreed = words[place] if same else third_singular(verb)
    return " ".join(["User", *words[:place], agreed, *_mine(words[place + 1 :], "their", "them")])


def _is_adverb(word: str) -> bool:
    return word in _ADVERBS or (word.endswith("ly") and len(word) > len("apply"))


def _mine(words: list[str], my: str, me: str) -> list[str]:
    said = {"my": my, "me": me, "mine": f"{me}'s" if me == "User" else "theirs", "myself": me}
    return [said.get(word.lower(), word) for word in words]


def third_singular(verb: str) -> str:
    """ "carry" -> "carries", "do" -> "does". Lower case in and out."""
    if verb in _OTHER_PERSON:
        return _OTHER_PERSON[verb]
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
