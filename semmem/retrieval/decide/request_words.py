"""What the words of a request tell beside its vector: the words themselves, and whom it speaks of.

A vector blurs what the form of a question tells: "when was the chimney swept" and "when was the first chimney swept"
are neighbours. So the words and the pairs of neighbouring words count beside it, each by a weight of its own at the
place that its spelling hashes to. There is no list of words but the pronouns, a closed class in each language."""

import re
from itertools import pairwise
from zlib import crc32

from semmem.text.words import is_unspaced, pairs, words

BUCKETS = 1 << 14
"""Places for the weights. A feature's place is the CRC-32 of its spelling: the same everywhere, and fast."""
CHARS_MAX, PRONOUN_CHARS_MAX = 300, 2000
"""Of a longer text so much is read at its beginning and at its end, where people say what they want."""

# Looked for in small letters: to ignore case takes five times as long.
_I = re.compile(
    r"\b(?:(?<!war )i|i['’](?:m|ve|d|ll)|im|ive|ich|yo|eu|io|je)\b|\b[j]['’](?=\w)|[我咱俺私僕俺]|저는|나는"
)
_MINE = re.compile(
    r"\b(?:my|mine|our|ours|mein\w{0,2}|unser\w{0,2}|mi|mis|mío|mía|nuestr[oa]s?|mon|ma|mes|notre|nos|meus?|minhas?"
    r"|noss[oa]s?|mio|mia|miei|mie)\b|[我咱俺私僕俺](?:们|家)?[的の]|내|나의|제"
)
_ME = re.compile(
    r"\b(?:me|myself|ourselves|mir|mich|uns|conmigo|mí|moi|nous|mim|comigo|for us|with us|to us|tell us|give us)\b"
)
_WE = re.compile(r"\b(?:we|we['’](?:re|ve|d|ll)|wir|nosotr[oa]s|nós)\b|我们|咱们|私たち")
_YOU = re.compile(r"\b(?:you|your|yours|u|ur|du|dir|dich|dein\w{0,2}|tú|tu|usted|tes?|votre|vous|você)\b|[你您]")
_PERSONS = (_I, _MINE, _ME, _WE, _YOU)
FLAGS = len(_PERSONS)
"""How many flags ``flags`` gives."""


def places(text: str) -> list[int]:
    """Each once, in order; linear in what is read. Of scripts without spaces, two signs are a word."""
    read = _read(text, CHARS_MAX)
    said = [part for word in words(read) for part in (pairs(word) or [word] if is_unspaced(word) else [word])]
    spelt = {*said, *map(" ".join, pairwise(["^", *said]))}
    return sorted({crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS for feature in spelt})


def flags(text: str) -> tuple[float, ...]:
    """1.0 or 0.0 each: I; my or our; me; we; you."""
    line = _read(text, PRONOUN_CHARS_MAX).replace("İ", "i").lower()  # lower() would make two signs of this one
    return tuple(1.0 if person.search(line) else 0.0 for person in _PERSONS)


def speaks_of_user(text: str) -> bool:
    """Whether somebody speaks of himself."""
    return any(flags(text)[:4])


def _read(text: str, chars: int) -> str:
    return text if len(text) <= 2 * chars else f"{text[:chars]} {text[-chars:]}"
