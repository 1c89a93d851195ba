"""The durable record of what was said: what is written into it, and what requests ask of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Turn, TurnEnding

TURN_CHARS_MAX = 64 * 1024
"""What is kept of one message of a user's."""


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The second half of a turn: how the answer ended. ``status`` is any but ``unknown_encoding``. ``answer`` is given
    only with ``answered``. ``answer_id`` is the API's name for the answer, if it has one. ``trace`` is the place of the
    observation in a trace, as in a turn; it is not kept. ``declined`` and ``erased`` are of no turn, and ``turn_id`` is
    the bare place of a message, ``<message id>.<ordinal>``: it was seen and is not to be kept, and the answer to it is
    not given; or it was said at ``closed_at``, and its turn was erased before it was written."""

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
        """Commit halves of turns, in one transaction, in any order, any number of times. A closed half without an
        opened one waits for it. The first opened half and the first ``answered`` close win. ``refused`` wins over
        ``answer_lost``, and ``answered`` over both: a request that was throttled, tried again and answered is a turn
        like any other. What was said before its scope was erased is turned away, whenever it comes."""
