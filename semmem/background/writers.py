"""What is written behind the requests, in batches: halves of turns and of conversations, the request log, rows of the
statistics of use. All of it waits in memory, within limits."""

import asyncio
import logging
import math
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import ClassVar, Generic, Protocol, TypeVar

from semmem.background.tasks import Outage, ends_within
from semmem.memory import Forgetting, Turn, TurnEnding
from semmem.ports.conversations import ConversationLimits, Recorded, SaidHalf
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, JournalCommitted, nobody_listens
from semmem.ports.recording import TurnClosed, TurnRecords
from semmem.ports.request_log import LoggedAnswer, LoggedRequest, RequestLog
from semmem.ports.usage import DAY_S, UsageRecords, UsageRow

log = logging.getLogger(__name__)

T = TypeVar("T")


class WriteBehind(ABC, Generic[T]):
    """Writes what waits, at most ``batch_max`` at a time, ``interval_s`` after the first of it came, or as soon as
    ``full`` wait. What could not be written waits on, and is tried again every ``retry_s``; ``what`` names it in the
    log. What waits when the process dies is lost."""

    what: ClassVar[str]
    level: ClassVar = logging.WARNING
    full: float = math.inf
    batch_max: int
    interval_s: float
    retry_s: float

    def __post_init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._some, self._enough, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._writing = asyncio.Lock()
        self._outage = Outage(log, self.what, level=self.level)

    def __len__(self) -> int:
        return len(self._waiting)

    @abstractmethod
    async def _write(self, batch: list[T]) -> None:
        """Write these, in one transaction. Raises JournalError."""

    def _put(self, item: T) -> None:
        self._waiting.append(item)
        self._idle.clear()
        self._some.set()
        if len(self._waiting) >= self.full:
            self._enough.set()

    def _settle(self) -> None:
        if not self._waiting:
            self._some.clear()
            self._enough.clear()
            self._idle.set()

    async def flush(self) -> bool:
        """Write what waits now; whether that could be done."""
        async with self._writing:
            for _ in range(-(-len(self._waiting) // self.batch_max)):
                batch = list(islice(self._waiting, self.batch_max))
                if not batch:
                    break  # all that waited was erased
                try:
                    await self._write(batch)
                except JournalError as error:
                    self._outage.failed(error)
                    return False
                self._outage.worked()
                written = {id(item) for item in batch}  # only now: a write that was cancelled or failed keeps them
                while self._waiting and id(self._waiting[0]) in written:
                    self._waiting.popleft()
                self._settle()
        return True

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._some.wait()
            await ends_within(self._enough.wait(), self.interval_s)
            self._enough.clear()
            if not await self.flush():
                self._enough.set()  # it has waited for company already
                await asyncio.sleep(self.retry_s)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything is written; False when ``timeout_s`` was not enough."""
        return await ends_within(self._idle.wait(), timeout_s)


Committed = Callable[[Sequence[Turn], Sequence[TurnClosed]], None]
"""Is told what was committed; it neither waits nor raises."""


@dataclass(eq=False)
class JournalWriter(WriteBehind[Turn | TurnClosed]):
    """Writes halves of turns behind the requests, many in one commit. ``offer`` never waits. A half waits at most
    ``interval_s`` for company. When the journal fails, halves are kept and tried again; beyond ``queue_max`` new ones
    are dropped and counted (``dropped``), since memory only adds. What says that words are not to be kept has as much
    room again: without it they would be kept. ``committed`` is told of halves once they are safe."""

    what = "journal write"
    level = logging.ERROR
    journal: TurnRecords
    _: KW_ONLY
    queue_max: int = 10_000
    interval_s: float = 0.02
    batch_max: int = 500
    retry_s: float = 0.5
    announce: Announce = nobody_listens
    committed: Committed = lambda _opened, _closed: None
    dropped: int = field(init=False, default=0)

    @property
    def fails(self) -> bool:
        """Whether something waits that could not be committed when it was last tried."""
        return self._outage.lasts and len(self) > 0

    def offer(self, half: Turn | TurnClosed) -> bool:
        """Accept a half for writing; False when the queue is full and it was dropped."""
        forbids = isinstance(half, TurnClosed) and half.status in (TurnEnding.DECLINED, TurnEnding.REFUSED)
        if len(self) >= self.queue_max * (2 if forbids else 1):
            self.dropped += 1
            return False
        self._put(half)
        return True

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        """Drop the halves of erased turns; how many, and the turns of which nothing is left here. That their words were
        said is still written, as bare places: whoever is sent them again shall know them. Those that are being
        committed at this moment are not tried again; the journal decides about this try."""
        erased = {half.id for half in self._waiting if isinstance(half, Turn) and what.covers_turn(half)}
        erased -= {half.id for half in self._waiting if isinstance(half, Turn) and not what.covers_turn(half)}
        gone = [half for half in self._waiting if _is_of(half, what, erased)]
        left = [half for half in self._waiting if not _is_of(half, what, erased)]
        self._waiting = deque([*left, *(_place(half) for half in gone if isinstance(half, Turn) and half.message_id)])
        self._settle()
        return len(gone), sorted(erased)

    async def _write(self, batch: list[Turn | TurnClosed]) -> None:
        opened = [half for half in batch if isinstance(half, Turn)]
        closed = [half for half in batch if isinstance(half, TurnClosed)]
        started = time.perf_counter()
        try:
            await self.journal.record(opened, closed)
        except Exception as error:  # whatever it is: a writer that dies would take every later turn with it
            self.announce(JournalCommitted("error", time.perf_counter() - started))
            why = error if isinstance(error, JournalError) else type(error).__name__
            raise JournalError(f"{len(self)} halves wait, {why}") from error
        self.announce(JournalCommitted("ok", time.perf_counter() - started))
        self.committed(opened, closed)


def _is_of(half: Turn | TurnClosed, what: Forgetting, erased: set[str]) -> bool:
    return what.covers_turn(half) if isinstance(half, Turn) else half.turn_id in erased


def _place(turn: Turn) -> TurnClosed:
    return TurnClosed(f"{turn.message_id}.{turn.ordinal}", TurnEnding.ERASED, turn.opened_at)


class _Expiring(WriteBehind[T]):
    """Forgets what is past its time, also where nothing is recorded any more."""

    prune_every_s: ClassVar = 3600.0
    clock: Callable[[], float]

    async def keep_small(self) -> None:
        """Until cancelled."""
        while True:
            await self.prune()
            await asyncio.sleep(self.prune_every_s)

    async def prune(self) -> None:
        with suppress(JournalError):  # it is tried again
            await self._prune(self.clock())

    @abstractmethod
    async def _prune(self, now: float) -> None:
        """Raises JournalError."""


TURN_WAIT_S = 60.0
"""How long a half waits for its turn, which is on its way to the journal from this or another process."""
HALVES_MAX, HALVES_RETRY_S = 100, 5.0
"""Halves of conversations in one transaction, and when those are tried again that could not be written."""
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


@dataclass(eq=False)
class ConversationWriter(_Expiring[tuple[SaidHalf, float]]):
    """Writes every ``interval_s``; at most ``queue_bytes_max`` bytes wait, further halves are dropped. Halves wait on
    whose turn is not in the journal yet. Forgets what is older than ``retention_s``. ``missed`` counts halves that were
    not kept, ``removed`` what went again, both by reason; ``written`` messages."""

    what = "write conversations"
    batch_max, retry_s = HALVES_MAX, HALVES_RETRY_S
    records: ConversationRecording
    limits: ConversationLimits
    _: KW_ONLY
    retention_s: float
    interval_s: float = 1.0
    queue_bytes_max: int = 64 * 1024**2
    clock: Callable[[], float] = time.time
    written: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bytes = 0
        self.missed = Counter({QUEUE_FULL: 0, NO_TURN: 0, TURNED_AWAY: 0})
        self.removed: Counter[str] = Counter({EXPIRED: 0, "messages_max": 0, "per_user_max": 0})

    def add(self, half: SaidHalf) -> None:
        """Never waits, never raises."""
        if self._bytes + half.size > self.queue_bytes_max:
            self.missed[QUEUE_FULL] += 1
            return
        self._bytes += half.size
        self._put((half, self.clock()))

    async def _write(self, batch: list[tuple[SaidHalf, float]]) -> None:
        done = await self.records.record_said([half for half, _ in batch], self.limits)
        waiting, now = {id(half) for half in done.waiting}, self.clock()
        for half, since in batch:
            if id(half) in waiting and now - since < TURN_WAIT_S:
                self._put((half, since))
                continue
            self._bytes -= half.size
            self.missed[NO_TURN] += id(half) in waiting
        self.written += done.kept
        self.missed[TURNED_AWAY] += done.turned_away
        self.removed.update(done.removed)

    async def _prune(self, now: float) -> None:
        before = now - self.retention_s
        while gone := (await self.records.prune_conversations(said_before=before))["messages"]:
            self.removed[EXPIRED] += gone


ROWS_MAX = 1000
"""Rows in one transaction, when many wait because the journal was away."""
REQUESTS_RETRY_S = 5.0
"""When what the request log lacks is tried again."""
REQUEST_LOG_WORDS = ("written", "dropped", "erased", "expired")


@dataclass(eq=False)
class RequestLogWriter(_Expiring[LoggedRequest | LoggedAnswer]):
    """Writes every ``interval_s``; at most ``queue_max`` halves wait, further ones are dropped. Forgets what is older
    than ``kept_s``, and all but the newest ``requests_max``. ``counts``: halves that were ``written`` or ``dropped``,
    requests that were turned away since something of their user's was ``erased``, and those that went by age or
    number (``expired``)."""

    what = "write the request log"
    batch_max, retry_s = ROWS_MAX, REQUESTS_RETRY_S
    prune_every_s = 300.0  # in an hour there may be several times as many as are kept
    records: RequestLog
    _: KW_ONLY
    kept_s: float
    requests_max: int = 100_000
    interval_s: float = 2.0
    queue_max: int = 10_000
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts = Counter(dict.fromkeys(REQUEST_LOG_WORDS, 0))

    def add(self, half: LoggedRequest | LoggedAnswer) -> None:
        """Never waits, never raises."""
        if len(self) >= self.queue_max:
            self.counts["dropped"] += 1
        else:
            self._put(half)

    async def _write(self, batch: list[LoggedRequest | LoggedAnswer]) -> None:
        erased = await self.records.log_requests(batch)
        self.counts.update(written=len(batch) - erased, erased=erased)

    async def _prune(self, now: float) -> None:
        before = now - self.kept_s
        while gone := await self.records.prune_requests(before=before, number=self.requests_max):
            self.counts["expired"] += gone


USAGE_RETRY_S = 30.0
"""When statistics are tried again that could not be written."""


@dataclass(frozen=True, slots=True)
class UsageRetention:
    """Days that single requests, sums by hour and sums by day are kept."""

    requests_days: int = 30
    hours_days: int = 90
    days_days: int = 1100


@dataclass(eq=False)
class UsageWriter(_Expiring[UsageRow]):
    """Writes when ``full`` rows wait and every ``interval_s``; at most ``queue_max`` wait, further ones are
    ``dropped``."""

    what = "write the statistics of use"
    batch_max, retry_s = ROWS_MAX, USAGE_RETRY_S
    records: UsageRecords
    retention: UsageRetention
    _: KW_ONLY
    full: float = 100
    interval_s: float = 3600.0
    queue_max: int = 10_000
    clock: Callable[[], float] = time.time
    written: int = field(init=False, default=0)
    dropped: int = field(init=False, default=0)

    def add(self, row: UsageRow) -> None:
        """Never waits, never raises."""
        if len(self) >= max(self.queue_max, self.full):
            self.dropped += 1
        else:
            self._put(row)

    async def _write(self, batch: list[UsageRow]) -> None:
        self.written += await self.records.add_usage(batch)

    async def _prune(self, now: float) -> None:
        kept = self.retention
        await self.records.prune_usage(
            requests_before=now - kept.requests_days * DAY_S,
            hours_before=now - kept.hours_days * DAY_S,
            days_before=now - kept.days_days * DAY_S,
        )
