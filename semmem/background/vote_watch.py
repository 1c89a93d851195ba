"""Knows what users said of their memories on any replica, a few seconds later."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from semmem.background.outage import Outage
from semmem.ports.errors import JournalError
from semmem.ports.feedback import FeedbackRecords
from semmem.retrieval.feedback import Votes

log = logging.getLogger(__name__)

WHOLE_EVERY_S = 3600.0
"""All of them are read again, since those that went with their memories have no number any more."""


class VoteWatch:
    """Keeps ``votes`` as ``records`` has them, at most ``refresh_s`` behind while these answer."""

    def __init__(
        self,
        records: FeedbackRecords,
        votes: Votes,
        *,
        refresh_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._votes = votes
        self._refresh_s = refresh_s
        self._clock = clock
        self._whole_at = -WHOLE_EVERY_S
        self._one_at_a_time = asyncio.Lock()  # what was read first would be taken last
        self._outage = Outage(log, "read what was said of memories", level=logging.WARNING)

    async def refresh(self) -> None:
        """Read what is new. Raises JournalError; what was known stays."""
        async with self._one_at_a_time:
            now = self._clock()
            whole = now - self._whole_at >= WHOLE_EVERY_S
            rows = await self._records.votes_since(0 if whole else self._votes.number)
            self._votes.take(rows, whole=whole)
            if whole:
                self._whole_at = now

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.refresh()
                self._outage.worked()
            except JournalError as error:
                self._outage.failed(error)
            await asyncio.sleep(self._refresh_s)
