"""The facts in a language model's answer, whatever shape it gave them, and which notes it names as wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from semmem.extraction.answers import read_answer
from semmem.memory import MemoryType
from semmem.ports.errors import ModelRefused
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
    whole items before are there).

    Of each note ``{"wrong": number, "why": text}``, None for what is no number.
    Takes ``{"facts": [...]}``, a bare array or bare items; lists of texts; facts grouped by type or by turn; each
    alone, fenced, amid prose, or not quite JSON. Raises ModelRefused when nothing in it is JSON of that kind.
    """
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


def type_of(name: object) -> MemoryType:
    """The kind that a word means; semantic where it is no word of ours."""
    return _kind(name) or MemoryType.SEMANTIC


def _kind(name: object) -> MemoryType | None:
    word = name.strip().casefold() if isinstance(name, str) else ""
    return next((kind for beginning, kind in _KINDS.items() if word.startswith(beginning)), None)


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
        yield {WRONG: _note_number(number), "why": why}


def _note_number(told: object) -> int | None:
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    found = _NUMBER.fullmatch(told.strip()) if isinstance(told, str) else None
    return int(found[1]) if found else None


def _is_statement(text: str) -> bool:
    """Rather than a word out of a list of names, or a piece of JSON."""
    said = words(text[:STATEMENT_CHARS])
    return not _BRACKET.search(text) and (len(said) > 1 or any(len(word) > 1 and is_unspaced(word) for word in said))


def wrong_notes(named: Sequence[Item], shown: Collection[int]) -> tuple[frozenset[int], Counter[str]]:
    """The places (from 0) of notes that go, of those that were shown, and what was ignored, by reason. ``named``: the
    items of ``read_items``, which count from 1.

    A pasted text may steer a model. So what has no reason, or a number that was not shown, is passed over, and so is an
    answer that does away with most of what a conversation told.
    """
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
