"""Makes states of long sessions, behind the requests: one at a time, from a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from semmem.compression.known_states import BegunTurns, KnownStates
from semmem.compression.making import Job, Making
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, StateMade
from semmem.turns.recent import Recent

REFUSED_MAX = 1000
"""Sessions of which it is remembered that no state was kept."""


class StateMaker:
    """Takes jobs without waiting. Of a session only the newest waits; beyond ``queue_max`` sessions a job is dropped,
    and the session's next request offers it again. Where no state was kept of a session, it is tried again
    ``again_turns`` turns later.

    What waits is in memory only: a process that ends loses nothing that the next request would not bring again.
    """

    def __init__(
        self,
        making: Making,
        known: KnownStates,
        begun: BegunTurns,
        announce: Announce,
        *,
        queue_max: int,
        again_turns: int,
        clock: Callable[[], float],
    ) -> None:
        self._making = making
        self._known = known
        self._begun = begun
        self._announce = announce
        self._queue_max = queue_max
        self._again_turns = again_turns
        self._clock = clock
        self._refused = Recent[tuple[str, str], tuple[str, int]](REFUSED_MAX)
        self._waiting = dict[tuple[str, str], Job]()
        self._current: tuple[str, str] | None = None
        self._some = asyncio.Event()

    def __len__(self) -> int:
        """How many wait, the one that is being made among them."""
        return len(self._waiting) + (self._current is not None)

    def use(self, making: Making) -> None:
        """Make states by this from now on."""
        self._making = making

    def offer(self, job: Job) -> None:
        session = (job.user, job.session)
        if session == self._current or self._was_refused(job):
            return  # what is being made is a few turns older at most
        if session not in self._waiting and len(self._waiting) >= self._queue_max:
            self._announce(StateMade("dropped"))
            return
        self._waiting[session] = job
        self._some.set()

    def forget(self, user: str) -> None:
        """Nothing of the user waits or is known here any more. What is being made is refused by the journal."""
        for session in [session for session in self._waiting if session[0] == user]:
            del self._waiting[session]
        self._refused.drop(lambda refused: refused[0] == user)
        self._known.forget(user)
        self._begun.forget(user)

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
        mark = self._known.mark()
        state, result = await self._making.make(job)
        self._announce(StateMade(result))
        if state is None:
            self._refused.put((job.user, job.session), (job.user, job.turns))
        else:
            with suppress(JournalError):
                await self._known.made(state, mark=mark, now=self._clock())

    def _was_refused(self, job: Job) -> bool:
        refused = self._refused.get((job.user, job.session))
        return refused is not None and 0 <= job.turns - refused[1] < self._again_turns
