"""What turns are learnt from, a batch at a time, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Fact, Scope, Turn


@dataclass(frozen=True, slots=True)
class BatchRules:
    """When a session's turns become a batch. Seconds unless said otherwise.

    A turn is ready when it is closed or was opened ``answer_wait_s`` ago. A session is due when ``size`` ready turns
    wait, or all waiting turns are ready and it was idle for ``idle_s``, or its end was asked for, or ready turns wait
    from before it was cut.
    """

    size: int = 10
    context_turns: int = 5
    idle_s: float = 300.0
    answer_wait_s: float = 60.0
    lease_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one session to learn from, leased to one worker.

    ``trigger`` is ``size``, ``idle``, ``end`` or ``drift``. ``context`` are the turns before them: known already, never
    a source. ``facts`` is what an earlier try extracted (None when none did), and ``applied`` how many of those are
    already stored. ``attempt`` counts from 1.
    """

    id: str
    scope: Scope
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    trigger: str
    attempt: int
    facts: tuple[Fact, ...] | None = None
    applied: int = 0


@dataclass(frozen=True, slots=True)
class WaitingSession:
    """A session of which turns wait; ``newest_at`` is when the newest of them was opened."""

    user: str
    session: str
    newest_at: float


class Extractor(Protocol):
    """Finds facts in what the user said."""

    name: str

    async def extract(self, batch: Batch) -> list[Fact]:
        """Facts from ``batch.turns``' user texts. Raises ModelError when a language model is needed and failed."""
