"""What a language model's items become: facts with a type, a phrasing, a standing, a weight and their times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from semmem.extraction.model_items import Item, type_of
from semmem.extraction.phrasing import Claim, ShownTexts, TurnText
from semmem.extraction.rules.event_time import DatedText
from semmem.memory import Fact, MemoryType, Standing, Turn
from semmem.text.grounding import SourceText
from semmem.text.times import intervals

IMPORTANCE = {Standing.MUST: 0.9, Standing.PROFILE: 0.7, Standing.STYLE: 0.6}
"""A fact of a standing is never less important: a model that calls an allergy 0.5 does not know what depends on it."""
IMPORTANCE_UNKNOWN = 0.5
_IMPORTANCE_WORDS = {"critical": 0.9, "very high": 0.9, "high": 0.8, "medium": 0.5, "moderate": 0.5, "low": 0.3}

CONTENT_CHARS_MAX = 1000
"""Of a content, as much is phrased and read for a time; facts are shorter, and the screen refuses longer ones."""
TOPIC_CHARS_MAX = 30
EXPIRY_GRACE_S = 86_400.0
"""The user's own clock is not known, so a day passes before what held until Friday is no longer true."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OUT_OF = re.compile(r"(\d+(?:\.\d+)?) ?(?:/|out of|of) ?(\d+)")
_TOPIC = re.compile(r"[^\W\d_]+(?:[ &/-]{1,3}[^\W\d_]+)?")
_UNTIL = re.compile(
    r"\b(?:until|till|til|through|bis|hasta|jusqu['’]?(?:au|à|en)|até)\s+(?:the |el |zum |zur |la |le )?", re.IGNORECASE
)


class Facts:
    """Makes facts of items, for the turns that a model was shown; each turn is read once."""

    def __init__(self, turns: Sequence[Turn], context: Sequence[Turn] = ()) -> None:
        every = (*context, *turns)
        shown = ShownTexts([turn.user_text for turn in every], [turn.answer for turn in every if turn.answer])
        self._turns = turns
        self._said = {turn.id: SourceText(turn.user_text) for turn in turns}
        self._texts = {turn.id: TurnText(turn.user_text, shown) for turn in turns}
        self._dated = {turn.id: DatedText(turn.user_text, turn.opened_at) for turn in turns}

    def of(self, items: Sequence[Item]) -> Iterator[Fact]:
        """The facts of the items, in order, each content once. Items of no turn, without a text, and about the machine
        that answered give none."""
        most = max(
            (abs(number) for item in items if (number := _number(item.get("importance"))) is not None), default=1
        )
        seen: set[str] = set()
        for item in items:
            fact = self._fact(item, most)
            if fact is not None and (said := fact.content.casefold().rstrip(" .!")) not in seen:
                seen.add(said)
                yield fact

    def _fact(self, item: Item, most: float) -> Fact | None:
        content, turn = item.get("content"), self._turn(item)
        if turn is None or not isinstance(content, str) or not content.strip():
            return None
        phrased = self._phrased(content.strip(), _text(item.get("subject")), turn)
        if phrased is None:
            return None
        kind, standing = type_of(item.get("type")), _standing(item.get("standing"))
        said = content[:CONTENT_CHARS_MAX]
        return Fact(
            type=kind,
            content=phrased,
            turn_id=turn.id,
            importance=max(_importance(item.get("importance"), most), IMPORTANCE.get(standing, 0.0) if standing else 0),
            occurred_at=self._dated[turn.id].event_time(said, _text(item.get("when"))),
            standing=standing,
            expires_at=_expires_at(_text(item.get("until")), turn, kind, standing),
            topic=_topic(item.get("topic")),
        )

    def _phrased(self, content: str, subject: str, turn: Turn) -> str | None:
        """What is too long to be a fact is left as it is: the screen says so, and counts it."""
        if len(content) > CONTENT_CHARS_MAX:
            return content
        return self._texts[turn.id].phrased(Claim(content, subject))

    def _turn(self, item: Item) -> Turn | None:
        """The turn an item names; without a name, the turn that shares most words with it (the latest of equals)."""
        if item.get("turn") is None:
            content = str(item.get("content", ""))[:CONTENT_CHARS_MAX]
            return max(reversed(self._turns), key=lambda turn: self._said[turn.id].overlap(content), default=None)
        line = line_of(item)
        return self._turns[line - 1] if line is not None and 1 <= line <= len(self._turns) else None


def line_of(item: Item) -> int | None:
    """The number of the line that an item names, in the conversation that the model was shown."""
    try:
        return int(item["turn"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _text(value: object) -> str:
    return value[:CONTENT_CHARS_MAX] if isinstance(value, str) else ""


def _standing(value: object) -> Standing | None:
    word = value.strip().casefold() if isinstance(value, str) else ""
    return next((standing for standing in Standing if standing == word), None)


def _topic(value: object) -> str:
    """One or two words in lower case; nothing for what is longer or is no word."""
    word = value.strip().casefold() if isinstance(value, str) else ""
    return word if len(word) <= TOPIC_CHARS_MAX and _TOPIC.fullmatch(word) else ""


def _number(value: object) -> float | None:
    """The number that an importance is, or begins with; None for other words."""
    if isinstance(value, str):
        found = _NUMBER.match(value.strip()[:20])
        return float(found[0]) if found and not _OUT_OF.match(value.strip()) and "%" not in value else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 100 else None


def _importance(value: object, most: float) -> float:
    """In [0, 1], from a number, a share or a word. ``most`` is the highest number of the same answer, which tells
    whether it counts to 1, to 10 or to 100."""
    if isinstance(value, str):
        word = value.strip().casefold()[:20]
        if share := _OUT_OF.match(word):
            return min(float(share[1]) / max(float(share[2]), 1.0), 1.0)
        if "%" in word and (percent := _NUMBER.match(word)):
            return min(float(percent[0]) / 100, 1.0)
        if word in _IMPORTANCE_WORDS:
            return _IMPORTANCE_WORDS[word]
    number = _number(value)
    if number is None:
        return IMPORTANCE_UNKNOWN
    return min(number / (1 if most <= 1 else 10 if most <= 10 else 100), 1.0)


def _expires_at(until: str, turn: Turn, kind: MemoryType, standing: Standing | None) -> float | None:
    """When it ceases to be true: only where the user said "until" and these very words, which name one time.

    What happened stays so, and what somebody must not does not end by itself.
    """
    until = _UNTIL.sub("", until.strip(), count=1).strip(" .")
    if not until or kind is MemoryType.EPISODIC or standing is Standing.MUST:
        return None
    text = turn.user_text.casefold()
    if not any(text.startswith(until.casefold(), match.end()) for match in _UNTIL.finditer(text)):
        return None
    for preposition in ("", "on ", "in "):
        named = intervals(f"{preposition}{until}", turn.opened_at, towards="future")
        if len(named) == 1 and named[0].end > turn.opened_at:
            return named[0].end + EXPIRY_GRACE_S
    return None
