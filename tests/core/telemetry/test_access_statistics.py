"""Uses are counted in passing: bounded, never in the way, and gone with what is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from semmem.background import Tasks
from semmem.ports.errors import JournalError
from semmem.ports.memory_records import Uses
from semmem.telemetry.access_statistics import AccessRecorder


class Statistics:
    """Keeps what is recorded; fails while ``broken``."""

    def __init__(self) -> None:
        self.broken = False
        self.recorded: list[tuple[str, str, Uses]] = []

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        if self.broken:
            raise JournalError("locked")
        self.recorded += uses

    async def uses(self, user: str) -> dict[str, Uses]:
        return {memory_id: uses for owner, memory_id, uses in self.recorded if owner == user}


@pytest.fixture
def statistics() -> Statistics:
    return Statistics()


async def test_uses_are_added_up_and_written_once(statistics: Statistics) -> None:
    notes = AccessRecorder(statistics)
    notes.note("ada", ["m", "n"], 10.0)
    notes.note("ada", ["m"], 5.0)
    notes.note("bob", ["m"], 7.0)
    assert statistics.recorded == []
    await notes.flush()
    await notes.flush()
    assert sorted(statistics.recorded) == [
        ("ada", "m", Uses(2, 10.0)),
        ("ada", "n", Uses(1, 10.0)),
        ("bob", "m", Uses(1, 7.0)),
    ]
    assert len(notes) == 0


async def test_beyond_the_limit_known_memories_still_count_and_others_are_dropped(statistics: Statistics) -> None:
    notes = AccessRecorder(statistics, memories_max=2)
    notes.note("ada", ["a", "b", "c"], 1.0)
    notes.note("ada", ["b"], 2.0)
    assert (len(notes), notes.dropped) == (2, 1)
    await notes.flush()
    assert statistics.recorded == [("ada", "a", Uses(1, 1.0)), ("ada", "b", Uses(2, 2.0))]


async def test_what_is_forgotten_is_not_counted_any_more(statistics: Statistics) -> None:
    notes = AccessRecorder(statistics)
    notes.note("ada", ["m", "n"], 1.0)
    notes.note("bob", ["m"], 1.0)
    notes.note("eve", ["m"], 1.0)
    notes.forget("ada", ["m"])
    notes.forget("bob")
    await notes.flush()
    assert statistics.recorded == [("ada", "n", Uses(1, 1.0)), ("eve", "m", Uses(1, 1.0))]


async def test_a_journal_that_is_down_costs_statistics_only(statistics: Statistics) -> None:
    notes = AccessRecorder(statistics)
    statistics.broken = True
    notes.note("ada", ["m"], 1.0)
    await notes.flush()
    statistics.broken = False
    notes.note("ada", ["n"], 1.0)
    await notes.flush()
    assert (statistics.recorded, notes.dropped) == ([("ada", "n", Uses(1, 1.0))], 1)


async def test_what_waits_is_written_by_itself(statistics: Statistics) -> None:
    notes = AccessRecorder(statistics, flush_interval_s=0.01)
    tasks = Tasks()
    tasks.spawn("notes", notes.run())
    notes.note("ada", ["m"], 1.0)
    async with asyncio.timeout(60):
        while not statistics.recorded:
            await asyncio.sleep(0.005)
    await tasks.cancel()


async def test_who_forgets_can_wait_for_what_is_being_written() -> None:
    class Slow(Statistics):
        go_on = asyncio.Event()

        async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
            await self.go_on.wait()
            await super().record_uses(uses)

    slow, tasks = Slow(), Tasks()
    notes = AccessRecorder(slow)
    await asyncio.wait_for(notes.settled(), 5.0)
    notes.note("ada", ["m"], 1.0)
    tasks.spawn("flush", notes.flush())
    await asyncio.sleep(0)
    settled = tasks.spawn("settled", notes.settled())
    await asyncio.sleep(0.01)
    assert not settled.done()
    slow.go_on.set()
    await settled
    assert [memory_id for _, memory_id, _ in slow.recorded] == ["m"]
