"""The durable record of what was said: what is written into it, and what requests ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Turn, TurnEnding

TURN_CHARS_MAX = 64 * 1024
"""What is kept of one message of a user's."""


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The second half of a turn: how the answer ended.

    ``status`` is any but ``unknown_encoding``. ``answer`` is given only with ``answered``. ``answer_id`` is the API's
    name for the answer, if it has one. ``trace`` is the place of the observation in a trace, as in a turn; it is not
    kept.

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
    trace: str = ""


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """Where a message stood in its conversation when it was journalled, or ``declined``, and when that was first."""

    message_id: str
    ordinal: int
    at: float
    declined: bool = False


class TurnRecords(Protocol):
    """Where halves of turns are written. Raises JournalError."""

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        """Commit halves of turns, in one transaction, in any order, any number of times.

        A closed half without an opened one waits for it. The first opened half and the first ``answered`` close win.
        ``refused`` wins over ``answer_lost``, and ``answered`` over both: a request that was throttled, tried again
        and answered is a turn like any other. What was said before its scope was erased is turned away, whenever it
        comes.
        """


class SessionRecords(Protocol):
    """What is known of sessions when their turns are written. Raises JournalError."""

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        """When the session with this derived key began, if one of its turns was opened at or after ``seen_since``.

        Sessions derived from words are named ``<session_key>.<start as integer seconds>``.
        """

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        """Turn id and session of the user's turn that was answered under this name."""

    async def latest_answer(self, user: str, session: str) -> tuple[str, str, float] | None:
        """Of the session's newest answer that has a name: its turn's id, the name, and when it ended. Turns that many
        others followed may be passed over."""


class MessageRecords(Protocol):
    """What is left of messages when their turns are gone: bare ids. Raises JournalError."""

    async def said_before(self, message_ids: Sequence[str]) -> Sequence[SaidBefore]:
        """Where and when these messages were journalled or declined; nothing of those that never were, or so long ago
        that turns of then would be pruned. A bounded number, declined ones first."""

    async def forgotten_at(self, user: str) -> float | None:
        """When anything that the user had said was last erased as a whole (all of it, or of a project, an agent, a
        session): what was said then or before may be erased. None when nothing was, or too long ago to matter."""
