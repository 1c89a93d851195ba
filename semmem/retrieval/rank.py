"""Choose among candidates: order them, drop what repeats another or what the request says already, cut to a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, islice

from msgspec import Struct

from semmem.memory import Hit, Memory, MemoryStatus, Vector
from semmem.retrieval.once import OncePerMemory
from semmem.text.digest import Remembered
from semmem.text.grounding import is_negative
from semmem.text.number_words import CARDINALS, MULTIPLES, ORDINALS
from semmem.text.screening import readable
from semmem.text.times.calendar import MONTHS, WEEKDAYS
from semmem.text.words import negations_apart, words

RECENCY_WEIGHT = 0.03
IMPORTANCE_WEIGHT = 0.03
"""Together at most 0.06 of cosine: they order neighbours and never overrule relevance."""
HALF_LIFE_S = 30 * 86_400.0
SAME_WORDS = 0.9
"""Jaccard similarity of word sets from which two memories say the same."""
SAME_VECTORS = 0.95
"""Cosine from which two memories say the same. Neither number is enough alone: with all-MiniLM-L6-v2 "is allergic to"
and "is not allergic to" are at 0.979, "budget is $10k" and "$15k" at 0.951; hence _told_apart_by."""
_NO_CUTS: Mapping[str, str] = {}

_NAME = re.compile(r"(?<=\s)[A-Z][^\W_]*")
_TELLING = frozenset(
    "not no never none nor without cannot dislikes hates stopped quit former ex before after until anymore am pm last"
    " next left right".split()
).union(CARDINALS, ORDINALS, MULTIPLES, MONTHS, WEEKDAYS)
_NEGATION = re.compile(r"n't\b")


class Ranked(Struct, frozen=True):
    """A candidate, and whether it is shown. ``reason``: ``kept``, or the word for why it was cut."""

    hit: Hit
    kept: bool
    reason: str

    @property
    def id(self) -> str:
        """The memory's."""
        return self.hit.memory.id


def rank(
    hits: Sequence[Hit],
    *,
    said: Sequence[str],
    limit: int,
    now: float,
    threshold: float | None = None,
    cuts: Mapping[str, str] = _NO_CUTS,
    standing: Container[str] = (),
    standing_max: int | None = None,
) -> list[Ranked]:
    """Every candidate, best first, each with its verdict; at most ``limit`` are kept, of which ``standing_max`` of
    those whose ids are in ``standing``.

    ``score`` = the hit's own + 0.03 * 2^(-age / HALF_LIFE_S) + 0.03 * importance, age since the last update.
    ``threshold`` is compared with the cosine, never with the score: being new or important makes nothing relevant.
    ``cuts`` are reasons, by memory id, that somebody else has found. ``said`` are the user's own messages of this
    request, oldest first; they cut no memory of a standing, nor any whose id is in ``standing``.

    Reasons in the order in which they are tried: ``not_active``, ``expired``, ``below_threshold``, those of ``cuts``,
    ``limit``, ``already_said``, ``near_duplicate`` (of a better one that was kept), ``screened`` (it would not be
    stored today: it reads like an order, or holds a secret)."""
    scored = (Hit(hit.memory, hit.cosine, _score(hit, now), hit.keyword, hit.logit) for hit in hits)
    stated = Stated(said)
    kept: list[_Compared] = []
    verdicts: list[Ranked] = []
    room, standing_room = limit, limit if standing_max is None else standing_max
    for hit in sorted(scored, key=lambda hit: (-hit.score, hit.memory.id)):
        is_standing = hit.memory.id in standing
        has_room = room > 0 and (standing_room > 0 or not is_standing)
        reason = _unfit(hit, now, threshold) or cuts.get(hit.memory.id) or ("" if has_room else "limit")
        if not reason:  # comparing contents is the dear part, and only for what could still be kept
            content = _content(hit.memory), hit.memory.embedding
            if hit.memory.standing is None and not is_standing and stated.holds(content[0].statement):
                reason = "already_said"
            elif any(_same(*content, *other) for other in kept):
                reason = "near_duplicate"
            elif _screened(hit.memory):
                reason = "screened"
            else:
                kept.append(content)
                room, standing_room = room - 1, standing_room - is_standing
        verdicts.append(Ranked(hit, not reason, reason or "kept"))
    return verdicts


@dataclass(frozen=True, slots=True)
class _Content:
    """What is compared of a memory beside its unit vector: its statement, its words, those that turn one fact into
    another, its names. A vector here would hold all of the index that it is a row of."""

    statement: str
    words: frozenset[str]
    telling: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, memory: Memory) -> _Content:
        content = memory.content
        said = frozenset(words(content))
        names = frozenset(name.casefold() for name in _NAME.findall(content))
        return cls(statement(content), said, _told_apart_by(content, said), names)


