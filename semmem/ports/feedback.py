"""Where it is kept which memories were called helpful, and which were not. Numbers alone, no content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class VoteRow:
    """Of one memory: how often it was called helpful (``up``) and not (``down``), when last (Unix time), and a
    ``number`` that rises with every vote on any memory."""

    user: str
    memory_id: str
    up: int
    down: int
    last_at: float
    number: int


class FeedbackRecords(Protocol):
    """All raise JournalError."""

    async def add_votes(
        self, user: str, memories: Mapping[str, float], *, helpful: bool, now: float, entries_max: int
    ) -> None:
        """One vote for each of these memories, by id; the value is when it was last said: what was voted before then
        does not count any more. Of all users' memories at most ``entries_max`` have votes, those voted on last."""

    async def votes_since(self, number: int) -> Sequence[VoteRow]:
        """Those with a greater number, in its order."""
