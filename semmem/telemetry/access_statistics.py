"""Which memories were put into prompts: noted in passing, written together later.

A note costs a request two dictionary look-ups. What is lost with a process is a few seconds of statistics.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field

from semmem.ports.errors import JournalError
from semmem.ports.memory_records import UseRecords, Uses

log = logging.getLogger(__name__)


@dataclass(eq=False)
class AccessRecorder:
    """Counts uses in memory and adds them to the statistics every ``flush_interval_s``. At most ``memories_max``
    different memories wait; the uses of further ones are not counted (``dropped`` says how many), and neither are those
    of a flush that failed: statistics never queue up behind a journal that is down."""

    statistics: UseRecords
    _: KW_ONLY
    memories_max: int = 10_000
    flush_interval_s: float = 5.0
    dropped: int = field(init=False, default=0)
    _waiting: dict[tuple[str, str], Uses] = field(init=False, default_factory=dict)
    _writing: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, user: str, memory_ids: Iterable[str], now: float) -> None:
        """These memories of the user were used at ``now`` (seconds). Never waits, never raises."""
        for memory_id in memory_ids:
            key = (user, memory_id)
            before = self._waiting.get(key)
            if before is None and len(self._waiting) >= self.memories_max:
                self.dropped += 1
                continue
            before = before or Uses()
            self._waiting[key] = Uses(before.count + 1, max(before.last_at, now))

    def forget(self, user: str, memory_ids: Iterable[str] | None = None) -> None:
        """Drop what waits to be written about these memories, or about all of the user's."""
        ids = None if memory_ids is None else frozenset(memory_ids)
        gone = [key for key in self._waiting if key[0] == user and (ids is None or key[1] in ids)]
        for key in gone:
            del self._waiting[key]

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(self.flush_interval_s)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits now."""
        async with self._writing:
            waiting, self._waiting = self._waiting, {}
            if not waiting:
                return
            try:
                await self.statistics.record_uses([(*key, uses) for key, uses in waiting.items()])
            except JournalError as error:
                self.dropped += len(waiting)
                log.warning("uses of %d memories were not counted: %s", len(waiting), error)

    async def settled(self) -> None:
        """Return when what is being written now is written, or was given up."""
        async with self._writing:
            pass
