"""What may become a memory. Pure rules over one fact and the user's words it is said to come from.

A model's facts are claims: they may be invented, copied from the prompt, planted by a pasted text, or carry a secret.
Each rule answers with one reason word, which is what is counted.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from semmem.extraction.grounding import Said
from semmem.extraction.llm import PROMPT_EXAMPLES
from semmem.memory import Fact


class Outcome(StrEnum):
    """What becomes of a fact. Redacted ones are kept without the secret, quarantined ones are never retrieved."""

    KEEP = "keep"
    REDACT = "redact"
    REJECT = "reject"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is empty for a fact that is kept as it is. ``content`` is what may be stored; empty when rejected."""

    outcome: Outcome
    reason: str = ""
    content: str = ""


REDACTED = "[redacted]"


def screen(
    fact: Fact,
    said: Said | str,
    *,
    chars_min: int = 3,
    chars_max: int = 500,
    grounded_share_min: float = 0.6,
    on_secret: Outcome = Outcome.REJECT,
    on_instruction: Outcome = Outcome.REJECT,
    own_markers: Collection[str] = (),
    prompt_examples: Collection[str] = PROMPT_EXAMPLES,
) -> Verdict:
    """Judge one fact against the user's text of its batch.

    ``own_markers`` are strings that only semmem's own injected block holds. ``on_secret`` is redact or reject,
    ``on_instruction`` reject or quarantine. A ``grounded_share_min`` of 0 turns the grounding rule off.
    Reasons: ``too_short``, ``too_long``, ``own_block``, ``secret``, ``instruction``, ``prompt_example``,
    ``not_a_sentence``, ``ungrounded``.
    """
    content = _clean(fact.content)
    if reason := _wrong_length(content, chars_min, chars_max):
        return Verdict(Outcome.REJECT, reason)
    if any(marker.casefold() in content.casefold() for marker in own_markers):
        return Verdict(Outcome.REJECT, "own_block")
    redacted = redact(content)
    if redacted != content and on_secret is not Outcome.REDACT:
        return Verdict(Outcome.REJECT, "secret")
    if is_instruction(redacted):
        quarantined = on_instruction is Outcome.QUARANTINE
        return Verdict(on_instruction, "instruction", redacted if quarantined else "")
    if same_text(redacted) in {same_text(example) for example in prompt_examples}:
        return Verdict(Outcome.REJECT, "prompt_example")
    if not _is_sentence(redacted):
        return Verdict(Outcome.REJECT, "not_a_sentence")
    if grounded_share_min > 0 and not _is_grounded(redacted, said, grounded_share_min):
        return Verdict(Outcome.REJECT, "ungrounded")
    if redacted != content:
        return Verdict(Outcome.REDACT, "secret", redacted)
    return Verdict(Outcome.KEEP, "", content)


def same_text(text: str) -> str:
    """A text reduced to what makes it the same statement: case, spacing and closing punctuation do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!?。！？…")


def redact(text: str) -> str:
    """The text with every secret replaced by ``[redacted]``."""
    for pattern in _SECRETS:
        text = pattern.sub(_hide, text)
    return _CARD.sub(lambda match: REDACTED if _luhn(match.group()) else match.group(), text)


def is_instruction(text: str) -> bool:
    """Whether a text tries to steer a model rather than to say something about somebody."""
    plain = unicodedata.normalize("NFKC", "".join(c for c in text if unicodedata.category(c) != "Cf"))
    return any(pattern.search(plain) for pattern in _INSTRUCTIONS)


def _clean(text: str) -> str:
    """One line without control characters, lone surrogates, bidi overrides or invisible tags; joiners stay."""
    kept = (c for c in re.sub(r"\s+", " ", text) if c in "\u200c\u200d" or unicodedata.category(c) not in _UNSAFE)
    return " ".join("".join(kept).split())


_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn")


def _wrong_length(content: str, chars_min: int, chars_max: int) -> str:
    if len(content) < chars_min:
        return "too_short"
    return "too_long" if len(content) > chars_max else ""


def _is_sentence(content: str) -> bool:
    """At least two words (scripts without spaces: two letters), and not a JSON value."""
    if content.startswith(("[", "{")):
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            pass
        else:
            return False
    return len(content.split()) > 1 or sum(unicodedata.category(c) == "Lo" for c in content) > 1


def _is_grounded(content: str, said: Said | str, share_min: float) -> bool:
    ground = Said(said) if isinstance(said, str) else said
    return ground.grounds(content.replace(REDACTED, " "), share_min=share_min)


def _hide(match: re.Match[str]) -> str:
    """Keep what introduces a secret (group ``lead``), hide the rest."""
    return (match.groupdict().get("lead") or "") + REDACTED


def _luhn(spelling: str) -> bool:
    """The check digit rule of ISO/IEC 7812-1, annex B, which every payment card number follows."""
    digits = [int(c) for c in spelling if c.isdigit()]
    doubled = [d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _patterns(*sources: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]\d)")

# The prefixes are those that the issuers document for their own tokens.
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL),
    *_patterns(
        r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+)?",
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
    re.compile(r"(?<![\w/])(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])(?=[\w+/-]*\d)[\w+-]{32,}={0,2}"),
)

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
    r"<\|[^|>]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|#{2,}\s*(?:instructions?|system|assistant)\b",
    r"(?:^|[.!?]\s|\bnote:\s*)(?:system|assistant|developer)\s*:",
    r"(?:\[\w{2,40}\s?=[^\]\[]{1,300}\]\s?){2,}",
)
