"""The one stemmer: Snowball's for English ("Porter2"), by PyStemmer. Words of other languages pass nearly unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import Stemmer


def stems(words: Sequence[str]) -> list[str]:
    """What each folded word shares with its other forms: "hobbies" and "hobby" are "hobbi".

    Lone surrogates, which are in no word, stay as they are, and all that comes with them."""
    try:
        found: list[str] = _stemmer().stemWords(words)
    except UnicodeEncodeError:
        return list(words)
    return found


def stem(word: str) -> str:
    """As ``stems``, of one word."""
    return stems([word])[0]


def _stemmer() -> Stemmer.Stemmer:
    """One each time, which takes less than a microsecond: threads must not share it, and its cache would keep words."""
    return Stemmer.Stemmer("english", 0)
