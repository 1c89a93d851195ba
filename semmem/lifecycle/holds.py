"""One at a time changes a user's memories: first in line within this process, then with a hold among all of them.

The database keeps holds and batches of a user apart, across processes; but it knows no order, and many callers that ask
again and again could keep one of them waiting for ever. So callers of one process stand in line, and one asks."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field

from semmem.ports.errors import JournalError
from semmem.ports.memory_records import WriteRecords


class Busy(Exception):
    """The user's memories are being learnt or changed by somebody else at this moment."""


@dataclass(slots=True)
class _Line:
    """``asyncio.Lock`` lets in whoever came first."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    callers: int = 0


class Lines:
    def __init__(self) -> None:
        self._of: dict[str, _Line] = {}

    @asynccontextmanager
    async def turn(
        self, user: str, *, until: float | None = None, callers_max: float = math.inf
    ) -> AsyncIterator[None]:
        """Inside it is the caller's turn, and nobody else's of this user. Raises Busy where so many stand there, and at
        ``until`` in the event loop's time."""
        line = self._of.setdefault(user, _Line())
        if line.callers >= callers_max:
            raise Busy
        line.callers += 1
        try:
            try:
                async with asyncio.timeout_at(until):
                    await line.turn.acquire()
            except TimeoutError:
                raise Busy from None
            try:
                yield
            finally:
                line.turn.release()
        finally:
            line.callers -= 1
            if not line.callers:
                del self._of[user]


@dataclass(eq=False, repr=False)
class Holds:
    """``wait_s``: how long a caller waits for its turn and for the hold. ``lease_s``: how long a hold outlives a
    process that died. ``callers_max``: how many of one user may stand in line, the one at work included."""

    records: WriteRecords
    _: KW_ONLY
    clock: Callable[[], float]
    wait_s: float = 5.0
    poll_s: float = 0.1
    lease_s: float = 60.0
    callers_max: int = 200
    _lines: Lines = field(init=False, default_factory=Lines)

    @asynccontextmanager
    async def held(self, user: str, *, wait_s: float | None = None) -> AsyncIterator[str]:
        """Nobody else learns or changes the user's memories inside; gives the hold's id. Raises Busy, JournalError."""
        late = asyncio.get_running_loop().time() + (self.wait_s if wait_s is None else wait_s)
        async with self._lines.turn(user, until=late, callers_max=self.callers_max):
            hold_id = await hold(self.records, user, self.clock, late, poll_s=self.poll_s, lease_s=self.lease_s)
            try:
                yield hold_id
            finally:
                with suppress(JournalError):  # what was done is done; the hold ends by itself
                    await self.records.release(hold_id)


async def hold(
    records: WriteRecords, user: str, clock: Callable[[], float], deadline: float, *, poll_s: float, lease_s: float
) -> str:
    """A hold of the user, as soon as nobody else is at work; ``deadline`` in the event loop's time. Raises Busy and
    JournalError."""
    while (hold_id := await records.hold(user, now=clock(), lease_s=lease_s)) is None:
        if asyncio.get_running_loop().time() >= deadline:
            raise Busy
        await asyncio.sleep(poll_s)
    return hold_id
