"""What no prompt may carry: secrets, orders to a model, semmem's own delimiters. Asked before a write and at a read.

A memory may reach the store without having been screened: through the API, by an import, from a version with other
rules. So what is about to be put into a prompt is asked about again, by ``readable``."""

import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from cachetools import LRUCache

from semmem.memory import RELEASED, Memory
from semmem.text.disguise import revealed
from semmem.text.orders import Order, order_in

REDACTED = "[redacted]"

VERDICTS_MAX = 8192
"""Texts whose verdict is remembered, each by 16 bytes of its hash: nobody reads a deleted memory out of them."""


def readable(memory: Memory, *, chars_max: int = 8000) -> str | None:
    """Why a memory may not be put into a prompt, in one word, or None when it may. ``too_long``, ``own_block``,
    ``secret``, ``instruction``. Somebody who released a quarantined memory has read it, so it may read like an
    instruction. Pure; a text is looked at once and then remembered."""
    if len(memory.content) > chars_max:
        return "too_long"
    key = blake2b(memory.content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    reason = _verdicts.get(key)
    if reason is None:
        reason = _verdicts[key] = _judge(memory.content)
    return None if not reason or (reason == "instruction" and memory.metadata.get(RELEASED) is True) else reason


_verdicts: LRUCache[bytes, str] = LRUCache(VERDICTS_MAX)  # for one thread: memories are ranked on the event loop


def _judge(content: str) -> str:
    if _OWN_BLOCK.search(content):
        return "own_block"
    if redact(content) != content or redact(plain := revealed(content)) != plain:
        return "secret"
    return "instruction" if is_instruction(content) else ""


def redact(text: str) -> str:
    """The text with every secret replaced by ``[redacted]``."""
    for pattern in _SECRETS:  # what introduces a secret (group ``lead``) stays
        text = pattern.sub(lambda found: (found.groupdict().get("lead") or "") + REDACTED, text)
    text = numbers_hidden(text, REDACTED)
    text = _CARD.sub(lambda match: REDACTED if _luhn(match.group()) else match.group(), text)
    # a long word looks random when it has capitals, small letters and digits
    return _LONG_WORD.sub(lambda word: REDACTED if all(kind.search(word[0]) for kind in _MIXED) else word[0], text)


def is_instruction(text: str) -> bool:
    """Whether a text tries to steer a model rather than to say something about somebody."""
    return order_in(text) is not Order.NONE


def _patterns(*sources: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


def _luhn(spelling: str) -> bool:
    """The check digit rule of ISO/IEC 7812-1, annex B, which every payment card number follows."""
    digits = [int(c) for c in spelling if c.isdigit()]
    doubled = [d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


# No repetition here may be tried again from its middle: a memory of 8,000 chosen characters would hold up everybody.
_OWN_BLOCK = re.compile(r"<\s*+/?+\s*+semmem-memory", re.IGNORECASE)
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]\d)")

_FOREIGN_PASSWORDS = (
    "(?:pass|kenn)wort|mot de passe|contraseña|senha|palavra-passe|parola d'ordine|wachtwoord|hasło|lösenord|пароль"
    "|密码|密碼|パスワード|비밀번호|كلمة (?:السر|المرور)"
)
# The prefixes are those that the issuers document for their own tokens.
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL),
    *_patterns(
        r"(?<![\w-])(?P<lead>(?>(?:\w*+-)*?(?=eyJ)))[\w-]{11,}+\.[\w-]{8,}+(?:\.[\w-]++)?",
        r"\b(?:sk|rk|pk)[-_][\w-]{16,}",
        r"\b(?:gh[opusr]_|github_pat_|glpat-|hf_|npm_|pypi-|xox[abeoprs]-|ya29\.|dop_v1_|shp(?:at|ca|pa|ss)_)[\w.-]{10,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[\w-]{30,}",
        r"(?P<lead>\bbearer\s+)[\w.~+/=-]{16,}",
        r"(?P<lead>\b\w+://[^\s:/@]*:)[^\s@/]+(?=@)",
        r"(?P<lead>\b(?:pass(?:word|code|phrase|wd)|pwd?)s?\b['’\w ]{0,40}?(?:\s(?:is|was|to|are|of)\b|[:=])\s*[\"'“]?)"
        r"(?!(?:a|an|the|in|on|not|too|very|stored|kept|written|saved|managed|changed|be|manager)\b|\[redacted\])\S+",
        rf"(?P<lead>(?:{_FOREIGN_PASSWORDS})[^\d:=：]{{0,40}}?(?:\s(?:ist|lautet|est|es|é|è|это)\s|[:=：是は])\s*)(?=\S*\d)\S{{4,}}",
        r"(?P<lead>\b(?:seed|recovery|mnemonic|backup) (?:phrase|words)\b['’\w ]{0,30}?(?:\s(?:is|are)\b|[:=])\s*)"
        r"\w{2,12}(?:,? \w{2,12}){10,23}",
        r"(?P<lead>\b(?:recovery|backup|security|access|unlock|alarm|door|safe|gate|one-time)[ -]?codes?\b"
        r"['’\w ]{0,30}?(?:\s(?:is|was|are)\b|[:=])\s*)(?=\S{0,80}?\d)[\w-]{4,}",
        r"(?P<lead>\b(?:open|unlock)\w*\b['’\w ]{1,30}? (?:code|combination) )\d[\d-]{3,11}",
        r"(?P<lead>\bauthorization:\s*basic\s+)[\w+/]{8,}={0,2}",
        r"(?P<lead>\bpin(?: code| number)?\b['’\w ]{0,30}?(?:\s(?:is|was|to)\b|[:=])\s*)\d{4,8}\b",
        r"(?P<lead>(?<![A-Za-z])(?:api|access|secret|private|auth|license)[ _-]?(?:key|token|secret)s?\b['’\w ]{0,30}?"
        r"(?:\s(?:is|was)\b|[:=])\s*[\"'“]?)(?!\[redacted\])(?=\S*\d|\S{16})\S{6,}",
        r"(?P<lead>\b(?:token|secret)\s*[:=]\s*[\"'“]?)(?!\[redacted\])\S{8,}",
        r"(?P<lead>\b(?:cvv|cvc)2?\b\D{0,8})\d{3,4}\b",
        r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])",
    ),
)
_LONG_WORD = re.compile(r"(?<![\w/])[\w+-]{32,}+={0,2}")
_MIXED = tuple(re.compile(kind) for kind in ("[A-Z]", "[a-z]", r"\d"))


DIGITS_MIN = 6
"""What has fewer digits is a year, a price or an age rather than the number of an account or a document."""
MIXED_CHARS_MIN, MIXED_DIGITS_MIN = 8, 3
"""Of letters and digits a number of a document needs so many."""

_DATA = json.loads(Path(__file__).with_name("account_numbers.json").read_text("utf-8"))
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
    """The text with ``mark`` in the place of every number of an account or an identity document. An IBAN is known by
    its own form (ISO 13616: the length that its country has, check digits modulo 97). Other such numbers look like any
    number, a telephone's or an order's: they are known by the words before them (account_numbers.json)."""
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
