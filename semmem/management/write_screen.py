"""What the API is told to remember passes the same write screen as what is learnt. An administrator may override it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from semmem.extraction.screen import Ruling, Screened, screen_text
from semmem.management.access import Denied
from semmem.memory import QUARANTINED, RELEASED, MemoryStatus
from semmem.ports.events import Announce, ApiScreened, nobody_listens

OVERRIDDEN = "overridden"

Screen = Callable[[str], Screened]
"""``screen_text`` with the operator's settings bound to it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be stored of a text, and as what. ``metadata`` is semmem's own, to go with the caller's."""

    content: str
    status: MemoryStatus = MemoryStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class WriteScreen:
    """Judges what the API is told. ApiScreened is announced for every text that is not simply kept."""

    screen: Screen = screen_text
    _: KW_ONLY
    announce: Announce = nobody_listens

    def judge(self, content: str, *, key: str | None, override: bool) -> Admitted:
        """A text that is kept is kept as it came. Raises Denied (422) with the screen's word for one that is not.

        With a key nothing is quarantined: it would take the place of what is known under the key, unseen.
        """
        verdict = self.screen(content)
        if verdict.outcome is Ruling.KEEP:
            return Admitted(content)
        if override:
            self.announce(ApiScreened(OVERRIDDEN, verdict.reason))
            # Somebody who is allowed to has read it. A secret stays out of prompts all the same.
            return Admitted(content, metadata={RELEASED: True} if verdict.reason == "instruction" else {})
        if verdict.outcome is Ruling.REJECT or (verdict.outcome is Ruling.QUARANTINE and key is not None):
            self.announce(ApiScreened(Ruling.REJECT, verdict.reason))
            raise Denied(422, "SCREENED", f"content: {verdict.reason}")
        self.announce(ApiScreened(verdict.outcome, verdict.reason))
        if verdict.outcome is Ruling.QUARANTINE:
            return Admitted(verdict.content, MemoryStatus.QUARANTINED, {QUARANTINED: verdict.reason})
        return Admitted(verdict.content)
