"""What the journal's database keeps for those who change memories, one at a time per user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.memory import Memory, Scope
from semmem.ports.history import UseStatistics


class HoldRecords(Protocol):
    """One at a time per user: batches, and holds by whoever else changes a user's memories. Raises JournalError."""

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        """An id while no batch and no other hold of the user is under way, else None. It ends by itself.

        A postponed batch is not under way; it is not claimed before the hold ends.
        """

    async def release(self, hold_id: str) -> None:
        """End a hold. Idempotent."""


class RemovalRecords(Protocol):
    """What goes with a memory that is removed. Raises JournalError."""

    async def forget_versions(self, scope: Scope, memory_id: str) -> int:
        """Erase all that is kept beside one memory: earlier versions (how many), what was dropped, statistics.

        A batch of the user that is under way is no longer allowed to write it (``WriteRecords.allows``).
        """


class QuotaRecords(RemovalRecords, UseStatistics, Protocol):
    """What decides which memories go for want of room, and what goes with them. Raises JournalError."""


class WriteRecords(RemovalRecords, Protocol):
    """What is asked and kept with every write of a memory. Raises JournalError."""

    async def keep_version(self, memory: Memory) -> None:
        """Keep one version (without its vector), unless it is erased. Idempotent on (user, id, version)."""

    async def allows(self, batch_id: str, memory_id: str) -> bool:
        """Whether a batch or hold may write this memory: not when it was forgotten since the batch began, nor when
        the batch itself was erased or has ended: what is forgotten after its end, it would not hear of."""

    async def may_stay(self, batch_id: str, memory: Memory) -> bool:
        """Whether what a batch or hold has written may stay: asked after the write. A memory is first marked here and
        then forgotten in the store, so one of the two sees the other.

        That the batch ended meanwhile is no reason to undo it, since whoever ended it may have written the same; nor
        that an erasure has cut it off, unless that takes this memory as well: what was there before, in another
        project perhaps, would go with it.
        """


class DedupRecords(WriteRecords, Protocol):
    """What is kept when facts are compared with memories and stored. Raises JournalError."""

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        """Count a new fact that was not stored, at the memory that says it already. A repeated try may count twice.

        Nothing is noted when ``batch``, whose fact it was, may not write that memory (``allows``).
        """

    async def note_provisional(self, turn_id: str, memory_ids: Sequence[str]) -> bool:
        """As ``ProvisionalRecords.note_provisional``."""

    async def settle(self, user: str, memory_id: str) -> None:
        """The store was cleared of a left-over memory."""


class ManagementRecords(WriteRecords, UseStatistics, Protocol):
    """What the management API needs when it is told memories, or that a session has ended. Raises JournalError."""

    async def register_user(self, user: str) -> None:
        """Add a user whose memories are gone through. Those of batches and of uses are known by themselves."""

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        """Ask for the session's waiting turns to be learnt from now; how many wait."""
