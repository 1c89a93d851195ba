"""A statement about the user as memories have it: its words, and the time of what it tells.

Models call the user by name, by "the user", by "I" or by nothing at all, in whatever language they please. English
statements begin with "User" or with whom they are about; where that cannot be had without guessing, and in every other
language, the user's own sentence says it, within quotes: it is never half translated, and never another's.

When what a fact tells of happened, or will, is read from its own words, as of the day they were said. "in May" may be
the last one or the next, and only the verb tells: "moved in May" is past, "leaves in May" is to come, "gets hay fever
in May" is no event at all. What comes every year has no date either."""

import json
import re
from collections.abc import Collection
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from semmem.text import stop_words
from semmem.text.grounding import content_words, numbers
from semmem.text.quoting import is_quoted, quoted, unquoted
from semmem.text.stems import IRREGULAR_VERBS, SAME_FORM
from semmem.text.times import Interval, Towards, intervals, leaning
from semmem.text.words import words

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
_IN_ENGLISH = frozenset(
    "am is are was were have has had do not an the in to of for with my from by at on a like".split()
)
"""One of them is in nearly every English statement; "my" alone may be Afrikaans."""
_UNPLAIN = re.compile(
    r"\b(?:i|you|your|he|him|his|she|her|it|its|they|them|their|this|that|these|those|here|there|we|us|our|who|which"
    r"|and|or|but|so|because|when|while|if)\b|'d\b",
    re.IGNORECASE,
)
_MODALS = frozenset("can could will would shall should may might must cannot".split())
_ADVERBS = frozenset("no longer never not always also just still often usually now already really only".split())
_IRREGULAR = frozenset(form for forms in IRREGULAR_VERBS.values() for form in forms)
_PAST = (_IRREGULAR | {"was", "had", "did"}) - IRREGULAR_VERBS.keys()
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
    if _IN_ENGLISH.isdisjoint(word.lower() for word in words):
        return None
    return " ".join(["User's", *_mine(words[1:], "User's", "User")])


def written_out(text: str) -> str:
    """The text with contractions written out: "I'm" as "I am", "dont" as "do not"."""
    return _WORD.sub(lambda match: _WRITTEN_OUT.get(match[0].lower(), match[0]), text.replace("’", "'"))


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


SENTENCE_CHARS = range(3, 199)
"""Of a sentence that is quoted, without its quotes."""
SHARE_MIN = 0.5
"""Of an English statement's content words, so many are in the sentence that says the same."""

_OF = "'s"
_BULLET = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")
_USER = re.compile(r"^(?:the )?user(?P<of>['’]s)?(?:\s?:)?(?=[\s,])", re.IGNORECASE)
_FIRST = re.compile(r"^(?:I|I['’](?:m|ve|d|ll)|[Mm]y|[Ww]e|WE|[Oo]ur|We['’](?:re|ve|ll))\s")
_SECOND = re.compile(
    r"\b(?:(?P<of>your)|(?P<are>you(?:['’]re| are))|(?P<have>you['’]ve)|(?P<you>you))\b", re.IGNORECASE
)
_ADDRESSED = re.compile(r"^(?:you|your|you['’](?:re|ve))\s", re.IGNORECASE)
_POINTS = re.compile(
    r"^(?:(?:he|she|they|it|his|her|their|its|this|that|these|those|er|sie|es|sein|seine|ihre?|das|dies|él|ella|ellos"
    r"|ellas|eso|esto|il|elle|ils|elles|cela|ça|ele|ela|eles|elas|isso|isto)\b|[他她它]|彼女?|これ|それ)",
    re.IGNORECASE,
)
"""What a sentence begins with that speaks of whom or what the one before it named."""
_NAMED = re.compile(r"^(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?P<of>['’]s)?(?= [a-z])")
_INTRODUCED = re.compile(
    r"\b(?:[Ii]['’]m|[Ii] am|[Mm]y name(?: is|['’]s)|[Cc]all me) ([A-Z][\w-]+)(?= ?(?:[.,;!\n]|and I\b|from\b|\Z))"
    r"|(?:\A|[.,!] )([A-Z][\w-]+) here\b"
    r"|\n[—– -]{0,3}([A-Z][\w-]+)\s?\Z"
)
""""I'm Priya," "Priya here", and a name below a letter."""
_I_AM = re.compile(r"\b[Ii] am ([a-z][\w-]*)")
_MACHINE = re.compile(r"^(?:the )?(?:assistant|ai|chatbot|language model|model|chatgpt)\b(?!['’]s)", re.IGNORECASE)
_CLAUSE = re.compile(r"(?<=[,;:，；、])\s*")

_MACHINES = frozenset({"assistant", "ai", "model", "chatbot", "bot", "machine", "system"})
_USERS = frozenset({"", "user", "the user", "me", "i", "self", "myself"})
_GRAMMAR = stop_words.GERMAN | stop_words.SPANISH | stop_words.FRENCH
_ENGLISH = (
    stop_words.ENGLISH - _GRAMMAR - {"a", "am", "as", "do", "had", "he", "in", "is", "me", "no", "so", "was", "we"}
)
_OTHERS = tuple(listed - stop_words.ENGLISH for listed in (stop_words.GERMAN, stop_words.SPANISH, stop_words.FRENCH))
"""Words of grammar that English and its neighbours do not share."""


