"""What keeps the journal small, and what it tells whoever operates semmem: who is known, what waits, how batches ended,
who shares it. Nobody's content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class KnownUsers(Protocol):
    """Of whom the journal's database holds anything. Raises JournalError."""

    async def users_after(self, user: str, *, limit: int) -> list[str]:
        """The next names in order, of those who may have memories or said something; empty when there is none."""


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


@dataclass(frozen=True, slots=True)
class LiveBatch:
    """``trigger``: what made it due. ``until``: when another one may take it; ``rests``: nobody works on it before."""

    id: str
    trigger: str
    attempt: int
    until: float
    rests: bool


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """``word``: how it ended. ``turns``: how many are still kept of those that it was learnt from, the first of them
    ``said_at``."""

    id: str
    trigger: str
    attempt: int
    word: str
    ended_at: float
    turns: int
    said_at: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """``waiting``: turns that are in no batch, the oldest of them said at ``oldest_at``. ``live``: batches that are not
    ended, of ``live_number``; ``ended``: the last ones, newest first; ``words``: how many ended so of late."""

    waiting: int
    oldest_at: float | None
    live: Sequence[LiveBatch]
    live_number: int
    ended: Sequence[EndedBatch]
    words: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Replica:
    """``since``: when it began; None of one that does not say it."""

    id: str
    seen_at: float
    since: float | None
    is_own: bool
