"""JSON out of whatever a language model answers: alone, fenced, amid prose, after its thoughts, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

FAILED_DECODES_MAX = 200
"""How many places of an answer are tried as the beginning of JSON before giving up; bounds the work on hostile text."""

_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"[\[{]")
_THOUGHT_TAG = re.compile(r"<(/?)(think|thinking|reasoning)>", re.IGNORECASE)


def json_values(answer: str) -> Iterator[object]:
    """Every JSON object and array in an answer, outermost first; inside a broken one, the whole ones it holds."""
    text = _without_thoughts(answer)
    position, failed = 0, 0
    while failed < FAILED_DECODES_MAX and (match := _OPENING.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position, failed = match.start() + 1, failed + 1
        else:
            yield value


def _without_thoughts(answer: str) -> str:
    """In one pass: an expression that looks for each end tag anew needs minutes for an answer full of beginnings."""
    tags = [(tag.start(), tag.end(), bool(tag[1]), tag[2].casefold()) for tag in _THOUGHT_TAG.finditer(answer)]
    last_end = {name: start for start, _, closes, name in tags if closes}
    kept: list[str] = []
    position, inside = 0, ""
    for start, end, closes, name in tags:
        if inside == "" and not closes and last_end.get(name, -1) > start:
            kept.append(answer[position:start])
            inside = name
        elif closes and name == inside:
            position, inside = end, ""
    return " ".join([*kept, answer[position:]])
