"""Keeps in process what rows of the journal say: as soon as another process tells of a change, and now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from semmem.background.outage import Outage
from semmem.ports.errors import JournalError

log = logging.getLogger(__name__)

WHOLE_EVERY_S = 3600.0
"""All of them are read again, since rows that are gone have no number any more, and in case the journal is another one
than it was. Less than switches of which nothing is said any more are kept for."""


class Numbered(Protocol):
    """A row. ``number`` rises with every change of any of them."""

    @property
    def number(self) -> int: ...


Row = TypeVar("Row", bound=Numbered)
Row_contra = TypeVar("Row_contra", bound=Numbered, contravariant=True)


class Takes(Protocol[Row_contra]):
    """What knows the rows in process."""

    def take(self, rows: Iterable[Row_contra], *, whole: bool = False) -> None:
        """Know these, and beside them what was known; with ``whole`` these alone."""


class RecordWatch(Generic[Row]):
    """Keeps ``known`` as the journal has it, at most ``refresh_s`` behind while this answers. ``since`` reads the rows
    with a greater number (raises JournalError); ``what`` is read, for the log."""

    def __init__(
        self,
        since: Callable[[int], Awaitable[Sequence[Row]]],
        known: Takes[Row],
        *,
        what: str,
        refresh_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._since = since
        self._known = known
        self._refresh_s = refresh_s
        self._clock = clock
        self._number = 0
        self._whole_at = -WHOLE_EVERY_S
        self._look = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()  # what was read first would be taken last
        self._what = what
        self._outage = Outage(log, "reading rows of the journal", level=logging.WARNING)

    def look(self) -> None:
        """Something changed, or may have."""
        self._look.set()

    async def refresh(self) -> None:
        """Read what is new. Raises JournalError; what was known stays."""
        async with self._one_at_a_time:
            now = self._clock()
            whole = now - self._whole_at >= WHOLE_EVERY_S
            rows = await self._since(0 if whole else self._number)
            self._known.take(rows, whole=whole)
            self._number = max((row.number for row in rows), default=0 if whole else self._number)
            if whole:
                self._whole_at = now

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._look.clear()
            try:
                await self.refresh()
                self._outage.worked()
            except JournalError as error:
                self._outage.failed(f"{self._what}: {error}")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._refresh_s):
                    await self._look.wait()
