"""What is looked at when nobody asks: the journal is counted, pruned, and missed when it fails."""

from __future__ import annotations

import asyncio
import time

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.ports.errors import JournalError, JournalFull
from semmem.ports.events import Event, JournalCounted
from semmem.wiring.maintenance import CANNOT_WRITE, NO_ANSWER, HousekeepingLoop, StoreWatch

HOUR_S = 3600.0


class Journal:
    """Counts one open turn, and remembers until when it was pruned; fails while it is ``broken``."""

    def __init__(self) -> None:
        self.broken = self.full = False
        self.pruned: list[float] = []
        self.marks_pruned: list[float] = []
        self.states_pruned = 0

    async def counts(self) -> dict[str, int]:
        if self.broken:
            raise JournalError("locked")
        return {"open": 1}

    async def check_room(self) -> None:
        if self.full:
            raise JournalFull("no space left on device")

    async def prune(self, *, done_before: float) -> int:
        self.pruned.append(done_before)
        return 0

    async def prune_states(self, *, now: float) -> None:
        self.states_pruned += 1

    async def prune_marks(self, *, forgotten_before: float) -> None:
        self.marks_pruned.append(forgotten_before)


class House:
    """The loop, fast, around a journal."""

    def __init__(self, *, prune_interval_s: float) -> None:
        self.journal = Journal()
        self.announced: list[Event] = []
        self.loop = HousekeepingLoop(
            self.journal,
            StoreWatch(InProcessStore(), None, dimension=3),
            self.announced.append,
            retention_s=2 * HOUR_S,
            marks_s=HOUR_S,
            interval_s=0.001,
            prune_interval_s=prune_interval_s,
        )

    async def run(self) -> None:
        """Until it has looked twice."""
        running, seen = Tasks().spawn("housekeeping", self.loop.run()), self.rounds
        while self.rounds < seen + 2:
            await asyncio.sleep(0.001)
        running.cancel()

    async def until(self, trouble: str | None) -> None:
        """Until that is known of the journal."""
        while self.loop.journal_trouble != trouble:
            await asyncio.sleep(0.001)

    @property
    def rounds(self) -> int:
        return len(self.announced)


async def test_turns_are_counted_and_what_is_past_its_time_is_dropped() -> None:
    house = House(prune_interval_s=0.0)
    await house.run()
    now = time.time()
    assert house.announced[0] == JournalCounted({"open": 1})
    assert now - 2 * HOUR_S - 5 < house.journal.pruned[0] <= now - 2 * HOUR_S
    assert now - HOUR_S - 5 < house.journal.marks_pruned[0] <= now - HOUR_S


async def test_nothing_is_dropped_before_it_is_due() -> None:
    house = House(prune_interval_s=HOUR_S)
    await house.run()
    assert house.journal.pruned == house.journal.marks_pruned == []


async def test_a_journal_that_fails_is_known_until_it_answers_again() -> None:
    house = House(prune_interval_s=HOUR_S)
    running = Tasks().spawn("housekeeping", house.loop.run())
    for broken, trouble in ((True, NO_ANSWER), (False, None)):
        house.journal.broken = broken
        await asyncio.wait_for(house.until(trouble), 5.0)
    running.cancel()


async def test_a_journal_without_room_is_known_until_it_has_some_again() -> None:
    house = House(prune_interval_s=HOUR_S)
    running = Tasks().spawn("housekeeping", house.loop.run())
    for full, trouble in ((True, CANNOT_WRITE), (False, None)):
        house.journal.full = full
        await asyncio.wait_for(house.until(trouble), 5.0)
    running.cancel()
