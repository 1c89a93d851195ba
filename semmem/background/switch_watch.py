"""Knows for whom memory is switched off: as soon as another process says that something changed, and now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from semmem.background.outage import Outage
from semmem.ports.errors import JournalError
from semmem.ports.switches import SwitchRecords
from semmem.request.switches import Switches

log = logging.getLogger(__name__)

WHOLE_EVERY_S = 3600.0
"""All of them are read again, in case the journal is another one than it was. Less than switches that are gone are
kept for."""


class SwitchWatch:
    """Keeps ``switches`` as ``records`` has them, at most ``refresh_s`` behind while these answer."""

    def __init__(
        self,
        records: SwitchRecords,
        switches: Switches,
        *,
        refresh_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._switches = switches
        self._refresh_s = refresh_s
        self._clock = clock
        self._whole_at = -WHOLE_EVERY_S
        self._look = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()  # what was read first would be taken last
        self._outage = Outage(log, "read for whom memory is switched off", level=logging.WARNING)

    def look(self) -> None:
        """Something changed, or may have."""
        self._look.set()

    async def refresh(self) -> None:
        """Read what is new. Raises JournalError; what was known stays."""
        async with self._one_at_a_time:
            now = self._clock()
            whole = now - self._whole_at >= WHOLE_EVERY_S
            rows = await self._records.switches_since(0 if whole else self._switches.number)
            self._switches.take(rows, whole=whole)
            if whole:
                self._whole_at = now

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._refresh_s):
                    await self._look.wait()
            self._look.clear()
            try:
                await self.refresh()
                self._outage.worked()
            except JournalError as error:
                self._outage.failed(error)
