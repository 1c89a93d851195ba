"""Whom a request speaks of, by its pronouns: a closed class of words in each language."""

from __future__ import annotations

import re

READ_CHARS_MAX = 2000
"""Of a longer text so much is read, at its beginning and at its end."""

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
_NUMBERS_OF = (_I, _MINE, _ME, _WE, _YOU)
COUNT = len(_NUMBERS_OF)
"""How many flags ``flags`` gives."""


def flags(text: str) -> tuple[float, ...]:
    """1.0 or 0.0 each: I; my or our; me; we; you."""
    line = _read(text).replace("İ", "i").lower()  # lower() would make two signs of this one
    return tuple(1.0 if person.search(line) else 0.0 for person in _NUMBERS_OF)


def speaks_of_user(text: str) -> bool:
    """Whether somebody speaks of himself."""
    return any(flags(text)[:4])


def _read(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS_MAX else f"{text[:READ_CHARS_MAX]} {text[-READ_CHARS_MAX:]}"
