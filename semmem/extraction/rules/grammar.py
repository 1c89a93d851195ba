"""English enough to turn a first-person clause into a third-person one: contractions, pronouns, verb agreement."""

from __future__ import annotations

import re
from collections.abc import Iterable

from semmem.extraction.rules import lexicon
from semmem.text.verbs import IRREGULAR_VERBS

_NOT = {
    "don": "do", "doesn": "does", "didn": "did", "won": "will", "isn": "is", "aren": "are", "wasn": "was",
    "weren": "were", "haven": "have", "hasn": "has", "hadn": "had", "couldn": "could", "wouldn": "would",
    "shouldn": "should", "mustn": "must", "needn": "need",
}  # fmt: skip
_ENDINGS = {"m": "am", "ve": "have", "ll": "will", "d": "would", "re": "are"}
_IS = ("there", "here", "it", "he", "she", "that", "what", "who")


def _written_out_forms() -> dict[str, str]:
    forms = {"can't": "cannot", "cant": "cannot", "im": "I am", "ive": "I have"}
    forms |= {stem + "'t": f"{verb} not" for stem, verb in _NOT.items()}
    forms |= {stem + "t": f"{verb} not" for stem, verb in _NOT.items() if stem != "won"}
    forms |= {
        f"{who}'{end}": f"{'I' if who == 'i' else who} {verb}"
        for who in ("i", "we", "they", "you", "he", "she")
        for end, verb in _ENDINGS.items()
    }
    return forms | {f"{who}'s": f"{who} is" for who in _IS}


_WRITTEN_OUT = _written_out_forms()
_WORD = re.compile(r"[A-Za-z']+")
_HAVE_GOT = re.compile(r"\b(I|we) have got\b", re.IGNORECASE)
_ITS = re.compile(r"\bits(?= (?:for|my|our|an?|not|about)\b)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def expand(text: str) -> str:
    """The text with contractions written out ("I'm" -> "I am", "dont" -> "do not") and white space made single."""
    plain = _SPACE.sub(" ", text.replace("’", "'").replace("‘", "'").replace("ʼ", "'")).strip()
    return _HAVE_GOT.sub(r"\1 have", _ITS.sub("it is", _WORD.sub(_written_out, plain).replace("can not ", "cannot ")))


def _written_out(match: re.Match[str]) -> str:
    found = match[0]
    full = _WRITTEN_OUT.get(found.lower())
    if full is None:
        return found
    return full[0].upper() + full[1:] if found[0].isupper() else full


# --- inflection ------------------------------------------------------------------------------------------------------


def third_singular(verb: str) -> str:
    """ "carry" -> "carries", "do" -> "does". Lower case in and out."""
    special = {"am": "is", "are": "is", "were": "was", "have": "has"}
    if verb in special:
        return special[verb]
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def past_forms(verb: str) -> tuple[str, str]:
    """Past and participle of a base form."""
    if verb in IRREGULAR_VERBS:
        return IRREGULAR_VERBS[verb]
    if verb.endswith("e"):
        form = verb + "d"
    elif verb.endswith("y") and verb[-2:-1] not in "aeiou":
        form = verb[:-1] + "ied"
    else:
        form = (verb + verb[-1] if verb in lexicon.DOUBLING else verb) + "ed"
    return form, form


def gerund(verb: str) -> str:
    """ "live" -> "living", "plan" -> "planning"."""
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) and verb != "be":
        return verb[:-1] + "ing"
    return (verb + verb[-1] if verb in lexicon.DOUBLING else verb) + "ing"


def _pasts(verbs: Iterable[str]) -> dict[str, str]:
    return {form: verb for verb in verbs for form in past_forms(verb)}


PAST_TO_BASE = _pasts(lexicon.EVENT_VERBS | lexicon.STATE_VERBS | frozenset(IRREGULAR_VERBS)) | {
    "travelled": "travel", "enrolled": "enroll", "got": "get", "were": "be", "cancelled": "cancel",
}  # fmt: skip
GERUND_TO_BASE = {gerund(verb): verb for verb in lexicon.DOING_VERBS} | {"travelling": "travel"}
_PAST_ONLY = frozenset(PAST_TO_BASE) - lexicon.SAME_PAST - {"come", "become", "run"}


def is_past(word: str) -> bool:
    """Whether this word, right after "I", is a past tense."""
    if word in _PAST_ONLY:
        return True
    return word.endswith("ed") and word not in lexicon.NOT_PAST_ED


def is_adverb(word: str) -> bool:
    if word in lexicon.ADVERBS:
        return True
    return len(word) > 4 and word.endswith("ly") and word not in lexicon.NOT_ADVERBS_LY


