"""What a process keeps in memory: rows of the journal, read again as soon as another process tells of a change and now
and then; and after a start the memories of the latest active users, so that not each of them waits for a load."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, Protocol, TypeVar

from semmem.background.tasks import Outage, ends_within
from semmem.ports.errors import JournalError
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.index.kept import Preloaded

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


@dataclass(eq=False)
class RecordWatch(Generic[Row]):
    """Keeps ``known`` as the journal has it, at most ``refresh_s`` behind while this answers. ``since`` reads the rows
    with a greater number (raises JournalError); ``what`` is read, for the log."""

    since: Callable[[int], Awaitable[Sequence[Row]]]
    known: Takes[Row]
    _: KW_ONLY
    what: str
    refresh_s: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._number = 0
        self._whole_at = -WHOLE_EVERY_S
        self._look = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()  # what was read first would be taken last
        self._outage = Outage(log, "reading rows of the journal", level=logging.WARNING)

    def look(self) -> None:
        """Something changed, or may have."""
        self._look.set()

    async def refresh(self) -> None:
        """Read what is new. Raises JournalError; what was known stays."""
        async with self._one_at_a_time:
            now = self.clock()
            whole = now - self._whole_at >= WHOLE_EVERY_S
            rows = await self.since(0 if whole else self._number)
            self.known.take(rows, whole=whole)
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
                self._outage.failed(f"{self.what}: {error}")
            await ends_within(self._look.wait(), self.refresh_s)


SLICE_USERS = 100
"""After so many, one line says how far it is."""
LOOK_S = 1.0
"""So often it is looked whether the store answers."""
REST_MIN_S = 0.001


class ActiveUsers(Protocol):
    """Who has talked lately. Raises JournalError."""

    async def users_active(self, *, limit: int) -> list[str]:
        """Users, those whose turns are the latest first: at most ``limit``, fewer where some of them talk a lot."""


@dataclass(eq=False)
class Warming:
    """Loads at most ``users_max`` users, the latest active first, until there is room for no more. One at a time, when
    no request waits for a load, and resting as long after each as it took: at most half of one core and of the store's
    time, for as long as it takes. ``counts``: how many ended how."""

    memories: HotMemories
    active: ActiveUsers
    _: KW_ONLY
    users_max: int
    look_s: float = LOOK_S
    counts: Counter[Preloaded] = field(init=False, default_factory=Counter)

    async def run(self, can_load: Callable[[], bool]) -> None:
        """To the end of the list; waits whenever not ``can_load``."""
        await self._until(can_load)
        began = time.monotonic()
        try:
            users = await self.active.users_active(limit=self.users_max)
        except JournalError as error:
            log.warning("the latest active users are not known, each is loaded when they come: %s", error)
            return
        for start in range(0, len(users), SLICE_USERS):
            await self._load(users[start : start + SLICE_USERS], can_load)
            self._tell(len(users), time.monotonic() - began)
            if self.counts[Preloaded.NO_ROOM]:
                return

    async def _load(self, users: Sequence[str], can_load: Callable[[], bool]) -> None:
        for user in users:
            await self._until(can_load)
            began = time.monotonic()
            ended = await self.memories.preload(user)
            self.counts[ended] += 1
            if ended is Preloaded.NO_ROOM:
                return
            await asyncio.sleep(max(REST_MIN_S, time.monotonic() - began))

    async def _until(self, can_load: Callable[[], bool]) -> None:
        while True:
            if can_load():
                return
            await asyncio.sleep(self.look_s)

    def _tell(self, users: int, seconds: float) -> None:
        log.info(
            "loaded %d of the %d latest active users in %.0f s, %d failed; memories in process take %.0f MB%s",
            self.counts[Preloaded.LOADED],
            users,
            seconds,
            self.counts[Preloaded.FAILED],
            self.memories.taken.bytes / 1e6,
            ", and there is room for no more" if self.counts[Preloaded.NO_ROOM] else "",
        )
