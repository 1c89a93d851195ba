"""Halves of conversations wait in memory and are written in batches, away from requests and answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from semmem.background.outage import Outage
from semmem.ports.conversations import ConversationLimits, Recorded, SaidHalf
from semmem.ports.errors import JournalError

log = logging.getLogger(__name__)

BATCH_MAX = 100
"""Halves in one transaction."""
TURN_WAIT_S = 60.0
"""How long a half waits for its turn, which is on its way to the journal from this or another process."""
RETRY_S = 5.0
PRUNE_EVERY_S = 3600.0
QUEUE_FULL, NO_TURN, TURNED_AWAY, EXPIRED = "queue_full", "no_turn", "erased", "retention_s"
"""Reasons for which something is not, or no longer, kept."""


class ConversationRecording(Protocol):
    """What records and what keeps it small. Raises JournalError."""

    async def record_said(self, halves: Sequence[SaidHalf], limits: ConversationLimits) -> Recorded:
        """Keep them, in one transaction, in any order, any number of times. A later answer of the same step takes the
        place of an earlier one. What was said before its scope, its conversation or a memory of it was erased is
        turned away, whenever it comes."""

    async def prune_conversations(self, *, said_before: float) -> Counter[str]:
        """Forget messages of turns from before this time, and conversations of which nothing is left; how many."""


class ConversationWriter:
    """Writes every ``interval_s``; at most ``queue_bytes_max`` bytes wait, further halves are dropped. What waits when
    the process dies is lost. Forgets what is older than ``retention_s``, also where nothing is recorded any more.

    ``missed`` counts halves that were not kept, ``removed`` what went again, both by reason; ``written`` messages.
    """

    def __init__(
        self,
        records: ConversationRecording,
        limits: ConversationLimits,
        *,
        retention_s: float,
        interval_s: float = 1.0,
        queue_bytes_max: int = 64 * 1024**2,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._limits = limits
        self._retention_s = retention_s
        self._interval_s = interval_s
        self._queue_bytes_max = queue_bytes_max
        self._clock = clock
        self._waiting: deque[tuple[SaidHalf, float]] = deque()
        self._bytes = 0
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()
        self._outage = Outage(log, "write conversations", level=logging.WARNING)
        self.missed = Counter({QUEUE_FULL: 0, NO_TURN: 0, TURNED_AWAY: 0})
        self.removed: Counter[str] = Counter({EXPIRED: 0, "messages_max": 0, "per_user_max": 0})
        self.written = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def limits(self) -> ConversationLimits:
        return self._limits

    def add(self, half: SaidHalf) -> None:
        """Never waits, never raises."""
        if self._bytes + half.size > self._queue_bytes_max:
            self.missed[QUEUE_FULL] += 1
            return
        self._put(half, self._clock())
        self._some.set()

    def _put(self, half: SaidHalf, since: float) -> None:
        self._waiting.append((half, since))
        self._bytes += half.size

    async def flush(self) -> bool:
        """Write what waits now; whether that could be done. What could not be written waits on, and so do halves whose
        turn is not in the journal yet."""
        async with self._writing:
            try:
                for _ in range(-(-len(self._waiting) // BATCH_MAX)):
                    await self._write_some()
            except JournalError as error:
                self._outage.failed(error)
                return False
        self._outage.worked()
        return True

    async def _write_some(self) -> None:
        batch = [self._waiting[at] for at in range(min(len(self._waiting), BATCH_MAX))]
        if not batch:
            return
        done = await self._records.record_said([half for half, _ in batch], self._limits)
        for half, _ in batch:
            self._waiting.popleft()
            self._bytes -= half.size
        self._wait_on(batch, done)
        self.written += done.kept
        self.missed[TURNED_AWAY] += done.turned_away
        self.removed.update(done.removed)

    def _wait_on(self, batch: list[tuple[SaidHalf, float]], done: Recorded) -> None:
        waiting, now = {id(half) for half in done.waiting}, self._clock()
        for half, since in batch:
            if id(half) not in waiting:
                continue
            if now - since >= TURN_WAIT_S:
                self.missed[NO_TURN] += 1
            else:
                self._put(half, since)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self._interval_s)
            self._some.clear()
            if not await self.flush():
                await asyncio.sleep(RETRY_S)
            if self._waiting:
                self._some.set()

    async def keep_small(self) -> None:
        """Until cancelled."""
        while True:
            await self.prune()
            await asyncio.sleep(PRUNE_EVERY_S)

    async def prune(self) -> None:
        """Forget what is past its time."""
        with suppress(JournalError):  # it is tried again
            before = self._clock() - self._retention_s
            while gone := (await self._records.prune_conversations(said_before=before))["messages"]:
                self.removed[EXPIRED] += gone
