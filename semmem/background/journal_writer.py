"""The journal's writer: halves of turns are committed behind the requests, many at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from semmem.background.outage import Outage
from semmem.memory import Forgetting, Turn, TurnEnding
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, JournalCommitted, nobody_listens
from semmem.ports.recording import TurnClosed, TurnRecords

Committed = Callable[[Sequence[Turn], Sequence[TurnClosed]], None]
"""Is told what was committed; it neither waits nor raises."""


def nobody_learns(_opened: Sequence[Turn], _closed: Sequence[TurnClosed]) -> None:
    """The default listener."""


log = logging.getLogger(__name__)


class JournalWriter:
    """Writes halves of turns behind the requests, many in one commit.

    ``offer`` never waits. A half waits at most ``commit_interval_s`` for company. When the journal fails, halves are
    kept and tried again; beyond ``queue_max`` new ones are dropped and counted (``dropped``), since memory only adds.
    What says that words are not to be kept has as much room again: without it they would be kept. ``committed`` is told
    of halves once they are safe.
    """

    def __init__(
        self,
        journal: TurnRecords,
        *,
        queue_max: int = 10_000,
        commit_interval_s: float = 0.02,
        commit_halves_max: int = 500,
        retry_s: float = 0.5,
        announce: Announce = nobody_listens,
        committed: Committed = nobody_learns,
    ) -> None:
        self._journal = journal
        self._queue: deque[Turn | TurnClosed] = deque()
        self._queue_max = queue_max
        self._commit_interval_s = commit_interval_s
        self._commit_halves_max = commit_halves_max
        self._retry_s = retry_s
        self._announce = announce
        self._committed = committed
        self._waiting = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._outage = Outage(log, "journal write")
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def fails(self) -> bool:
        """Whether something waits that could not be committed when it was last tried."""
        return self._outage.lasts and len(self._queue) > 0

    def offer(self, half: Turn | TurnClosed) -> bool:
        """Accept a half for writing; False when the queue is full and it was dropped."""
        forbids = isinstance(half, TurnClosed) and half.status in (TurnEnding.DECLINED, TurnEnding.REFUSED)
        if len(self._queue) >= self._queue_max * (2 if forbids else 1):
            self.dropped += 1
            return False
        self._queue.append(half)
        self._idle.clear()
        self._waiting.set()
        return True

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        """Drop the halves of erased turns; how many, and the turns of which nothing is left here.

        That their words were said is still written, as bare places: whoever is sent them again shall know them.
        Those that are being committed at this moment are not tried again; the journal decides about this try.
        """
        erased = {half.id for half in self._queue if isinstance(half, Turn) and what.covers_turn(half)}
        erased -= {half.id for half in self._queue if isinstance(half, Turn) and not what.covers_turn(half)}
        gone = [half for half in self._queue if _is_of(half, what, erased)]
        left = [half for half in self._queue if not _is_of(half, what, erased)]
        self._queue = deque([*left, *(_place(half) for half in gone if isinstance(half, Turn) and half.message_id)])
        self._settle()
        return len(gone), sorted(erased)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._waiting.wait()
            await asyncio.sleep(self._commit_interval_s)
            if not await self._commit():
                await asyncio.sleep(self._retry_s)

    async def _commit(self) -> bool:
        halves = [self._queue[i] for i in range(min(len(self._queue), self._commit_halves_max))]
        if not halves:
            return True  # all that waited was erased
        opened = [half for half in halves if isinstance(half, Turn)]
        closed = [half for half in halves if isinstance(half, TurnClosed)]
        started = time.perf_counter()
        try:
            await self._journal.record(opened, closed)
        except Exception as error:  # whatever it is: a writer that dies would take every later turn with it
            self._announce(JournalCommitted("error", time.perf_counter() - started))
            why = error if isinstance(error, JournalError) else type(error).__name__
            self._outage.failed(f"{len(self._queue)} halves wait, {why}")
            return False
        self._outage.worked()
        committed = {id(half) for half in halves}  # only now: a commit that was cancelled or failed keeps them
        while self._queue and id(self._queue[0]) in committed:
            self._queue.popleft()
        self._settle()
        self._announce(JournalCommitted("ok", time.perf_counter() - started))
        self._committed(opened, closed)
        return True

    def _settle(self) -> None:
        if not self._queue:
            self._waiting.clear()
            self._idle.set()

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything offered is committed; False when ``timeout_s`` was not enough."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


def _is_of(half: Turn | TurnClosed, what: Forgetting, erased: set[str]) -> bool:
    return what.covers_turn(half) if isinstance(half, Turn) else half.turn_id in erased


def _place(turn: Turn) -> TurnClosed:
    return TurnClosed(f"{turn.message_id}.{turn.ordinal}", TurnEnding.ERASED, turn.opened_at)
