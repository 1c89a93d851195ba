"""What no prompt may carry: secrets, orders to a model, semmem's own delimiters. Asked before a write and at a read.

A memory may reach the store without having been screened: through the API, by an import, from a version with other
rules. So what is about to be put into a prompt is asked about again, by ``readable``.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from cachetools import LRUCache

from semmem.memory import RELEASED, Memory
from semmem.text.account_numbers import numbers_hidden
from semmem.text.disguise import revealed
from semmem.text.orders import Order, order_in

REDACTED = "[redacted]"

VERDICTS_MAX = 8192
"""Texts whose verdict is remembered, each by 16 bytes of its hash: nobody reads a deleted memory out of them."""


def readable(memory: Memory, *, chars_max: int = 8000) -> str | None:
    """Why a memory may not be put into a prompt, in one word, or None when it may.

    ``too_long``, ``own_block``, ``secret``, ``instruction``. Somebody who released a quarantined memory has read it,
    so it may read like an instruction. Pure; a text is looked at once and then remembered.
    """
    if len(memory.content) > chars_max:
        return "too_long"
    reason = _verdict(memory.content)
    return None if not reason or (reason == "instruction" and memory.metadata.get(RELEASED) is True) else reason


def _verdict(content: str) -> str:
    key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known = _verdicts.get(key)
    if known is None:
        known = _verdicts[key] = _judge(content)
    return known


_verdicts: LRUCache[bytes, str] = LRUCache(VERDICTS_MAX)  # for one thread: memories are ranked on the event loop


def _judge(content: str) -> str:
    if _OWN_BLOCK.search(content):
        return "own_block"
    if redact(content) != content or redact(plain := revealed(content)) != plain:
        return "secret"
    return "instruction" if is_instruction(content) else ""


def redact(text: str) -> str:
    """The text with every secret replaced by ``[redacted]``."""
    for pattern in _SECRETS:
        text = pattern.sub(_hide, text)
    text = numbers_hidden(text, REDACTED)
    text = _CARD.sub(lambda match: REDACTED if _luhn(match.group()) else match.group(), text)
    return _LONG_WORD.sub(lambda match: REDACTED if _is_mixed(match.group()) else match.group(), text)


def is_instruction(text: str) -> bool:
    """Whether a text tries to steer a model rather than to say something about somebody."""
    return order_in(text) is not Order.NONE


def _hide(match: re.Match[str]) -> str:
    """Keep what introduces a secret (group ``lead``), hide the rest."""
    return (match.groupdict().get("lead") or "") + REDACTED


def _is_mixed(word: str) -> bool:
    """Whether a long word looks random: it has capitals, small letters and digits."""
    return all(kind.search(word) for kind in _MIXED)


def _luhn(spelling: str) -> bool:
    """The check digit rule of ISO/IEC 7812-1, annex B, which every payment card number follows."""
    digits = [int(c) for c in spelling if c.isdigit()]
    doubled = [d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _patterns(*sources: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


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
