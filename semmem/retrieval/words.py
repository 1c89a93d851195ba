"""From a text to the terms that are compared: stems of its words without the commonest, pairs of characters in
languages that are written without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

import Stemmer

CHARS_MAX = 20_000
"""Of a longer text only the beginning is read."""

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TERM = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:[.,]\d+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_POSSESSIVE = re.compile(r"['’](?:s|m|re|ve|ll|d|t)\b")

STOP_WORDS = frozenset(
    (
        "a about an and any are am as at be been being but by can could did do does doing for from had has have he her"
        " here hers him his how i if in into is it its just me might mine my no nor not of on or our ours shall she"
        " should so some than that the their them then there these they this those to too us very was we were what when"
        " where which while who whom whose why will with would you your yours user user's don doesn didn"
    ).split()
)


def terms(text: str) -> list[str]:
    """The text's terms in its order, repeated as it repeats them."""
    folded = _POSSESSIVE.sub(" ", unicodedata.normalize("NFKC", text[:CHARS_MAX]).casefold())
    stem = Stemmer.Stemmer("english").stemWord
    return [term for word in _TERM.findall(folded) for term in _terms_of(word, stem)]


def _terms_of(word: str, stem: Callable[[str], str]) -> Iterator[str]:
    if _IS_UNSPACED.match(word):
        yield from word
        yield from (word[at : at + 2] for at in range(len(word) - 1))
    elif word not in STOP_WORDS:
        yield stem(word)
