"""What no prompt may carry: secrets, orders to a model, semmem's own delimiters. Asked before a write and at a read.

A memory may reach the store without having been screened: through the API, by an import, from a version with other
rules. So what is about to be put into a prompt is asked about again, by ``readable``.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from cachetools import LRUCache

from semmem.memory import RELEASED, Memory

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
    if redact(content) != content:
        return "secret"
    return "instruction" if is_instruction(content) else ""


def redact(text: str) -> str:
    """The text with every secret replaced by ``[redacted]``."""
    for pattern in _SECRETS:
        text = pattern.sub(_hide, text)
    text = _CARD.sub(lambda match: REDACTED if _luhn(match.group()) else match.group(), text)
    return _LONG_WORD.sub(lambda match: REDACTED if _is_mixed(match.group()) else match.group(), text)


def is_instruction(text: str) -> bool:
    """Whether a text tries to steer a model rather than to say something about somebody."""
    plain = unicodedata.normalize("NFKC", "".join(c for c in text if unicodedata.category(c) != "Cf"))
    return any(pattern.search(plain) for pattern in _INSTRUCTIONS)


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
        r"(?P<lead>\b(?:pass(?:word|code|phrase|wd)|pwd)s?\b['’\w ]{0,40}?(?:\s(?:is|was|to|are|of)\b|[:=])\s*[\"'“]?)"
        r"(?!(?:a|an|the|in|on|not|too|very|stored|kept|written|saved|managed|changed|be|manager)\b|\[redacted\])\S+",
        r"(?P<lead>\bpin(?: code| number)?\b['’\w ]{0,30}?(?:\s(?:is|was|to)\b|[:=])\s*)\d{4,8}\b",
        r"(?P<lead>\b(?:api|access|secret|private|auth|license)[ _-]?(?:key|token|secret)s?\b['’\w ]{0,30}?"
        r"(?:\s(?:is|was)\b|[:=])\s*[\"'“]?)(?!\[redacted\])(?=\S*\d|\S{16})\S{6,}",
        r"(?P<lead>\b(?:token|secret)\s*[:=]\s*[\"'“]?)(?!\[redacted\])\S{8,}",
        r"(?P<lead>\b(?:cvv|cvc)2?\b\D{0,8})\d{3,4}\b",
        r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])",
    ),
)
_LONG_WORD = re.compile(r"(?<![\w/])[\w+-]{32,}+={0,2}")
_MIXED = tuple(re.compile(kind) for kind in ("[A-Z]", "[a-z]", r"\d"))

_OBEY = r"(?:ignor(?:e|es|ing)|forget|disregard|overrid(?:e|es|ing)|bypass(?:es|ing)?|violate)"
_ORDERS = (
    r"(?:instructions?|rules?|prompts?|directives?|guidelines?|guardrails?|safety (?:checks?|rules?)|polic(?:y|ies))"
)
_INSTRUCTIONS = _patterns(
    rf"\b{_OBEY}\s+(?:\w+\s+){{0,3}}?(?:previous|prior|above|earlier|preceding|all|any|your|system|existing)\s+"
    rf"(?:\w+\s+){{0,3}}?{_ORDERS}\b",
    r"\b(?:ignore[zr]?|oublie[zr]?|olvid[ae]|ignor[ae]|ignoriere|vergiss)\b.{0,30}"
    r"\b(?:consignes|instruc[ct]i?ones|instructions|instruções|anweisungen|regeln|règles|reglas)\b",
    r"\byou (?:must|shall|should|will|have to|are (?:required|instructed|obliged) to)\s+(?:(?:now|always|never|only)\b|"
    r"(?:comply|obey|respond|reply|answer|reveal|ignore|act|pretend|output|follow|execute)\b)",
    r"\byou are (?:now|no longer)\b",
    r"\bunrestricted (?:ai|assistant|model|agent)\b",
    r"\b(?:reveal|leak|dump|expose|disclose|exfiltrate|print|output|repeat)(?:s|ed|ing)?\b.{0,60}"
    r"\b(?:system prompt|developer message|api keys?|credentials|passwords|access tokens?)\b",
    r"\bsystem (?:directives?|override)\b",
    r"\b(?:assistant|agent|model|ai|bot)\b.{0,20}\b(?:has|have|gets?|with|granted)\b.{0,20}"
    r"\b(?:admin\w*|root|superuser|full|unrestricted|elevated)\s+(?:rights?|access|privileges?|permissions?)\b",
    r"\bnever ask\b.{0,30}\b(?:confirmation|permission|approval)\b",
    r"</?\s*(?:system|assistant|developer|user|tool|instructions?|conversation)\b[^>]{0,80}>",
    r"<\|[^|>]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|(?<!#)#{2,}+\s*+(?:instructions?|system|assistant)\b",
    r"(?:^|[.!?]\s|\bnote:\s*)(?:system|assistant|developer)\s*:",
    r"(?:\[\w{2,40}\s?=[^\]\[]{1,300}\]\s?){2,}",
)
