"""What turns are learnt from, a batch at a time, by whom, and where that is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from semmem.memory import Fact, Memory, Scope, Turn
from semmem.ports.memory_records import MemoryRecords


@dataclass(frozen=True, slots=True)
class BatchRules:
    """When a session's turns become a batch. Seconds unless said otherwise. A turn is ready when it is closed or was
    opened ``answer_wait_s`` ago. A session is due when ``size`` ready turns wait, or all waiting turns are ready and it
    was idle for ``idle_s``, or its end was asked for, or ready turns wait from before it was cut."""

    size: int = 10
    context_turns: int = 5
    idle_s: float = 300.0
    answer_wait_s: float = 60.0
    lease_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one session to learn from, leased to one worker. ``trigger`` is ``size``, ``idle``, ``end`` or
    ``drift``. ``context`` are the turns before them: known already, never a source. ``facts`` is what an earlier try
    extracted (None when none did), and ``applied`` how many of those are already stored. ``attempt`` counts from 1.
    ``doubted``: the ids of turns in whose messages others speak as well, be it perhaps, and ``mixed`` those of them
    where that is sure; both are known once the batch was read."""

    id: str
    scope: Scope
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    trigger: str
    attempt: int
    facts: tuple[Fact, ...] | None = None
    applied: int = 0
    doubted: frozenset[str] = frozenset()
    mixed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitingSession:
    """A session of which turns wait; ``newest_at`` is when the newest of them was opened."""

    user: str
    session: str
    newest_at: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extractor found, and which of the notes that it was shown it named as wrong. ``wrong`` are places in the
    notes, from 0. ``ignored`` counts what it named in vain, by reason. ``partly``: something could not be read, or not
    as it should be; another try may find more."""

    facts: list[Fact]
    wrong: frozenset[int] = frozenset()
    ignored: Mapping[str, int] = field(default_factory=dict)
    partly: bool = False


class Extractor(Protocol):
    """Finds facts in what the user said, and may judge what was noted of it before."""

    name: str

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        """Facts from ``batch.turns``' user texts. ``notes``: provisional memories of these turns; what is not named
        stays. Raises ModelError when a language model is needed and failed."""


class BatchRecords(Protocol):
    """How far a leased batch has come. All writes are idempotent. Raises JournalError."""

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        """Remember what was extracted, before any of it is stored, so that another try stores the same."""

    async def mark_applied(self, batch_id: str, count: int) -> None:
        """The first ``count`` facts are stored."""

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        """End a batch with a terminal status word. Its turns are done."""

    async def postpone(self, batch_id: str, *, until: float) -> None:
        """Give the lease back; the batch is not claimable before ``until``."""

    async def set_aside(self, batch_id: str) -> None:
        """Whoever has the batch writes nothing until he takes it up again: meanwhile holds of its user may be had. The
        lease stays."""

    async def take_up(self, batch_id: str, *, now: float) -> bool:
        """Nobody else holds the user any more, nor can; False while a hold that was had meanwhile lasts, at most until
        its lease is over. Of a batch that has ended or is another's by now, True: whoever overstays breaks nothing."""

    async def session_turns(self, last: Turn, *, limit: int) -> list[Turn]:
        """At most ``limit`` turns of a session that were not refused, oldest first: those before ``last``, and it. None
        that were opened before a memory of the session was forgotten by hand."""


# --- turns that are learnt from at once, before a batch takes them ---------------------------------------------------


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


class ProvisionalRecords(MemoryRecords, Protocol):
    """With what is kept of memories, the bare ids of those that turns were made into, for as long as their turn waits.
    All writes are idempotent. Raises JournalError."""

    async def turn_state(self, turn_id: str) -> tuple[TurnState, Turn | None]:
        """How far the turn has come, and the turn itself, unless it is missing or erased."""

    async def left(self, *, since: float, before: float, unanswered: bool, limit: int) -> list[tuple[str, float]]:
        """Turns opened ``since`` that ended ``before`` and that nothing has learnt from, nor is about to with a batch,
        with when they ended, oldest first. ``unanswered``: a turn ends when it is opened."""

    async def note_provisional(self, turn_id: str, memory_ids: Sequence[str]) -> bool:
        """Remember which memories a turn is made into: before they are written, so that none is ever unknown. False
        when the turn waits no longer: a batch has learnt from it, or it was erased, and nothing is remembered; or it
        was refused, and whoever takes it back shall know of them."""

    async def note_read(self, turn: Turn, *, wholly: bool, hold: str = "") -> None:
        """The turn was learnt from at once, and is not again, if its words are these still. ``wholly``: nothing of it
        was left to its batch, unless ``hold``, under which it was learnt from, has been cut off."""

    async def read_wholly(self, turn_ids: Sequence[str]) -> frozenset[str]:
        """Those turns of which nothing was left to their batch."""

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
