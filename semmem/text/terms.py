"""The terms by which memories and questions are compared: stems of words without the commonest, signs and pairs of
them in languages that are written without spaces; and which terms stand for each other."""

import re
from collections.abc import Mapping
from pathlib import Path

from semmem.text import stop_words
from semmem.text.stems import stem, stems
from semmem.text.words import is_unspaced, pairs

NO_TERMS = stop_words.ENGLISH | {"user"}
"""Nearly every memory begins with "User"."""
_NO_TERMS_UNSPACED = re.compile("|".join(map(re.escape, stop_words.CHINESE)))


def terms(said: list[str]) -> list[str]:
    """What is compared of a text's words, in their order, repeated as they repeat."""
    telling = [word for word in said if word not in NO_TERMS]
    found = stems(telling)
    if all(map(str.isascii, found)):
        return found
    kept: list[str] = []
    for word in found:
        runs = _NO_TERMS_UNSPACED.split(word) if is_unspaced(word) else None
        kept += [word] if runs is None else [term for run in runs for term in (*run, *pairs(run))]
    return kept


def _related_words() -> dict[str, tuple[str, ...]]:
    related: dict[str, dict[str, None]] = {}
    for line in Path(__file__).with_name("related_words.txt").read_text(encoding="utf-8").splitlines():
        asked, narrows, said = line.partition("#")[0].partition(">")
        for word in stems(asked.split()):
            others = map(stem, (said if narrows else asked).split())
            related.setdefault(word, {}).update((other, None) for other in others if other != word)
    return {word: tuple(others) for word, others in related.items()}


RELATED: Mapping[str, tuple[str, ...]] = _related_words()
"""By the stem of a question's word: stems that a memory may say instead, from ``related_words.txt``."""
