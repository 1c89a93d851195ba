"""One purge for whoever asks: what was removed leaves the files of store and journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semmem.ports.store import Purgeable


@dataclass(frozen=True, slots=True)
class Purged:
    """``purged`` is False when some removed rows stay until a server compacts. ``seconds``: how long it took."""

    purged: bool
    seconds: float


class Purging:
    """Purges ``parts``, one purge at a time. Those who ask while one runs share the next."""

    def __init__(self, parts: Sequence[Purgeable], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._clock = clock
        self._turn = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, bool] = (0, False)

    async def run(self) -> Purged:
        """Everything removed before this call has left the files when it returns.

        Raises the first error of a part (StoreError, JournalError) when all have been tried: nothing is promised then.
        """
        asked, before = self._clock(), self._begun
        async with self._turn:
            number, purged = self._last
            if number <= before:  # no purge that began after this call has ended
                purged = await self._purge()
        return Purged(purged, self._clock() - asked)

    async def _purge(self) -> bool:
        self._begun += 1
        number = self._begun
        results = await asyncio.gather(*(part.purge() for part in self._parts), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        purged = all(results)
        self._last = (number, purged)
        return purged
