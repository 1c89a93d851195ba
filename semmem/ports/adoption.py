"""What is asked of a journal whose process will not come back, by whoever takes over what waits in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.memory import Memory, Turn
from semmem.ports.conversations import ConversationLimits, KeptConversation, KeptMessage
from semmem.ports.erasure import ErasureRecords, KnownErasures
from semmem.ports.provisional import Noted
from semmem.ports.recording import TurnClosed, TurnRecords
from semmem.ports.writes import WriteRecords


class AdoptedJournal(KnownErasures, ErasureRecords, Protocol):
    """The one that is left behind. Raises JournalError."""

    async def leased_until(self) -> float:
        """When the last lease of a batch or hold ends (seconds; 0: there is none): until then somebody may be at work
        on it."""

    async def unlearnt_halves(self, *, after: str, limit: int) -> tuple[list[Turn], list[TurnClosed], str | None]:
        """The next turns, by id, that were not learnt from to the end, in a batch or not, with their answers, and
        answers that are alone; and the last id, None when there were no more."""

    async def mark_adopted(self, turn_ids: Sequence[str], *, now: float) -> None:
        """Another journal has them: nobody learns from them here any more. Idempotent."""

    async def kept_versions(self, *, offset: int, limit: int) -> list[Memory]:
        """Earlier versions of memories, a page at a time."""

    async def kept_conversations(self, *, after: str, limit: int) -> list[tuple[KeptConversation, list[KeptMessage]]]:
        """The next by id, with all of their messages."""

    async def named_users(self) -> list[str]:
        """Who may have memories."""

    async def provisional(self, turn_ids: Sequence[str]) -> list[Noted]:
        """As ``ProvisionalRecords.provisional``."""


class AdoptingJournal(TurnRecords, WriteRecords, KnownErasures, ErasureRecords, Protocol):
    """The one that goes on. Raises JournalError."""

    async def put_conversation(
        self, kept: KeptConversation, messages: Sequence[KeptMessage], limits: ConversationLimits
    ) -> KeptConversation | None:
        """As ``ConversationRecords.put_conversation``."""

    async def note_provisional(self, turn_id: str, memory_ids: Sequence[str]) -> bool:
        """As ``ProvisionalRecords.note_provisional``."""
