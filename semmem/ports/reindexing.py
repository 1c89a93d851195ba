"""What processes that share a store know of its reindex, kept in the journal's database."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ReindexState(StrEnum):
    FILLING = "filling"  # memories are copied, with vectors of the new model
    PAUSED = "paused"  # as many were embedded as somebody allowed
    WAITING = "waiting"  # for replicas that do not write to the new collection
    KEPT = "kept"  # everybody reads the new collection; the former one is kept
    DROPPING = "dropping"  # nobody shall write to the former one any more


@dataclass(frozen=True, slots=True)
class Reindex:
    """From one collection to another. ``position``: users are done up to this one, in the
    order of their digests. Times in seconds; a new one
    has the same target only when it goes on. ``memories_done`` of ``memories`` of both sides are equal so far."""

    source: str
    target: str
    signature: str
    state: ReindexState = ReindexState.FILLING
    position: str = ""
    users: int = 0
    users_done: int = 0
    memories_done: int = 0
    embedded: int = 0
    changed_at: float = 0.0


class ReindexRecords(Protocol):
    """One reindex at a time for each store, named by its first collection. Raises JournalError."""

    async def reindex(self, store: str) -> Reindex | None:
        """The one that is under way, or whose former collection is kept."""

    async def begin_reindex(self, store: str, begun: Reindex) -> Reindex:
        """Keep it, unless one to the same target is known; that one then."""

    async def claim_reindex(self, store: str, *, now: float, lease_s: float) -> bool:
        """Whether this process does the work from now on, for so long; False while another one does."""

    async def note_reindex(self, store: str, noted: Reindex, *, now: float, lease_s: float) -> bool:
        """Keep how far it is, and the claim for so long again; False when another process has claimed it since."""

    async def end_reindex(self, store: str) -> None:
        """Nothing is left of it. Idempotent."""

    async def writes_to(self, target: str) -> None:
        """Whatever this process writes, it writes to this collection too."""

    async def not_writing(self, target: str) -> int:
        """How many of the other processes that are alive do not."""
