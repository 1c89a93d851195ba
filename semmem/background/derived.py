"""What is made of conversations behind the requests: states of long sessions, and vectors of users' words, so that
questions find them by meaning."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import numpy as np

from semmem.background.tasks import Outage
from semmem.compression.compressor import KnownStates
from semmem.compression.making import Job, Making
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, JournalError
from semmem.ports.events import Announce, StateMade
from semmem.ports.talks import Unplaced
from semmem.turns.recent import Recent

log = logging.getLogger(__name__)

REFUSED_MAX = 1000
"""Sessions of which it is remembered that no state was kept."""


@dataclass(eq=False)
class StateMaker:
    """Makes states one at a time. Takes jobs without waiting: of a session only the newest waits; beyond ``queue_max``
    sessions a job is dropped, and the session's next request offers it again. Where no state was kept of a session, it
    is tried again ``again_turns`` turns later. What waits is in memory only: a process that ends loses nothing that the
    next request would not bring again."""

    making: Making
    known: KnownStates
    announce: Announce
    _: KW_ONLY
    queue_max: int
    again_turns: int
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._refused = Recent[tuple[str, str], tuple[str, int]](REFUSED_MAX)
        self._waiting = dict[tuple[str, str], Job]()
        self._current: tuple[str, str] | None = None
        self._some = asyncio.Event()

    def __len__(self) -> int:
        """How many wait, the one that is being made among them."""
        return len(self._waiting) + (self._current is not None)

    def offer(self, job: Job) -> None:
        session = (job.user, job.session)
        if session == self._current or self._was_refused(job):
            return  # what is being made is a few turns older at most
        if session not in self._waiting and len(self._waiting) >= self.queue_max:
            self.announce(StateMade("dropped"))
            return
        self._waiting[session] = job
        self._some.set()

    def forget(self, user: str) -> None:
        """Nothing of the user waits or is known here any more. What is being made is refused by the journal."""
        for session in [session for session in self._waiting if session[0] == user]:
            del self._waiting[session]
        self._refused.drop(lambda refused: refused[0] == user)
        self.known.forget(user)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            while self._waiting:
                self._current = next(iter(self._waiting))
                try:
                    await self._make(self._waiting.pop(self._current))
                finally:
                    self._current = None
            self._some.clear()

    async def _make(self, job: Job) -> None:
        mark = self.known.mark()
        state, result = await self.making.make(job)
        self.announce(StateMade(result))
        if state is None:
            self._refused.put((job.user, job.session), (job.user, job.turns))
        else:
            with suppress(JournalError):
                await self.known.made(state, mark=mark, now=self.clock())

    def _was_refused(self, job: Job) -> bool:
        refused = self._refused.get((job.user, job.session))
        return refused is not None and 0 <= job.turns - refused[1] < self.again_turns


BATCH_MAX = 32
LOOK_S = 5.0
"""Between two looks for words without a vector, which any process may have written."""
RETRY_S = 30.0


class TalkPlacing(Protocol):
    """What has vectors made. Raises JournalError."""

    async def unplaced(self, model: str, *, limit: int) -> list[Unplaced]:
        """Words of users without a vector of this model."""

    async def place(self, model: str, vectors: Mapping[tuple[str, str, int], bytes]) -> None:
        """Keep vectors; empty ones stand for words that have none. Of what is gone meanwhile nothing is kept."""


@dataclass(eq=False)
class TalkPlacer:
    """``text_chars_max`` characters of each message are embedded. ``placed`` counts vectors."""

    records: TalkPlacing
    embedder: Embedder
    _: KW_ONLY
    text_chars_max: int = 2000
    look_s: float = LOOK_S
    placed: int = field(init=False, default=0)

    async def run(self) -> None:
        """Until cancelled."""
        outage = Outage(log, "embed conversations", level=logging.WARNING)
        while True:
            try:
                while await self.some():
                    pass
                outage.worked()
                await asyncio.sleep(self.look_s)
            except (EmbedderError, JournalError) as error:
                outage.failed(error)
                await asyncio.sleep(RETRY_S)

    async def some(self) -> int:
        """Place a batch; how many there were. Raises EmbedderError and JournalError."""
        model = self.embedder.signature
        found = await self.records.unplaced(model, limit=BATCH_MAX)
        vectors, failed = dict[tuple[str, str, int], bytes](), list[tuple[str, str, int]]()
        failure: EmbedderError | None = None
        for each in found:
            try:
                vectors[each.key] = await self._vector(each.text)
            except EmbedderError as error:
                failed.append(each.key)
                failure = error
                continue
            vectors |= dict.fromkeys(failed, b"")  # others go, so it is these words: nobody shall wait behind them
            failed.clear()
        if vectors:
            await self.records.place(model, vectors)
            self.placed += len(vectors)
        if failed and failure is not None:
            raise failure
        return len(found)

    async def _vector(self, text: str) -> bytes:
        read = text[: self.text_chars_max].strip()
        return (await self.embedder.embed(read)).astype(np.float16).tobytes() if read else b""
