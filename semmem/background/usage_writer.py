"""Rows of the statistics of use wait in memory and are written in batches, away from requests and answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from semmem.background.outage import Outage
from semmem.ports.errors import JournalError
from semmem.ports.usage import DAY_S, UsageRecords, UsageRow

log = logging.getLogger(__name__)

BATCH_MAX = 1000
"""Rows in one transaction, when many wait because the journal was away."""
RETRY_S = 30.0
PRUNE_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class UsageRetention:
    """Days that single requests, sums by hour and sums by day are kept."""

    requests_days: int = 30
    hours_days: int = 90
    days_days: int = 1100


class UsageWriter:
    """Writes when ``rows`` wait and every ``interval_s``; at most ``queue_max`` wait, further ones are ``dropped``.
    What waits when the process dies is lost. Forgets what is past its time, also where nothing is recorded any more."""

    def __init__(
        self,
        records: UsageRecords,
        retention: UsageRetention,
        *,
        rows: int = 100,
        interval_s: float = 3600.0,
        queue_max: int = 10_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._retention = retention
        self._rows = rows
        self._interval_s = interval_s
        self._queue_max = max(queue_max, rows)
        self._clock = clock
        self._waiting: list[UsageRow] = []
        self._due = asyncio.Event()
        self._writing = asyncio.Lock()
        self._outage = Outage(log, "write the statistics of use", level=logging.WARNING)
        self.dropped = self.written = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, row: UsageRow) -> None:
        """Never waits, never raises."""
        if len(self._waiting) >= self._queue_max:
            self.dropped += 1
            return
        self._waiting.append(row)
        if len(self._waiting) >= self._rows:
            self._due.set()

    async def flush(self) -> bool:
        """Write what waits now; whether that could be done. What could not be written waits on."""
        async with self._writing:
            try:
                while batch := self._waiting[:BATCH_MAX]:
                    self.written += await self._records.add_usage(batch)
                    del self._waiting[: len(batch)]
            except JournalError as error:
                self._outage.failed(error)
                return False
        self._outage.worked()
        return True

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._due.wait()
            self._due.clear()
            if not await self.flush():
                await asyncio.sleep(RETRY_S)
                self._due.set()

    async def keep_small(self) -> None:
        """Until cancelled."""
        while True:
            await self.prune()
            await asyncio.sleep(PRUNE_EVERY_S)

    async def prune(self) -> None:
        """Forget what is past its time."""
        now, kept = self._clock(), self._retention
        with suppress(JournalError):  # it is tried again
            await self._records.prune_usage(
                requests_before=now - kept.requests_days * DAY_S,
                hours_before=now - kept.hours_days * DAY_S,
                days_before=now - kept.days_days * DAY_S,
            )