_Compared = tuple[_Content, Vector | None]
_content, _screened = OncePerMemory(_Content.of), OncePerMemory(readable)


def _score(hit: Hit, now: float) -> float:
    age_s = max(0.0, now - hit.memory.updated_at)
    importance = min(max(hit.memory.importance, 0.0), 1.0)
    recency = math.pow(2.0, -age_s / HALF_LIFE_S)
    return hit.score + RECENCY_WEIGHT * recency + IMPORTANCE_WEIGHT * importance


def _unfit(hit: Hit, now: float, threshold: float | None) -> str:
    memory = hit.memory
    if memory.status is not MemoryStatus.ACTIVE:
        return "not_active"
    if memory.expires_at is not None and memory.expires_at <= now:
        return "expired"
    return "below_threshold" if threshold is not None and hit.cosine < threshold else ""


def _same(one: _Content, vector: Vector | None, other: _Content, other_vector: Vector | None) -> bool:
    if one.telling != other.telling or not (one.names <= other.words and other.names <= one.words):
        return False
    if len(one.words & other.words) >= SAME_WORDS * max(len(one.words | other.words), 1):
        return True
    if vector is None or other_vector is None or vector.shape != other_vector.shape:
        return False
    return float(vector.dot(other_vector)) > SAME_VECTORS


def _told_apart_by(content: str, said: frozenset[str]) -> frozenset[str]:
    """Numbers, negations, days and months: two memories that differ in one of them are two facts, as with names."""
    numbers = {word for word in said if any(char.isdigit() for char in word)}
    negated = {"not"} if _NEGATION.search(content) else set()
    return frozenset(numbers | negated | (said & _TELLING))


# --- what the request says already -----------------------------------------------------------------------------------

# To show a line once more costs a line; to hide one that the user did not say costs the answer. So a message counts
# only where it is short and plain, and where its first sentence is the memory's statement, rather than one that holds
# its words: "Outdated and wrong: User likes tea" does not say so, and neither does "Do I like tea?"
MESSAGE_CHARS_MAX = 300
MESSAGES_MAX = 10
"""So many of a request's messages are read, the newest; a request may have thousands."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_PASTED = re.compile(r"[\n\r:：\"“”„«»‹›「」『』`<>|]|(?<!\w)['‘’‚]|['’](?!\w)")
"""Signs of somebody else's words: several lines, a colon, quotation marks, tags, tables."""
_ASKED = re.compile("[?？؟]")
_TAKEN_BACK = re.compile(r"\b(?:that|this|it|right|true|correct|wrong|false|outdated|used to)\b", re.IGNORECASE)
"""What a later sentence may say of the first one."""
_OPENERS = frozenset(
    "and also so well hi hello hey there thank you good morning afternoon evening hallo hola bonjour ciao olá".split()
)
_PERSON = re.compile(r"\b(?:(?:the )?user(?:'s)?|i'm|i've|am|are|have)\b")
_FIRST_PERSON = {"user's": "my", "user": "i", "i'm": "i is", "i've": "i has", "am": "is", "are": "is", "have": "has"}


def statement(text: str) -> str:
    """A text folded: words only, in the first person, so that "User lives in Boston." and "I live in Boston" are the
    same. Empty where it has none."""
    line = _PERSON.sub(lambda person: _FIRST_PERSON[person[0].removeprefix("the ")], text.casefold().replace("’", "'"))
    # The verb of "user" as that of "I". No stem, which has no tense: who lived in Rome does not live in Rome.
    said = words(negations_apart(line))
    return " ".join(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in said)


class Stated:
    """What the user's own messages of a request state, oldest first."""

    def __init__(self, said: Sequence[str]) -> None:
        self._said = said

    def holds(self, folded: str) -> bool:
        """Whether it, a ``statement``, is stated."""
        return folded != "" and hash(folded) in self._statements

    @cached_property
    def _statements(self) -> frozenset[int]:
        """The hashes of those that are stated."""
        plain = (text.strip() for text in reversed(self._said) if len(text) <= MESSAGE_CHARS_MAX)
        newest = islice((text for text in plain if text and not _PASTED.search(text)), MESSAGES_MAX)
        return frozenset().union(*map(_statements, newest))


def _stated_by(text: str) -> Iterator[str]:
    """The statement that a message opens with, behind a greeting, unless the rest of it may take that back."""
    sentences = iter(_SENTENCE_END.split(text))
    for first in sentences:
        found = statement(first).split()
        own = " ".join(dropwhile(_OPENERS.__contains__, found))
        if own or not found:
            break
    if not _ASKED.search(first) and not any(is_negative(later) or _TAKEN_BACK.search(later) for later in sentences):
        yield own


_statements = Remembered(lambda text: frozenset(map(hash, _stated_by(text))))
