"""What the journal's database keeps of turns that are learnt from at once, before a batch takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from semmem.memory import Turn


class TurnState(StrEnum):
    """How far a turn has come, for whoever wants to learn from it alone."""

    MISSING = "missing"  # its words are not here, or not yet
    OPEN = "open"  # its answer may still be under way
    CLOSED = "closed"
    READ = "read"  # it was learnt from at once
    REFUSED = "refused"
    DONE = "done"  # a batch has learnt from it, or it was erased


@dataclass(frozen=True, slots=True)
class Noted:
    """A memory that a turn was made into at once, or that said the same already. ``forgotten``: somebody had that
    memory erased since."""

    turn_id: str
    memory_id: str
    forgotten: bool = False


class ProvisionalRecords(Protocol):
    """Bare ids, for as long as their turn waits. All writes are idempotent. Raises JournalError."""

    async def turn_state(self, turn_id: str) -> tuple[TurnState, Turn | None]:
        """How far the turn has come, and the turn itself, unless it is missing or erased."""

    async def left(self, *, since: float, before: float, unanswered: bool, limit: int) -> list[tuple[str, float]]:
        """Turns opened ``since`` that ended ``before`` and that nothing has learnt from, nor is about to with a batch,
        with when they ended, oldest first. ``unanswered``: a turn ends when it is opened."""

    async def note_provisional(self, turn_id: str, memory_ids: Sequence[str]) -> bool:
        """Remember which memories a turn is made into: before they are written, so that none is ever unknown.

        False when the turn waits no longer: a batch has learnt from it, or it was erased, and nothing is remembered;
        or it was refused, and whoever takes it back shall know of them.
        """

    async def note_read(self, turn_id: str) -> None:
        """The turn was learnt from at once, and is not again."""

    async def provisional(self, turn_ids: Sequence[str]) -> list[Noted]:
        """What these turns were made into, in no order."""

    async def overdue(self, user: str, *, limit: int) -> list[str]:
        """Turns of the user that are done or refused and were made into something that nobody has settled, since
        whoever should have could not."""

    async def note_withdrawn(self, turn_id: str, memory_id: str) -> None:
        """A memory was removed by the batch of its turn: its versions go when the turn is pruned. Not what somebody
        had erased meanwhile, which stays known as that."""

    async def shut(self, turn_id: str, memory_id: str) -> None:
        """What the turn was made into with this memory was taken back: nothing more is learnt from it, where it still
        waits or has not been settled."""

    async def settle_provisional(self, turn_ids: Sequence[str]) -> None:
        """Forget what else the turns were made into: their batch has learnt from them."""