class ShownTexts:
    """What a model was shown, of the user's and of ``answers``: where it has the user's name from."""

    def __init__(self, texts: Collection[str], answers: Collection[str] = ()) -> None:
        self._texts = tuple(texts)
        self._answers = tuple(answers)

    @cached_property
    def _introduced(self) -> frozenset[str]:
        """The names by which the user called themselves, in lower case."""
        groups = (found for text in self._texts for found in _INTRODUCED.findall(text))
        return frozenset(name.casefold() for found in groups for name in found if name)

    @cached_property
    def _said(self) -> frozenset[str]:
        """Every word of the user's, in lower case."""
        return frozenset(word for text in self._texts for word in words(text, chars_max=None))

    @cached_property
    def _answered(self) -> frozenset[str]:
        return frozenset(word for text in self._answers for word in words(text, chars_max=None))

    def is_the_user(self, name: str, subject: str) -> bool:
        """Whether a name that begins a statement is the user's own: they gave it, or they spoke of nobody of that name
        and were called so in an answer, or by the model that was asked."""
        first = name.partition(" ")[0].casefold()
        if first in self._introduced:
            return True
        return self._said.isdisjoint(words(name)) and (first in self._answered or subject.startswith(first))


class TurnText:
    """The user's text of one turn, in which a statement's own words are looked up."""

    def __init__(self, text: str, every: ShownTexts) -> None:
        self._text = text
        self._every = every

    def phrased(self, statement: str, subject: str = "") -> str | None:
        """The statement as a memory's content; None when it is about the machine that answered. ``subject`` is whom the
        model says it is about, empty where it does not say."""
        about = subject.strip().casefold()
        content = _BULLET.sub("", " ".join(statement.split()))
        if is_quoted(content):
            if unquoted(content).casefold() in " ".join(self._text.split()).casefold():
                return content  # the user's own words, as they are
            content = unquoted(content)
        if about in _MACHINES or (_MACHINE.match(content) and not _MACHINE.match(self._text)):
            return None
        if not self._is_english:
            return self._own_sentence(content, foreign=True) or content
        if match := _USER.match(content):
            return f"User{_OF if match['of'] else ''}{content[match.end() :]}"
        if _FIRST.match(content):
            return third_person(content) or self._own_sentence(content, foreign=False) or content
        if _ADDRESSED.match(content):
            first = _SECOND.sub(_as_first, content)
            return third_person(first[:1].upper() + first[1:]) or self._own_sentence(content, foreign=False) or content
        if _POINTS.match(content):
            return self._own_sentence(content, foreign=False) or content
        return self._with_a_subject(content, about)

    def _with_a_subject(self, content: str, subject: str) -> str:
        """A statement that begins with the user's name, or with a verb of which the user is the subject."""
        match = _NAMED.match(content)
        if match and "user" not in content.casefold() and self._every.is_the_user(match["name"], subject):
            return f"User{_OF if match['of'] else ''}{content[match.end() :]}"
        first, _, rest = content.partition(" ")
        if subject in _USERS and rest and (verb := self._said_of_oneself(first)) is not None:
            return f"User {verb}{first[:1].lower()}{first[1:]} {rest}"
        return content

    def _said_of_oneself(self, first: str) -> str | None:
        """What is missing before a statement's first word: nothing before "Likes" of somebody who said "I like", "is "
        before "Allergic" of somebody who is; None where the user said neither."""
        word = first.casefold()
        if word in self._after_i:
            return "is "
        bases = {word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y"} - {word}
        return "" if bases & self._verbs or (word, "have") in {("has", base) for base in self._verbs} else None

    @cached_property
    def _expanded(self) -> str:
        return written_out(self._text)

    @cached_property
    def _verbs(self) -> frozenset[str]:
        """The words behind "I"."""
        said = words(self._expanded, chars_max=None)
        return frozenset(after for word, after in pairwise(said) if word == "i")

    @cached_property
    def _after_i(self) -> frozenset[str]:
        """The words behind "I am" that are no names."""
        return frozenset(_I_AM.findall(self._expanded))

    @cached_property
    def _is_english(self) -> bool:
        letters = [char for char in self._text if char.isalpha()]
        foreign = sum(not char.isascii() for char in letters)
        if foreign * 2 > len(letters):
            return False
        said = words(self._text, chars_max=None)
        english = sum(word in _ENGLISH for word in said)
        other = max(sum(word in listed for word in said) for listed in _OTHERS)
        return english > other or (english == other and not foreign)

    def _own_sentence(self, content: str, *, foreign: bool) -> str | None:
        """The user's own sentence that says the same, quoted. In English it has half of the statement's words. In
        another language, whose endings no stemmer here knows, it has one that the others have not, or is the only
        one."""
        telling, values = content_words(content) - _GRAMMAR, numbers(content)
        shared = [len(held & telling) + len(counted & values) for _, held, counted in self._sentences]
        most = max(shared, default=0)
        certain = shared.count(most) == 1 if foreign else most >= SHARE_MIN * len(telling)
        if foreign and len(shared) == 1:
            return self._quoted(0)
        return self._quoted(shared.index(most)) if most and certain else None

    def _quoted(self, place: int) -> str:
        """A sentence; one that only points at somebody with the one before it."""
        sentence = self._sentences[place][0]
        if place and _POINTS.match(sentence):
            both = f"{self._sentences[place - 1][0]} {sentence}"
            return quoted(both if len(both) in SENTENCE_CHARS else sentence)
        return quoted(sentence)

    @cached_property
    def _sentences(self) -> list[tuple[str, set[str], set[float]]]:
        """Those that can be quoted, clauses of longer ones; with what they are about."""
        pieces: list[str] = []
        for sentence in SENTENCE.split(self._text, SENTENCES_MAX)[:SENTENCES_MAX]:
            pieces += [sentence] if len(sentence) in SENTENCE_CHARS else _CLAUSE.split(sentence, SENTENCES_MAX)
        fitting = [bare for piece in pieces if len(bare := piece.strip(" ,;:，；、：")) in SENTENCE_CHARS]
        return [(piece, content_words(piece), numbers(piece)) for piece in fitting[:SENTENCES_MAX]]


def _as_first(match: re.Match[str]) -> str:
    word = {"of": "my", "are": "I am", "have": "I have", "you": "I" if match.start() == 0 else "me"}
    return word[match.lastgroup or "you"]


LONGEST_S = 366 * 86_400.0
"""A time longer than a year ("since 2015", "before the war") is no date of anything."""
SENTENCES_MAX = 200
"""Of the user's text, as many sentences are looked at for the one that a fact comes from."""
SENTENCE_CHARS_MAX = 500

_FORMS = json.loads(Path(__file__).with_name("event_time.json").read_text("utf-8"))
_AGAIN, _ARRANGED, _COMING = (
    re.compile("|".join(_FORMS[name]), re.IGNORECASE) for name in ("again", "arranged", "coming")
)
"""What comes again and again; what is fixed for a time; what is said of what is to come. They are data."""
SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")


def event_time(statement: str, said_at: float) -> float | None:
    """The beginning of the one time that a statement about the user names, None when it is no event with a date.
    Seconds since the epoch, UTC; ``said_at`` is when it was said."""
    return _start(statement, _towards(statement), said_at)


class DatedText:
    """What the user said in one turn, against which the times of a language model's facts are held. ``said_at`` is
    when; the text is read once, when a fact first has a time."""

    def __init__(self, said: str, said_at: float) -> None:
        self._said = said
        self._said_at = said_at

    def event_time(self, statement: str, when: str = "") -> float | None:
        """The event time of a statement by a model. ``when`` is what the model took for the time, in the user's words.
        A time that the user did not name is replaced by that of the user's own sentence."""
        towards = _towards(statement)
        told = _start(statement, towards, self._said_at)
        if told is None and not when:
            return None
        if told is None:
            told = _start(when, towards, self._said_at)
        if told is not None and any(named.start <= told < named.end for named in self._named):
            return told
        content = content_words(statement)
        source, _ = max(self._sentences, key=lambda sentence: len(sentence[1] & content), default=("", None))
        return event_time(source, self._said_at)

    @cached_property
    def _sentences(self) -> list[tuple[str, set[str]]]:
        """With what they are about."""
        sentences = [sentence[:SENTENCE_CHARS_MAX] for sentence in SENTENCE.split(self._said, SENTENCES_MAX)]
        return [(sentence, content_words(sentence)) for sentence in sentences[:SENTENCES_MAX] if sentence]

    @cached_property
    def _named(self) -> list[Interval]:
        directions: tuple[Towards, ...] = ("past", "future")
        return [named for each in directions for named in intervals(self._said, self._said_at, towards=each)]


def _start(text: str, towards: Towards | None, said_at: float) -> float | None:
    """Where the direction is not known, what names the same time in both is enough."""
    if _AGAIN.search(text):
        return None
    past = intervals(text, said_at, towards="past")
    future = intervals(text, said_at, towards="future")
    named = future if towards == "future" else past
    if len(named) != 1 or (towards is None and past != future) or named[0].end - named[0].start > LONGEST_S:
        return None
    return named[0].start


def _towards(statement: str) -> Towards | None:
    """Which way a statement looks; None when its verb does not tell."""
    if _ARRANGED.search(statement) or leaning(statement) == "future":
        return "future"
    if any(word in _PASTS or (len(word) > 4 and word.endswith("ed")) for word in words(statement)):
        return "past"
    return "future" if _COMING.search(statement) else None


_PASTS = (_IRREGULAR | {"was", "were"}) - SAME_FORM - {"saw"} | {"quit"}
"""What tells of the past by itself. "saw" may be a tool; people who "quit" have done so."""