def _agree(verb: str) -> str:
    """The verb of "I" as the verb of "User"; lower case in, case of other words is never changed."""
    word = verb.lower()
    if word in lexicon.MODALS or word in {"was", "had", "did", "used", "is", "has", "does"} or is_past(word):
        return verb
    return third_singular(word)


# --- person ----------------------------------------------------------------------------------------------------------


class _Clause:
    """Rewrites one clause word by word; remembers who the subject is and whether its verb was inflected."""

    def __init__(self, text: str, *, listing: bool) -> None:
        self.parts = [_split(word) for word in text.split()]
        self.subject = ""
        self.inflecting = False
        self.listing = listing

    def render(self) -> str:
        index = 0
        while index < len(self.parts):
            self._visit(index)
            index += 1
        return " ".join(before + core + after for before, core, after in self.parts if before or core or after)

    def word(self, index: int) -> str:
        return self.parts[index][1].lower() if 0 <= index < len(self.parts) else ""

    def put(self, index: int, core: str) -> None:
        before, _, after = self.parts[index]
        self.parts[index] = (before, core, after)

    def _visit(self, index: int) -> None:
        word = self.word(index)
        if word == "i":
            self.subject = "User"
            self.put(index, "User")
            self._agree_after(index + 1)
        elif word == "we":
            self.subject = "User and others"
            self.put(index, self.subject)
        elif word in _POSSESSIVE:
            self.put(index, "their" if self.subject else "User's")
        elif word in _OBJECT and self.parts[index][1] != "US":
            self.put(index, _OBJECT[word] if not self.subject else _OBJECT_AFTER_SUBJECT[word])
        elif word == "to":
            self.inflecting = False
        elif word in {"and", "but", "or", "then"} and self.inflecting:
            self._agree_coordinated(index + 1)
        if self.inflecting and "," in self.parts[index][2]:
            self._agree_coordinated(index + 1)

    def _agree_after(self, index: int) -> None:
        while is_adverb(self.word(index)) and not self._is_last(index):
            index += 1
        verb = self.word(index)
        if not verb.isalpha():
            return
        self.put(index, _agree(self.parts[index][1]))
        self.inflecting = verb not in lexicon.MODALS and self.word(index) != verb and verb != "do"
        if verb == "do" and self.word(index + 1) != "not":
            self.inflecting = True

    def _agree_coordinated(self, index: int) -> None:
        while is_adverb(self.word(index)) and not self._is_last(index):
            index += 1
        verb = self.word(index)
        known = verb in lexicon.STATE_VERBS or (self.listing and verb.isalpha() and verb not in _NOT_VERBS)
        if known and (self.word(index + 1) in _AFTER_VERB or (self.listing and self._is_last(index))):
            self.put(index, third_singular(verb))

    def _is_last(self, index: int) -> bool:
        return index >= len(self.parts) - 1


_POSSESSIVE = frozenset({"my", "our"})
_OBJECT = {"me": "User", "us": "User and others", "mine": "User's", "ours": "User's", "myself": "User",
           "ourselves": "User and others"}  # fmt: skip
_OBJECT_AFTER_SUBJECT = {"me": "them", "us": "them", "mine": "theirs", "ours": "theirs", "myself": "themselves",
                         "ourselves": "themselves"}  # fmt: skip
_NOT_VERBS = frozenset(
    """i we and or but then the a an my our in on at for to of with from until by followed after before all two three it
    them""".split()
)
_AFTER_VERB = frozenset(
    """a an the my our in at on for to with as from about it him her them this that every no only two three part until
    everything both all their your""".split()
)
_PUNCTUATION = ".,;:!?()[]{}\"'…-–—*_~"
_AND_I = re.compile(r"^(my|our) ((?:\S+ ){1,3})and I\b", re.IGNORECASE)


def _split(word: str) -> tuple[str, str, str]:
    """A word without the punctuation around it: before, core, after."""
    core = word.strip(_PUNCTUATION)
    before, _, after = word.partition(core) if core else (word, "", "")
    return before, core, after


def third_person(clause: str, *, listing: bool = False, capital: bool = True) -> str:
    """An expanded first-person clause, said about "User". The user's own words are kept otherwise.

    "I do not like my job" -> "User does not like their job"; "My sister visits me" -> "User's sister visits User".
    ``listing``: a list of steps, whose later verbs agree too ("I wash it, dry it" -> "User washes it, dries it").
    """
    both = _AND_I.match(clause)
    if both:
        clause = f"User and their {both[2].strip()}{clause[both.end() :]}"
    text = _Clause(clause, listing=listing).render().strip(" ,;:.!?…-–—")
    return text[:1].upper() + text[1:] if capital else text
