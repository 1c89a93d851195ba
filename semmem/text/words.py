"""From a text to its words: the one tokeniser. Who needs signs as well, or dates in one piece, builds on ``WORD``'s
parts and says so (``contradiction.reading``, ``times.tokens``)."""

import json
import re
import unicodedata
from functools import cache
from pathlib import Path

CHARS_MAX = 20_000
"""Of a longer text only the beginning is read, where nobody asks for all of it."""

UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words, as the inside of a character class: Thai, Lao, Burmese, Khmer, Japanese,
Chinese."""
WORD = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:(?:[.,]|(?<=\d):)\d+)*")
"""A word, a number with its points, a time of day, or a stretch without spaces."""
_ASCII_WORD = re.compile(r"[^\W_]+(?:(?:[.,]|(?<=\d):)\d+)*", re.ASCII)
"""The same where all is ASCII, as most is: a class without ranges is matched in a third of the time."""
_WRITTEN = re.compile(r"[^\W_]+(?:['’.@-][^\W_]+)*")
ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|st|prof|vs|approx|nr|bzw|ca|etc|e\.g|i\.e|z\.b|a\.m|p\.m|[a-z]|\d{1,3})\.$", re.I
)
"""Words whose full stop ends no sentence, at the end of a text."""
_CLITIC = re.compile(r"['’](?:s|m|re|ve|ll|d|t)\b")
_NEGATED = re.compile(r"\b(?:(can)not|(\w+?)n['’]t)\b")
_CLIPPED = {"ca": "can", "wo": "will", "sha": "shall"}
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def words(text: str, *, chars_max: int | None = CHARS_MAX) -> list[str]:
    """The text's words in its order, folded and without clitics ("user's" is "user", "don't" is "don"). A stretch
    without spaces is one word. ``chars_max`` None: all of the text is read."""
    head = text[:chars_max]
    if head.isascii():
        folded = head.lower()
        return _ASCII_WORD.findall(_CLITIC.sub(" ", folded) if "'" in folded else folded)
    folded = unicodedata.normalize("NFKC", head).casefold()
    return WORD.findall(_CLITIC.sub(" ", folded))


def written_words(text: str) -> list[str]:
    """The words as they stand, to be written again: apostrophes, points, hyphens and @ inside of them are kept."""
    return _WRITTEN.findall(text)


def negations_apart(text: str) -> str:
    """Lower-case text with "not" as a word of its own: "can't" and "cannot" are "can not", "isn't" is "is not"."""
    return _NEGATED.sub(lambda found: f"{found[1] or _CLIPPED.get(found[2], found[2])} not", text)


def is_unspaced(word: str) -> bool:
    """Whether a word is a stretch of a script without spaces."""
    return _IS_UNSPACED.match(word) is not None


def counted(text: str) -> int:
    """How many words a text has; of Chinese and Japanese two characters count as one."""
    return len(text.split()) + len(_WIDE.findall(text)) // 2


def pairs(stretch: str) -> list[str]:
    """Every two neighbouring signs of a stretch, which stand for its words."""
    return [stretch[at : at + 2] for at in range(len(stretch) - 1)]


COURTESIES_MAX = 8
"""So many may stand before an order."""


def behind_courtesies(said: str) -> list[int]:
    """The places behind words of courtesy, the last one first; the beginning is one of them. Linear in their length.
    The words are data (courtesies.json), of ten languages: "hey, could you please", "kannst du mal bitte"."""
    places = [0]
    while len(places) <= COURTESIES_MAX and (found := _courtesy().match(said, places[-1])) is not None:
        places.append(found.end())
    return places[::-1]


@cache
def _courtesy() -> re.Pattern[str]:
    words = json.loads(Path(__file__).with_name("courtesies.json").read_text("utf-8"))
    wide = r"(?=[\s,.!?:;，。！？、]|$|[\u3040-\u30ff\u3400-\u9fff])"
    return re.compile(rf"(?:{'|'.join(words)}){wide}[\s,.!?:;，。！？、]*", re.IGNORECASE)
