"""The durable record of turns and of what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Fact, Scope, Turn, TurnEnding
from semmem.ports.learning import Batch, BatchRules, WaitingSession


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The second half of a turn: how the answer ended.

    ``status`` is any but ``unknown_encoding``. ``answer`` is given only with ``answered``. ``answer_id`` is the API's
    name for the answer, if it has one.

    ``declined`` and ``erased`` are of no turn, and ``turn_id`` is the bare place of a message, ``<message
    id>.<ordinal>``: it was seen and is not to be kept, and the answer to it is not given; or it was said at
    ``closed_at``, and its turn was erased before it was written.
    """

    turn_id: str
    status: TurnEnding
    closed_at: float
    answer: str | None = None
    finish_reason: str | None = None
    answer_id: str | None = None


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """Where a message stood in its conversation when it was journalled, or ``declined``, and when that was first."""

    message_id: str
    ordinal: int
    at: float
    declined: bool = False


class Journal(Protocol):
    """The durable record of turns and of what became of them. Several processes may share one.

    All writes are idempotent. Raises JournalError.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        """Commit halves of turns, in one transaction, in any order, any number of times.

        A closed half without an opened one waits for it. The first opened half and the first ``answered`` close win.
        ``refused`` wins over ``answer_lost``, and ``answered`` over both: a request that was throttled, tried again
        and answered is a turn like any other. What was said before its scope was erased is turned away, whenever it
        comes.
        """

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        """When the session with this derived key began, if one of its turns was opened at or after ``seen_since``.

        Sessions derived from words are named ``<session_key>.<start as integer seconds>``.
        """

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        """Turn id and session of the user's turn that was answered under this name."""

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        """Lease the next due batch. A user with a leased batch is passed over, so one user's batches never overlap.

        An expired lease makes the same batch (same id, facts and applied) claimable again with ``attempt`` + 1.
        """

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        """Remember what was extracted, before any of it is stored, so that another try stores the same."""

    async def mark_applied(self, batch_id: str, count: int) -> None:
        """The first ``count`` facts are stored."""

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        """End a batch with a terminal status word. Its turns are done."""

    async def postpone(self, batch_id: str, *, until: float) -> None:
        """Give the lease back; the batch is not claimable before ``until``."""

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        """Ask for the session's waiting turns to be learnt from now; how many wait."""

    async def session_turns(self, last: Turn, *, limit: int) -> list[Turn]:
        """At most ``limit`` turns of a session that were not refused, oldest first: those before ``last``, and it.

        None that were opened before a memory of the session was forgotten by hand.
        """

    async def waiting_sessions(self, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        """Sessions with at least ``turns_min`` waiting turns since they were last cut, the newest of them opened after
        then. A bounded number, those with the newest turns."""

    async def waiting_turns(self, user: str, session: str) -> list[Turn]:
        """The waiting turns of a session since it was last cut, oldest first. A bounded number, the newest."""

    async def cut_session(self, user: str, session: str, *, before: float) -> None:
        """The session's turns opened before then make a batch of their own (trigger ``drift``) as soon as they are
        ready. Idempotent."""

    async def forget_turns(self, scope: Scope) -> int:
        """Erase the scope's turns, batches and history; how many turns there were."""

    async def prune(self, *, done_before: float) -> int:
        """Erase turns that were done before then, and halves that stayed alone; how many."""

    async def counts(self) -> dict[str, int]:
        """Turns by state, for metrics: ``open``, ``ready``, ``leased``, ``done``, ..."""

    async def health(self) -> None: ...


class MessageRecords(Protocol):
    """What is left of messages when their turns are gone: bare ids. Raises JournalError."""

    async def said_before(self, message_ids: Sequence[str]) -> Sequence[SaidBefore]:
        """Where and when these messages were journalled or declined; nothing of those that never were, or so long ago
        that turns of then would be pruned. A bounded number, declined ones first."""

    async def forgotten_at(self, user: str) -> float | None:
        """When anything that the user had said was last erased as a whole (all of it, or of a project, an agent, a
        session): what was said then or before may be erased. None when nothing was, or too long ago to matter."""
