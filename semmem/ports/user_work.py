"""One at a time changes a user's memories."""

from __future__ import annotations

from typing import Protocol


class UserWork(Protocol):
    """One at a time per user: batches, and holds by whoever else changes a user's memories. Raises JournalError."""

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        """An id while no batch and no other hold of the user is under way, else None. It ends by itself.

        A postponed batch is not under way; it is not claimed before the hold ends.
        """

    async def release(self, hold_id: str) -> None:
        """End a hold. Idempotent."""

    async def allows(self, batch_id: str, memory_id: str, *, written: bool = False) -> bool:
        """Whether a batch or hold may write this memory: not when it was forgotten since the batch began, nor when
        the batch itself was erased or has ended: what is forgotten after its end, it would not hear of.

        Asked again after the write (``written``), it decides whether the write may stay; that the batch ended
        meanwhile is then no reason to undo it, since whoever ended it may have written the same. A memory is first
        marked here and then forgotten in the store, so one of the two sees the other.
        """

    async def orphans(self, *, limit: int) -> list[tuple[str, str]]:
        """(user, memory id) of what was forgotten under batches and holds that have ended.

        A worker that died between its write and its second question may have left such a memory in the store.
        """

    async def settle(self, user: str, memory_id: str) -> None:
        """The store was cleared of a left-over memory."""
