"""What an erasure reaches beside the store and the journal's database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.memory import Forgetting, Memory


class InProcess(Protocol):
    """What this process holds of users apart from the store and the journal."""

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        """Drop what is erased: how many waiting halves of turns, and of which turns nothing was written yet."""

    async def written(self, *, timeout_s: float) -> None:
        """Return when the turns that wait in memory are journalled, or after ``timeout_s``."""

    async def settled(self, user: str, *, timeout_s: float) -> None:
        """Return when writes that are under way for the user have ended, or after ``timeout_s``."""

    def forget_memories(self, user: str, memory_ids: Sequence[str] | None) -> None:
        """Drop statistics that wait to be written; None: all of the user's."""


class WaitingWords(Protocol):
    """What users said: what nobody has learnt from yet, and what is kept as it was said."""

    async def take_out(self, user: str, memories: Sequence[Memory], *, until: float) -> tuple[int, int]:
        """Take what states one of the memories out of what was said then or before: from how many places, and how many
        batches were ended for it. Raises JournalError and WorkError."""

    async def stating(self, passages: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
        """Which of the user's passages say one of the memories again. Raises WorkError."""
