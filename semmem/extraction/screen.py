"""What may become a memory. Pure rules over one fact and the user's words it is said to come from.

A model's facts are claims: they may be invented, copied from the prompt, planted by a pasted text, or carry a secret.
Each rule answers with one reason word, which is what is counted.
"""

import json
import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from semmem.extraction.llm import PROMPT_EXAMPLES
from semmem.memory import Fact
from semmem.text.disguise import revealed
from semmem.text.grounding import SourceText
from semmem.text.orders import Order, order_in
from semmem.text.screening import REDACTED, redact


class Ruling(StrEnum):
    """What is done with a fact. Redacted ones are kept without the secret, quarantined ones are never retrieved."""

    KEEP = "keep"
    REDACT = "redact"
    REJECT = "reject"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Screened:
    """``reason`` is empty for a fact that is kept as it is. ``content`` is what may be stored; empty when rejected."""

    outcome: Ruling
    reason: str = ""
    content: str = ""


def screen(
    fact: Fact,
    said: SourceText | str,
    *,
    chars_min: int = 3,
    chars_max: int = 500,
    grounded_share_min: float = 0.6,
    on_secret: Ruling = Ruling.REJECT,
    on_instruction: Ruling = Ruling.REJECT,
    own_markers: Collection[str] = (),
) -> Screened:
    """Judge one fact against the user's text of its batch.

    As ``screen_text``, and then what holds for claims about somebody: a ``grounded_share_min`` of 0 turns the
    grounding rule off. Further reasons: ``prompt_example``, ``not_a_sentence``, ``ungrounded``."""
    verdict = screen_text(
        fact.content,
        chars_min=chars_min,
        chars_max=chars_max,
        on_secret=on_secret,
        on_instruction=on_instruction,
        own_markers=own_markers,
    )
    if verdict.outcome is Ruling.REJECT or verdict.reason == "instruction":
        return verdict
    if same_text(verdict.content) in map(same_text, PROMPT_EXAMPLES):
        return Screened(Ruling.REJECT, "prompt_example")
    if not _is_sentence(verdict.content):
        return Screened(Ruling.REJECT, "not_a_sentence")
    ground, told = SourceText(said) if isinstance(said, str) else said, verdict.content.replace(REDACTED, " ")
    if grounded_share_min > 0 and not ground.grounds(told, share_min=grounded_share_min):
        return Screened(Ruling.REJECT, "ungrounded")
    return verdict


def screen_text(
    text: str,
    *,
    chars_min: int = 3,
    chars_max: int = 500,
    on_secret: Ruling = Ruling.REJECT,
    on_instruction: Ruling = Ruling.REJECT,
    own_markers: Collection[str] = (),
) -> Screened:
    """Judge what anybody wants to have stored, learnt or told.

    ``own_markers`` are strings that only semmem's own injected block holds. ``on_secret`` is reject, redact or
    quarantine (what is quarantined is redacted), ``on_instruction`` reject or quarantine: what happens to what is
    certainly an order to a model. What only may be one is quarantined in any case, for somebody to read.
    Reasons: ``too_short``, ``too_long``, ``own_block``, ``secret``, ``instruction``."""
    content = _clean(text)
    if not chars_min <= len(content) <= chars_max:
        return Screened(Ruling.REJECT, "too_short" if len(content) < chars_min else "too_long")
    if any(marker.casefold() in content.casefold() for marker in own_markers):
        return Screened(Ruling.REJECT, "own_block")
    redacted = redact(content)
    if redacted == content and (hidden := redact(plain := revealed(content))) != plain:
        content, redacted = plain, hidden  # a secret in disguise
    if redacted != content and on_secret is Ruling.REJECT:
        return Screened(Ruling.REJECT, "secret")
    if (order := order_in(redacted)) is not Order.NONE:
        outcome = on_instruction if order is Order.CERTAIN else Ruling.QUARANTINE
        return Screened(outcome, "instruction", redacted if outcome is Ruling.QUARANTINE else "")
    # What an earlier try has redacted must not lose its verdict with its secret.
    if on_secret is Ruling.QUARANTINE and REDACTED in redacted:
        return Screened(Ruling.QUARANTINE, "secret", redacted)
    if redacted != content:
        return Screened(Ruling.REDACT, "secret", redacted)
    return Screened(Ruling.KEEP, "", content)


def same_text(text: str) -> str:
    """A text reduced to what makes it the same statement: case, spacing and closing punctuation do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!?。！？…")


def _clean(text: str) -> str:
    """One line without control characters, lone surrogates, bidi overrides or invisible tags; joiners stay."""
    kept = (c for c in re.sub(r"\s+", " ", text) if c in "\u200c\u200d" or unicodedata.category(c) not in _UNSAFE)
    return " ".join("".join(kept).split())


_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn")


def _is_sentence(content: str) -> bool:
    """At least two words (scripts without spaces: two letters), and not a JSON value."""
    if content.startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            json.loads(content)
            return False
    return len(content.split()) > 1 or sum(unicodedata.category(c) == "Lo" for c in content) > 1
