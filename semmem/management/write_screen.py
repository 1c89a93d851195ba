"""What the API is told to remember passes the same write screen as what is learnt. An administrator may override it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from semmem.extraction.screen import Ruling, Screened, screen_text
from semmem.management.access import Denied
from semmem.memory import QUARANTINED, RELEASED, MemoryStatus

OVERRIDDEN = "overridden"

Screen = Callable[[str], Screened]
"""``screen_text`` with the operator's settings bound to it."""
Count = Callable[[str, str], None]
"""Told what became of a text (reject, redact, quarantine, overridden), and why."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be stored of a text, and as what. ``metadata`` is semmem's own, to go with the caller's."""

    content: str
    status: MemoryStatus = MemoryStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)


class WriteScreen:
    """Judges what the API is told. ``on_judged`` counts every text that is not simply kept."""

    def __init__(self, screen: Screen = screen_text, *, on_judged: Count = lambda _what, _why: None) -> None:
        self._screen = screen
        self._count = on_judged

    def judge(self, content: str, *, key: str | None, override: bool) -> Admitted:
        """A text that is kept is kept as it came. Raises Denied (422) with the screen's word for one that is not.

        With a key nothing is quarantined: it would take the place of what is known under the key, unseen.
        """
        verdict = self._screen(content)
        if verdict.outcome is Ruling.KEEP:
            return Admitted(content)
        if override:
            self._count(OVERRIDDEN, verdict.reason)
            # Somebody who is allowed to has read it. A secret stays out of prompts all the same.
            return Admitted(content, metadata={RELEASED: True} if verdict.reason == "instruction" else {})
        if verdict.outcome is Ruling.REJECT or (verdict.outcome is Ruling.QUARANTINE and key is not None):
            self._count(Ruling.REJECT, verdict.reason)
            raise Denied(422, "SCREENED", f"content: {verdict.reason}")
        self._count(verdict.outcome, verdict.reason)
        if verdict.outcome is Ruling.QUARANTINE:
            return Admitted(verdict.content, MemoryStatus.QUARANTINED, {QUARANTINED: verdict.reason})
        return Admitted(verdict.content)
