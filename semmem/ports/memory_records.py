"""What the journal keeps beside memories: earlier versions, what was not stored, uses, votes; and who may change them.

Whoever changes a user's memories is alone with them: a batch, or a hold. Everything here raises JournalError."""

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


class UseRecords(Protocol):
    """Where uses are counted: beside the memories, so that counting never rewrites a vector."""

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """Add (user, memory id, uses) to what is there; the later ``last_at`` stays."""


class WriteRecords(Protocol):
    """Who may change a user's memories: one at a time, batches, and holds by whoever else does; and what is asked and
    kept with every write and every removal of a memory."""

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        """An id while no batch and no other hold of the user is under way, else None. It ends by itself. A postponed
        batch is not under way; it is not claimed before the hold ends."""

    async def release(self, hold_id: str) -> None:
        """End a hold. Idempotent."""

    async def keep_version(self, memory: Memory) -> None:
        """Keep one version (without its vector), unless it is erased. Idempotent on (user, id, version)."""

    async def forget_memories(self, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True) -> int:
        """Erase all that is kept beside these memories, in one transaction: earlier versions (how many), what was
        dropped, statistics. A batch of the user that is under way is no longer allowed to write them (``allows``).
        ``shuts_turns``: a turn that one of them was made of at once, or that said the same, and that waits for its
        batch, is learnt from no more."""

    async def allows(self, batch_id: str, *memory_ids: str) -> set[str]:
        """Which of these memories a batch or hold may write: none that was forgotten since the batch began, nor any
        when the batch itself was erased or has ended: what is forgotten after its end, it would not hear of."""

    async def may_stay(self, batch_id: str, *memories: Memory) -> set[str]:
        """The ids of those that may stay of what a batch or hold has written: asked after the write. A memory is first
        marked here and then forgotten in the store, so one of the two sees the other. That the batch ended meanwhile is
        no reason to undo it, since whoever ended it may have written the same; nor that an erasure has cut it off,
        unless that takes this memory as well: what was there before, in another project perhaps, would go with it."""


class MemoryRecords(WriteRecords, Protocol):
    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """Earlier versions, oldest first."""

    async def uses(self, user: str) -> dict[str, Uses]:
        """By memory id; memories that were never used are not in it."""

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        """Count a new fact that was not stored, at the memory that says it already. A repeated try may count twice.
        Nothing is noted when ``batch``, whose fact it was, may not write that memory (``allows``)."""

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        """One for each reason, in the order of the reasons."""

    async def recorded_ids(self, user: str) -> set[str]:
        """Ids of memories with versions or statistics, whether the store still has them or not; without those that
        the batch of their turn has removed (``ProvisionalRecords.note_withdrawn``)."""

    async def is_erased(self, memory: Memory) -> bool:
        """Whether an erasure took the memory, as it is, or is about to."""

    async def settle(self, user: str, memory_id: str) -> None:
        """The store was cleared of a left-over memory."""

    async def register_user(self, user: str) -> None:
        """The user has memories, or again: they are gone through. Those of batches and of uses are known by
        themselves."""


class ManagementRecords(MemoryRecords, Protocol):
    """What the management API needs when it is told memories, or that a session has ended."""

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        """Ask for the session's waiting turns to be learnt from now; how many wait."""
