"""What is kept beside memories: earlier versions, what was not stored, uses, and who has any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Memory, Scope


@dataclass(frozen=True, slots=True)
class Dropped:
    """New facts that were not stored because a memory says the same: why, how often, and when last (seconds)."""

    reason: str
    times: int
    last_at: float


class History(Protocol):
    """Earlier versions of memories, and what was not stored because of them. Raises JournalError."""

    async def keep_version(self, memory: Memory) -> None:
        """Keep one version (without its vector), unless it is erased. Idempotent on (user, id, version)."""

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """Earlier versions, oldest first."""

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        """Count a new fact that was not stored, at the memory that says it already. A repeated try may count twice.

        Nothing is noted when ``batch``, whose fact it was, may not write that memory (``UserWork.allows``).
        """

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        """One for each reason, in the order of the reasons."""

    async def forget_versions(self, scope: Scope, memory_id: str) -> int:
        """Erase all that is kept beside one memory: earlier versions (how many), what was dropped, statistics.

        A batch of the user that is under way is no longer allowed to write it (``UserWork.allows``).
        """


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was put into a prompt, and when last (seconds; 0: never)."""

    count: int = 0
    last_at: float = 0.0


class AccessStatistics(Protocol):
    """How memories are used, kept beside them, so that counting never rewrites a vector. Raises JournalError."""

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """Add (user, memory id, uses) to what is there; the later ``last_at`` stays."""

    async def uses(self, user: str) -> dict[str, Uses]:
        """By memory id; memories that were never used are not in it."""


class UserList(Protocol):
    """Who may have memories. Raises JournalError."""

    async def register_user(self, user: str) -> None:
        """Add a user. Those of batches and of uses are known by themselves."""

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]:
        """Users whose memories were last gone through before then, longest ago first."""

    async def mark_maintained(self, user: str, *, now: float) -> None:
        """The user's memories were gone through."""

    async def recorded_ids(self, user: str) -> set[str]:
        """Ids of memories with versions or statistics, whether the store still has them or not."""

    async def forget_user(self, user: str) -> None:
        """Erase versions, statistics and the name of a user who has no memories. Turns stay."""
