"""The one stemmer: Snowball's for English ("Porter2"), by PyStemmer. Words of other languages pass nearly unchanged.

And what no stemmer knows: English verbs whose past is not formed with -ed (verbs.json)."""

import json
from collections.abc import Sequence
from pathlib import Path

import Stemmer


def stems(words: Sequence[str]) -> list[str]:
    """What each folded word shares with its other forms: "hobbies" and "hobby" are "hobbi". Lone surrogates, which are
    in no word, stay as they are, and all that comes with them."""
    try:  # a stemmer each time, in less than a microsecond: threads must not share it, and its cache would keep words
        found: list[str] = Stemmer.Stemmer("english", 0).stemWords(words)
    except UnicodeEncodeError:
        return list(words)
    return found


def stem(word: str) -> str:
    """As ``stems``, of one word."""
    return stems([word])[0]


_FORMS = json.loads(Path(__file__).with_name("verbs.json").read_text("utf-8"))
IRREGULAR_VERBS: dict[str, tuple[str, str]] = {base: (past, participle) for base, (past, participle) in _FORMS.items()}
"""Base form -> past, participle, where they are not formed with -ed."""

SAME_FORM = frozenset(base for base, forms in IRREGULAR_VERBS.items() if base in forms)
"""Base forms that are a past or a participle as well ("put", "come")."""
