"""JSON out of whatever a language model answers: alone, fenced, amid prose, after its thoughts, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

FAILED_DECODES_MAX = 200
"""How many places of an answer are tried as the beginning of JSON before giving up; bounds the work on hostile text."""

_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"[\[{]")
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)


def json_values(answer: str) -> Iterator[object]:
    """Every JSON object and array in an answer, outermost first; inside a broken one, the whole ones it holds."""
    text = _THOUGHTS.sub(" ", answer)
    position, failed = 0, 0
    while failed < FAILED_DECODES_MAX and (match := _OPENING.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position, failed = match.start() + 1, failed + 1
        else:
            yield value
