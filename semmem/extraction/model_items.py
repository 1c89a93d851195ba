"""The facts in a language model's answer, whatever shape it gave them, and which notes it names as wrong."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from semmem.extraction.answers import read_answer
from semmem.extraction.phrasing import DatedText, ShownTexts, TurnText
from semmem.memory import Fact, MemoryType, Standing, Turn
from semmem.ports.errors import ModelRefused
from semmem.text.grounding import SourceText
from semmem.text.times import intervals
from semmem.text.words import is_unspaced, words

Item = dict[str, Any]
"""One fact as the model gave it, under the names that the prompt asks for. Only ``content`` is sure to be a text."""

CONTENT_NAMES = ("content", "fact", "text", "statement", "memory", "description")
LIST_NAMES = ("facts", "memories")
WRONG = "wrong"
"""The member with the notes that are wrong, and of each of those the member with its number."""
OTHER_NAMES = {"line": "turn", "turn_id": "turn", "memory_type": "type", "kind": "type", "valid_until": "until"}
SHARED_NAMES = ("turn", "type", "category", "subject", "standing", "topic", "importance", "when", "until")
"""What an object around facts says of all of them."""
DEPTH_MAX = 8
"""Objects and lists around a fact; a model never needs more than three."""

STATEMENT_CHARS = 1000
"""Of a text without a name, so many are looked at to see whether it is a statement."""

NO_REASON, UNKNOWN_NUMBER, TOO_MANY = "no_reason", "unknown_number", "too_many"
FEW = 3
"""Of more notes than these at most half may be named."""
WHY_CHARS_MAX = 500
"""Of a reason, as much is looked at."""

_BRACKET = re.compile(r"[\[\]{}]")
_NUMBER = re.compile(r"(?:note|number)?[ _#-]{0,2}(\d{1,3})", re.IGNORECASE)
_TURN = re.compile(r"(?:turn|line)?[ _-]?(\d{1,3})", re.IGNORECASE)
_KINDS = {"sem": MemoryType.SEMANTIC, "proced": MemoryType.PROCEDURAL, "episod": MemoryType.EPISODIC}


def read_items(answer: str) -> tuple[list[Item], list[Item], bool]:
    """The fact items in a model's answer, the notes that it names as wrong, and whether the answer was cut off (the
    whole items before are there). Of each note ``{"wrong": number, "why": text}``, None for what is no number. Takes
    ``{"facts": [...]}``, a bare array or bare items; lists of texts; facts grouped by type or by turn; each alone,
    fenced, amid prose, or not quite JSON. Raises ModelRefused when nothing in it is JSON of that kind."""
    values, cut = read_answer(answer)
    items: list[Item] = []
    answered = False
    for value in values:
        found = list(_items(value, {}, DEPTH_MAX))
        answered = answered or bool(found)
        items += [item for item in found if item]
    if not answered:
        raise ModelRefused("no JSON in the answer")
    return [item for item in items if WRONG not in item], [item for item in items if WRONG in item], cut


def parse_items(answer: str) -> list[Item]:
    """The fact items of ``read_items``. Raises ModelRefused."""
    return read_items(answer)[0]


def _kind(name: object) -> MemoryType | None:
    return next((kind for beginning, kind in _KINDS.items() if _word(name).startswith(beginning)), None)


def _word(value: object) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def _items(value: object, shared: Mapping[str, Any], depth: int) -> Iterator[Item]:
    """The items of one decoded value; an empty one where it says that there are none."""
    if depth == 0:
        return
    if isinstance(value, dict):
        yield from _of_object(value, shared, depth)
    elif isinstance(value, list):
        if not value:
            yield {}
        elif all(isinstance(element, str) for element in value):
            yield from ({**shared, "content": text} for text in value if _is_statement(text))
        else:
            for element in value:
                if isinstance(element, dict | list) and element:
                    yield from _items(element, shared, depth - 1)


def _of_object(value: Mapping[str, Any], shared: Mapping[str, Any], depth: int) -> Iterator[Item]:
    named = {OTHER_NAMES.get(name, name): member for name, member in value.items()}
    content = next((named[name] for name in CONTENT_NAMES if isinstance(named.get(name), str)), None)
    if content is not None:
        yield {**shared, **named, "content": content}
        return
    if WRONG in named:
        yield from _wrong(named.pop(WRONG))
        if not named:
            return
    listed = next((name for name in LIST_NAMES if name in named), None)
    members = named if listed is None else {listed: named[listed]}
    if not members or (listed is not None and not named[listed]):
        yield {}
    passed_on = {**shared, **{name: named[name] for name in SHARED_NAMES if isinstance(named.get(name), str | int)}}
    for name, member in members.items():
        yield from _of_member(name, member, passed_on, depth)


def _of_member(name: str, member: object, shared: Mapping[str, Any], depth: int) -> Iterator[Item]:
    """What stands under a name, which may be a type or the number of a turn."""
    kind, turn = _kind(name), _TURN.fullmatch(name.strip())
    if kind is not None:
        shared = {**shared, "type": kind.value}
    if turn is not None:
        shared = {**shared, "turn": int(turn[1])}
    if isinstance(member, dict | list):
        yield from (item for item in _items(member, shared, depth - 1) if item or name in LIST_NAMES or kind)
    elif isinstance(member, str) and (name in LIST_NAMES or kind or turn):
        if member.lstrip()[:1] in ("[", "{"):  # JSON within a string of JSON
            for value in read_answer(member)[0]:
                yield from _items(value, shared, depth - 1)
        elif _is_statement(member):
            yield {**shared, "content": member}


def _wrong(member: object) -> Iterator[Item]:
    """The notes of a list, of one object, or of an object with the reasons by number; an empty item for none."""
    if isinstance(member, dict) and not {"number", "note", "id"} & member.keys():
        member = [{"number": number, "why": why} for number, why in member.items()]
    if not member:
        yield {}
        return
    for entry in member if isinstance(member, list) else [member]:
        told = entry if isinstance(entry, dict) else {"number": entry}
        number = next((told[name] for name in ("number", "note", "id") if name in told), None)
        why = next((told[name] for name in ("why", "reason") if isinstance(told.get(name), str)), "")
        if isinstance(number, bool) or not isinstance(number, int):
            found = _NUMBER.fullmatch(number.strip()) if isinstance(number, str) else None
            number = int(found[1]) if found else None
        yield {WRONG: number, "why": why}


def _is_statement(text: str) -> bool:
    """Rather than a word out of a list of names, or a piece of JSON."""
    said = words(text[:STATEMENT_CHARS])
    return not _BRACKET.search(text) and (len(said) > 1 or any(len(word) > 1 and is_unspaced(word) for word in said))


def wrong_notes(named: Sequence[Item], shown: Collection[int]) -> tuple[frozenset[int], Counter[str]]:
    """The places (from 0) of notes that go, of those that were shown, and what was ignored, by reason. ``named``: the
    items of ``read_items``, which count from 1. A pasted text may steer a model. So what has no reason, or a number
    that was not shown, is passed over, and so is an answer that does away with most of what a conversation told."""
    ignored: Counter[str] = Counter()
    places: set[int] = set()
    for item in named:
        number, why = item[WRONG], item["why"]
        if number is None or number - 1 not in shown:
            ignored[UNKNOWN_NUMBER] += 1
        elif not words(why[:WHY_CHARS_MAX]):
            ignored[NO_REASON] += 1
        else:
            places.add(number - 1)
    if len(shown) > FEW and 2 * len(places) > len(shown):
        ignored[TOO_MANY] += len(places)
        places.clear()
    return frozenset(places), ignored


IMPORTANCE = {Standing.MUST: 0.9, Standing.PROFILE: 0.7, Standing.STYLE: 0.6}
"""A fact of a standing is never less important: a model that calls an allergy 0.5 does not know what depends on it."""
IMPORTANCE_UNKNOWN = 0.5
_IMPORTANCE_WORDS = {"critical": 0.9, "very high": 0.9, "high": 0.8, "medium": 0.5, "moderate": 0.5, "low": 0.3}

CONTENT_CHARS_MAX = 1000
"""Of a content, as much is phrased and read for a time; facts are shorter, and the screen refuses longer ones."""
TOPIC_CHARS_MAX = 30
"""A topic is one or two words; what is longer or is no word is none."""
EXPIRY_GRACE_S = 86_400.0
"""The user's own clock is not known, so a day passes before what held until Friday is no longer true."""

