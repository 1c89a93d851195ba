"""What is kept beside memories: earlier versions, what was not stored, and uses."""

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


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was put into a prompt, and when last (seconds; 0: never)."""

    count: int = 0
    last_at: float = 0.0


class UseRecords(Protocol):
    """Where uses are counted: beside the memories, so that counting never rewrites a vector. Raises JournalError."""

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """Add (user, memory id, uses) to what is there; the later ``last_at`` stays."""


class UseStatistics(Protocol):
    """How memories are used. Raises JournalError."""

    async def uses(self, user: str) -> dict[str, Uses]:
        """By memory id; memories that were never used are not in it."""


class VersionHistory(Protocol):
    """Earlier versions of memories. Raises JournalError."""

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """Earlier versions, oldest first."""


class CurationRecords(VersionHistory, UseStatistics, Protocol):
    """What an operator is shown of a memory. Raises JournalError."""

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        """One for each reason, in the order of the reasons."""
