"""From a text to the terms that are compared: stems of its words without the commonest, characters and pairs of them
in languages that are written without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

import Stemmer

CHARS_MAX = 20_000
"""Of a longer text only the beginning is read."""

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:[.,]\d+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_CLITIC = re.compile(r"['’](?:s|m|re|ve|ll|d|t)\b")
_GRAMMAR_UNSPACED = re.compile(r"用户|什么|哪里|哪儿|怎么|[的了吗呢吧是我你您他她它们谁]")
"""Chinese question words and particles; "用户" is "user"."""

STOP_WORDS = frozenset(
    (
        "a about an and any are am as at be been being but by can could did do does doing don doesn didn for from had"
        " has have he her here hers him his how i if in into is it its just me might mine my no nor not of on or our"
        " ours shall she should so some than that the their them then there these they this those to too us very was"
        " we were what when where which while who whom whose why will with would you your yours user"
    ).split()
)
"""Words of grammar, and "user", which nearly every memory begins with."""


def words(text: str) -> list[str]:
    """The text's words in its order, folded; a stretch without spaces is one word."""
    folded = unicodedata.normalize("NFKC", text[:CHARS_MAX]).casefold()
    return _WORD.findall(_CLITIC.sub(" ", folded))


def terms(said: list[str]) -> list[str]:
    """What is compared of a text's words, in their order, repeated as they repeat."""
    telling = [word for word in said if word not in STOP_WORDS]
    stem = Stemmer.Stemmer("english", 0).stemWords  # one each: threads must not share it, and it would keep words
    return [term for word in stem(telling) for term in (_parts(word) if _IS_UNSPACED.match(word) else (word,))]


def _parts(stretch: str) -> Iterator[str]:
    for run in _GRAMMAR_UNSPACED.split(stretch):
        yield from run
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def _related_words() -> dict[str, tuple[str, ...]]:
    stem = Stemmer.Stemmer("english").stemWord
    related: dict[str, dict[str, None]] = {}
    for line in Path(__file__).with_name("related_words.txt").read_text(encoding="utf-8").splitlines():
        asked, narrows, said = line.partition("#")[0].partition(">")
        for word in map(stem, asked.split()):
            others = map(stem, (said if narrows else asked).split())
            related.setdefault(word, {}).update((other, None) for other in others if other != word)
    return {word: tuple(others) for word, others in related.items()}


RELATED: Mapping[str, tuple[str, ...]] = _related_words()
"""By the stem of a question's word: stems that a memory may say instead, from ``related_words.txt``."""