_FIGURE = re.compile(r"\d+(?:\.\d+)?")
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
        counted = [_number(item.get("importance")) for item in items]
        most = max((abs(number) for number in counted if number is not None), default=1)
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
        phrased: str | None = content.strip()
        if len(content.strip()) <= CONTENT_CHARS_MAX:  # the screen says what is too long to be a fact, and counts it
            phrased = self._texts[turn.id].phrased(content, _text(item.get("subject")))
        if phrased is None:
            return None
        kind = _kind(item.get("type")) or MemoryType.SEMANTIC
        standing = next((each for each in Standing if each == _word(item.get("standing"))), None)
        topic, said = _word(item.get("topic")), content[:CONTENT_CHARS_MAX]
        topic = topic if len(topic) <= TOPIC_CHARS_MAX and _TOPIC.fullmatch(topic) else ""
        least = IMPORTANCE.get(standing, 0.0) if standing else 0
        importance = max(_importance(item.get("importance"), most), least)
        at = self._dated[turn.id].event_time(said, _text(item.get("when")))
        ends = _expires_at(_text(item.get("until")), turn, kind, standing)
        return Fact(kind, phrased, turn.id, importance, at, standing=standing, expires_at=ends, topic=topic)

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


def _number(value: object) -> float | None:
    """The number that an importance is, or begins with; None for other words."""
    if isinstance(value, str):
        found = _FIGURE.match(value.strip()[:20])
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
        if "%" in word and (percent := _FIGURE.match(word)):
            return min(float(percent[0]) / 100, 1.0)
        if word in _IMPORTANCE_WORDS:
            return _IMPORTANCE_WORDS[word]
    number = _number(value)
    if number is None:
        return IMPORTANCE_UNKNOWN
    return min(number / (1 if most <= 1 else 10 if most <= 10 else 100), 1.0)


def _expires_at(until: str, turn: Turn, kind: MemoryType, standing: Standing | None) -> float | None:
    """When it ceases to be true: only where the user said "until" and these very words, which name one time. What
    happened stays so, and what somebody must not does not end by itself."""
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
