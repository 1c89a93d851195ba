"""Numbers of bank accounts and identity documents in a text.

An IBAN is known by its own form (ISO 13616: the length that its country has, check digits modulo 97). Other such
numbers look like any number, a telephone's or an order's: they are known by the words before them
(account_numbers.json).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

DIGITS_MIN = 6
"""What has fewer digits is a year, a price or an age rather than the number of an account or a document."""
MIXED_CHARS_MIN, MIXED_DIGITS_MIN = 8, 3
"""Of letters and digits a number of a document needs so many."""

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_LENGTHS = {
    country: int(length) for length, countries in _DATA["iban_lengths"].items() for country in countries.split()
}
"""Of IBANs by country, as they are registered."""
_IBAN_START = re.compile(r"(?:(?<![a-z0-9])|(?<=iban))[a-z]{2}[0-9]{2}", re.IGNORECASE)
_GAPS = " \u00a0\u202f-"

_NO = r" ?(?:numbers?|no\b\.?|nr\b\.?|#)"
_DE_NR = r"[- ]?(?:nummer|nr\b\.?)"
_NUMBER_OF = "|".join(
    (rf"(?:{'|'.join(_DATA['english'])}){_NO}", rf"(?:{'|'.join(_DATA['german'])}){_DE_NR}", *_DATA["elsewhere"])
)
"""Words that say "number" themselves: others may stand between them and it."""
_THING = "|".join(_DATA["things"])
"""Words for the thing: the number stands right behind them, or behind "is"."""
_UNSPACED = "|".join(_DATA["unspaced"])
_IS = (
    r"(?:\s(?:is|was|ist|lautet|war|est(?: le)?|es(?: el)?|era|é(?: o)?|è(?: il)?)\b"
    r"|[ \u00a0]?(?:[:=：#是はが은는]|n[°º]))"
)
_WORDS = r"(?:[^\W\d]|['’ ]){0,30}?"
_MARKS = r"[\s\"'“„«(.]{0,3}"
_VALUE = r"(?P<value>(?>(?:[A-Z]{1,3}[ -]?)?\d[A-Z\d]{0,20}(?:[ ./-](?=[A-Z]{0,2}\d)[A-Z\d]{1,20}){0,8}))"
_NO_PRICE = r"(?!\s?(?:[€$£¥円]|(?:euros?|eur|dollars?|usd|pounds?|reais|years?)\b))"
_INTRODUCED = tuple(
    re.compile(rf"(?P<lead>{lead}{_MARKS})(?!(?:eur|usd|gbp|chf|jpy)\b){_VALUE}{_NO_PRICE}", re.IGNORECASE)
    for lead in (
        rf"(?:(?<!\w)(?:{_NUMBER_OF})|{_UNSPACED})(?:{_WORDS}{_IS})?",
        rf"(?<!\w)(?:{_THING})(?!\w)(?:{_NO})?{_IS}?",
    )
)
_FISCAL_CODE = re.compile(r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b", re.IGNORECASE)
"""Italy's, which is known by its form as well."""
_SOME_DIGITS = re.compile(rf"(?:\d\D*+){{{MIXED_DIGITS_MIN}}}")
"""Without them there is no number, and nothing else is looked for: most memories have none."""


def numbers_hidden(text: str, mark: str) -> str:
    """The text with ``mark`` in the place of every number of an account or an identity document."""
    if not _SOME_DIGITS.search(text):
        return text
    for pattern in _INTRODUCED:
        text = pattern.sub(lambda found: f"{found['lead']}{mark}" if _is_number(found["value"]) else found[0], text)
    text = _FISCAL_CODE.sub(mark, text)
    pieces, kept_to = [], 0
    for start, end in _ibans(text):
        pieces += [text[kept_to:start], mark]
        kept_to = end
    return "".join([*pieces, text[kept_to:]])


def _is_number(value: str) -> bool:
    digits = sum(char.isdigit() for char in value)
    signs = sum(char.isalnum() for char in value)
    return digits >= DIGITS_MIN or (signs >= MIXED_CHARS_MIN and digits >= MIXED_DIGITS_MIN and digits < signs)


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    last = 0
    for found in _IBAN_START.finditer(text):
        length = _LENGTHS.get(found[0][:2].upper())
        if length is not None and found.start() >= last and (end := _end(text, found.start(), length)):
            last = end
            yield found.start(), end


def _end(text: str, start: int, length: int) -> int:
    """Where so many letters and digits end that are an IBAN, with one gap at most between two of them; 0: they are
    none. Looks at twice the length."""
    signs, at = "", start
    while at < len(text) and len(signs) < length:
        gap = text[at] in _GAPS and text[at - 1] not in _GAPS
        if not gap:
            if not (text[at].isascii() and text[at].isalnum()):
                return 0
            signs += text[at]
        at += 1
    is_whole = len(signs) == length and not (text[at : at + 1].isascii() and text[at : at + 1].isalnum())
    return at if is_whole and int("".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])) % 97 == 1 else 0
