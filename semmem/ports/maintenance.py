"""What the journal's database keeps for those who go through everything when nobody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.memory import Memory, Scope
from semmem.ports.history import UseStatistics
from semmem.ports.writes import HoldRecords, WriteRecords


class MaintenanceRecords(HoldRecords, WriteRecords, UseStatistics, Protocol):
    """Who has memories, and what may be left over of them. Raises JournalError."""

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]:
        """Users whose memories were last gone through before then, longest ago first."""

    async def mark_maintained(self, user: str, *, now: float) -> None:
        """The user's memories were gone through."""

    async def recorded_ids(self, user: str) -> set[str]:
        """Ids of memories with versions or statistics, whether the store still has them or not; without those that
        the batch of their turn has removed (``ProvisionalRecords.note_withdrawn``)."""

    async def said_again(self, user: str) -> dict[str, float]:
        """When what a memory says was last said again and not stored (seconds), by memory id."""

    async def forget_memories(self, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True) -> int:
        """As ``ErasureRecords.forget_memories``."""

    async def forget_user(self, user: str) -> None:
        """Erase versions, statistics and the name of a user who has no memories. Turns stay."""

    async def orphans(self, *, limit: int) -> list[tuple[str, str]]:
        """(user, memory id) of what was forgotten under batches and holds that have ended.

        A worker that died between its write and its second question may have left such a memory in the store.
        """

    async def is_erased(self, memory: Memory) -> bool:
        """Whether an erasure took the memory, as it is, or is about to."""

    async def settle(self, user: str, memory_id: str) -> None:
        """The store was cleared of a left-over memory."""


class ActiveUsers(Protocol):
    """Who has talked lately. Raises JournalError."""

    async def users_active(self, *, limit: int) -> list[str]:
        """Users, those whose turns are the latest first: at most ``limit``, fewer where some of them talk a lot."""


class Housekeeping(Protocol):
    """What keeps the database small, and says how full it is. Raises JournalError."""

    async def counts(self) -> dict[str, int]:
        """Turns by state, for metrics: ``open``, ``ready``, ``leased``, ``done``, ..."""

    async def check_room(self) -> None:
        """Raises JournalFull when nothing can be written now, as far as this machine's disk tells."""

    async def prune(self, *, done_before: float) -> int:
        """Erase turns that were done before then, and halves that stayed alone; how many."""

    async def prune_states(self, *, now: float) -> None:
        """Erase states of sessions that are past their time."""

    async def prune_marks(self, *, forgotten_before: float) -> None:
        """Of erasures before then nothing can be under way any more."""
