"""Canaries: words like names, each of one user and one fact, that nothing but their fact can bring about."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator

CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aeio"
SYLLABLES = 5
USER_BITS, NUMBER_BITS, CHECK_BITS = 10, 14, 6
USERS_MAX, NUMBERS_MAX = 1 << USER_BITS, 1 << NUMBER_BITS
BITS = USER_BITS + NUMBER_BITS + CHECK_BITS
_MASK = (1 << BITS) - 1

_WORD = re.compile(rf"(?<![a-z])(?:[{CONSONANTS}][{VOWELS}]){{{SYLLABLES}}}(?![a-z])", re.IGNORECASE)


class Words:
    """The words of one run; ``seed`` says which. Number 0 of a user is the user's own name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._factor = random.Random(seed).randrange(1 << BITS) | 1
        self._inverse = pow(self._factor, -1, 1 << BITS)

    def word(self, user: int, number: int) -> str:
        """A capitalised word of ten letters, the same for the same seed, user and number.

        Raises ValueError for a user or a number that has no place in a word.
        """
        if not (0 <= user < USERS_MAX and 0 <= number < NUMBERS_MAX):
            raise ValueError(f"no word for user {user}, number {number}")
        known = user << NUMBER_BITS | number
        return _spelt(self._mixed(known << CHECK_BITS | self._check(known))).capitalize()

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """User and number of each canary in a text, however it is capitalised, as often as it stands there."""
        for match in _WORD.finditer(text):
            known, check = divmod(self._unmixed(_read(match[0].lower())), 1 << CHECK_BITS)
            if check == self._check(known):
                yield divmod(known, NUMBERS_MAX)

    def _check(self, known: int) -> int:
        return hashlib.sha256(f"{self._seed}-{known}".encode()).digest()[0] >> (8 - CHECK_BITS)

    def _mixed(self, value: int) -> int:
        value = (_folded(value) * self._factor) & _MASK
        return _folded(value)

    def _unmixed(self, value: int) -> int:
        return _folded((_folded(value) * self._inverse) & _MASK)


def _folded(value: int) -> int:
    """Its own inverse: the upper half of the bits added to the lower one."""
    return value ^ value >> BITS // 2


def _spelt(value: int) -> str:
    syllables = (value >> 6 * place & 63 for place in range(SYLLABLES))
    return "".join(CONSONANTS[syllable >> 2] + VOWELS[syllable & 3] for syllable in syllables)


def _read(word: str) -> int:
    pairs = zip(word[::2], word[1::2], strict=True)
    return sum((CONSONANTS.index(c) << 2 | VOWELS.index(v)) << 6 * place for place, (c, v) in enumerate(pairs))
