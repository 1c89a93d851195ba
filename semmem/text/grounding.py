"""Is this statement made of the user's own words? A lexical check, without a model.

A fact passes when every number and every name in it was said by the user, most of its other content words were too,
and it does not turn the only clause it rests on into its opposite. Words that merely carry a statement (user, has,
likes, works at, ...) need no ground, because every extractor puts them in by itself."""

from __future__ import annotations

import re
from functools import cached_property

from semmem.text import stop_words
from semmem.text.number_words import CARDINALS
from semmem.text.stems import stems
from semmem.text.words import WORD, is_unspaced, pairs, words

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:\s?(?:k|thousand|m|million)\b)?", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CLAUSE = re.compile(
    r"(?<!\d)[.,;:]|[.,;:](?!\d)|[!?\n—]|\b(?:but|so|and|because|although|though|while)\b", re.IGNORECASE
)
_SENTENCE_START = re.compile(r"(?:^|[.!?]\s+|\n\s*)[\"'(]*$")

_SPELLED = {word: value for word, value in CARDINALS.items() if value > 1}  # a lone "one" is a pronoun

_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|\w+n['’]t|dont|doesnt|cant|wont|"
    r"hat(?:e|es|ed|ing)|dislik\w+|loath\w+|detest\w*|despis\w+|avoid\w*|refus\w+|stop(?:s|ped)?|quit\w*|"
    r"g[ai]ven? up|lacks?|unable|averse)\b",
    re.IGNORECASE,
)
_NOT_REALLY_NEGATIVE = re.compile(
    r"\b(?:(?:do|can|must|never|wo)(?:n['’]?t| not)? (?:forget|worry|wait|mind)|no (?:worries|problem|doubt|idea)|"
    r"no (?:\w{2} ){0,2}olvid\w+|not (?:only|just)|why not|\w+n['’]t (?:it|you|that)\b)",
    re.IGNORECASE,
)
_LIKING = re.compile(r"\b(?:lik(?:e|es|ed)|lov(?:e|es|ed|ing)|enjoy\w*|ador(?:e|es|ed)|prefer\w*)\b", re.IGNORECASE)

PREFIX_CHARS_MIN = 5
"""Two words are one when they share this many leading characters and ``PREFIX_SHARE_MIN`` of the longer one."""
PREFIX_SHARE_MIN = 0.6


class SourceText:
    """What the user said, read once, when it is first asked for, and compared with many facts. ``text`` is the user's
    text to learn from: a fact's numbers and at least one of its content words must be in it. ``context`` is what the
    user said before: it may supply names and further words."""

    def __init__(self, text: str, context: str = "") -> None:
        self._text = text
        self._context = context

    def __reduce__(self) -> tuple[type[SourceText], tuple[str, str]]:
        """Only the words go to another process."""
        return SourceText, (self._text, self._context)

    @cached_property
    def _own(self) -> _Stems:
        return _Stems(content_words(self._text))

    @cached_property
    def _all(self) -> _Stems:
        return _Stems(content_words(f"{self._text}\n{self._context}"))

    @cached_property
    def _numbers(self) -> set[float]:
        return numbers(self._text)

    @cached_property
    def _clauses(self) -> list[tuple[str, _Stems]]:
        clauses = (clause for clause in _CLAUSE.split(self._text) if clause.strip())
        return [(clause, _Stems(content_words(clause))) for clause in clauses]

    def grounds(self, content: str, *, share_min: float = 0.6) -> bool:
        """Whether ``content`` rests on it. ``share_min`` of its content words must be found; the rest is paraphrase."""
        telling, values, proper = content_words(content), numbers(content), names(content)
        return (
            bool(self._own.shared(telling) or (values and not telling))
            and values <= self._numbers
            and proper <= self._all.shared(proper)
            and len(self._all.shared(telling)) >= share_min * len(telling)
            and not self._reverses(content, telling)
        )

    def overlap(self, content: str) -> int:
        """How many content words and numbers of ``content`` the user said."""
        return len(self._own.shared(content_words(content))) + len(numbers(content) & self._numbers)

    def _reverses(self, content: str, telling: set[str]) -> bool:
        """Every clause with all of the fact's words says the opposite. A fact spread over clauses is let through."""
        clauses = [clause for clause, held in self._clauses if telling and telling <= held.shared(telling)]
        if not is_negative(content):
            return bool(clauses) and all(map(is_negative, clauses))
        return bool(clauses) and all(not is_negative(each) and _LIKING.search(each) for each in clauses)


class _Stems:
    """Stems of a text; another stem is found among them by itself or by one that begins alike."""

    def __init__(self, held: set[str]) -> None:
        self._held = held
        self._by_prefix: dict[str, list[str]] = {}
        for stem in held:
            self._by_prefix.setdefault(stem[:PREFIX_CHARS_MIN], []).append(stem)

    def shared(self, asked: set[str]) -> set[str]:
        return {stem for stem in asked if stem in self._held or self._has_akin(stem)}

    def _has_akin(self, stem: str) -> bool:
        return any(_akin(stem, other) for other in self._by_prefix.get(stem[:PREFIX_CHARS_MIN], ()))


def content_words(text: str) -> set[str]:
    """Stems of the words that say what a text is about. Runs without spaces (Chinese, ...) become pairs of signs."""
    return _contents(words(text, chars_max=None))


def names(text: str) -> set[str]:
    """Stems of capitalised words inside a sentence."""
    found: list[str] = []
    for match in WORD.finditer(text):
        if match.group()[0].isupper() and not _SENTENCE_START.search(text[max(0, match.start() - 40) : match.start()]):
            found += words(match.group())
    return _contents(found)


def _contents(said: list[str]) -> set[str]:
    """Numbers are left out, which are compared as values, and single letters."""
    paired: set[str] = set()
    spelled: list[str] = []
    for word in said:
        # Korean writes spaces, but words take endings that no stemmer here knows.
        if is_unspaced(word) or "\uac00" <= word[0] <= "\ud7af":
            paired.update(pairs(word) or (word,))
        elif len(word) > 1 and not word[0].isdigit():
            spelled.append(word)
    return paired.union(stems(spelled)) - _FRAME


def numbers(text: str) -> set[float]:
    """Every number as a value: ``10,000``, ``10k`` and ``10000`` are one, ``ten`` is 10. A lone ``one`` is none."""
    values = {float(_SPELLED[word]) for word in words(text, chars_max=None) if word in _SPELLED}
    return values | {_value(match.group()) for match in _NUMBER.finditer(text)}


def _value(spelling: str) -> float:
    digits = re.match(r"[\d.,]+", spelling)
    assert digits is not None
    number, scale = digits.group(), spelling[digits.end() :].strip().casefold()
    if _GROUPED.fullmatch(number):
        number = re.sub(r"[.,]", "", number)
    elif number.count(",") + number.count(".") > 1:
        number = re.sub(r"\D", "", number)
    factor = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}.get(scale, 1.0)
    return round(float(number.replace(",", ".")) * factor, 6)


def _akin(one: str, other: str) -> bool:
    longer = max(len(one), len(other))
    needed = max(PREFIX_CHARS_MIN, PREFIX_SHARE_MIN * longer)
    if min(len(one), len(other)) < needed:
        return False
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= needed


def is_negative(text: str) -> bool:
    """Whether a statement denies something, or tells of dislike."""
    return bool(_NEGATIVE.search(_NOT_REALLY_NEGATIVE.sub(" ", text)))


_FRAME = frozenset(
    stems(sorted({*stop_words.ENGLISH, *stop_words.NEGATED_AUXILIARIES, *stop_words.CARRIERS, *_SPELLED}))
)
