"""JSON out of whatever a language model answers: alone, fenced, amid prose, after its thoughts, broken, cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from semmem.extraction.broken_json import read_broken

FAILED_DECODES_MAX = 200
"""How many places of an answer are tried as the beginning of JSON before giving up; bounds the work on hostile text."""

_DECODER = json.JSONDecoder(strict=False)
"""A line break within a string is what many models write."""
_OPENING = re.compile(r"[\[{]")
_THOUGHT_TAG = re.compile(r"<(/?)(think|thinking|reasoning)>", re.IGNORECASE)


def json_values(answer: str) -> Iterator[object]:
    """Every JSON object and array in an answer, outermost first; of a broken one, what is whole in it."""
    return iter(read_answer(answer)[0])


def read_answer(answer: str) -> tuple[list[object], bool]:
    """The JSON objects and arrays in an answer, and whether the last one was cut off with something in it."""
    text = _without_thoughts(answer)
    values: list[object] = []
    position, failed, cut = 0, 0, False
    while failed < FAILED_DECODES_MAX and (match := _OPENING.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
            values.append(value)
        except (ValueError, RecursionError):
            found, position, unclosed = read_broken(text, match.start())
            values += found
            cut = unclosed and bool(found)
            failed += 1
    return values, cut


def _without_thoughts(answer: str) -> str:
    """In one pass: an expression that looks for each end tag anew needs minutes for an answer full of beginnings."""
    tags = [(tag.start(), tag.end(), bool(tag[1]), tag[2].casefold()) for tag in _THOUGHT_TAG.finditer(answer)]
    last_end = {name: start for start, _, closes, name in tags if closes}
    last_opening = max(answer.rfind("["), answer.rfind("{"))
    kept: list[str] = []
    position, inside = 0, ""
    for start, end, closes, name in tags:
        if inside == "" and not closes and last_end.get(name, -1) > start:
            kept.append(answer[position:start])
            inside = name
        elif closes and name == inside:
            position, inside = end, ""
        elif closes and inside == "" and not kept and last_opening >= end:
            position = end  # what came before were thoughts, whose beginning is in the model's own template
    return " ".join([*kept, answer[position:]])
