"""What a process knows of rows of the journal, here of switches: new ones within a pause, at once when told, all of
them now and then, and the last ones while the journal is away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from semmem.background import Tasks
from semmem.background.in_process import WHOLE_EVERY_S, RecordWatch
from semmem.ports.accounts import UNSAID, Switch, SwitchRow
from semmem.ports.errors import JournalError
from semmem.request.switches import Switches, user_key

OFF = Switch(False, False)


class Records:
    """They can be away, and know what they were asked."""

    def __init__(self) -> None:
        self.rows: list[SwitchRow] = []
        self.away = False
        self.asked: list[int] = []
        self.gates: list[asyncio.Event] = []

    def add(self, user: str, switch: Switch, number: int) -> None:
        self.rows.append(SwitchRow(user_key(user), "", switch, number, 0.0))

    async def since(self, number: int) -> Sequence[SwitchRow]:
        self.asked.append(number)
        if self.away:
            raise JournalError("away")
        found = [row for row in self.rows if row.number > number]
        if self.gates:
            await self.gates.pop(0).wait()
        return found


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def watching(records: Records, refresh_s: float = 0.01) -> tuple[RecordWatch[SwitchRow], Switches, Clock]:
    known, clock = Switches(), Clock()
    watch = RecordWatch(records.since, known, what="switches", refresh_s=refresh_s, clock=clock)
    return watch, known, clock


async def test_only_what_is_new_is_read_and_all_of_it_now_and_then() -> None:
    records = Records()
    watch, known, clock = watching(records)
    records.add("alice", OFF, 5)
    await watch.refresh()
    records.rows = [SwitchRow(user_key("bob"), "", OFF, 7, 0.0)]
    await watch.refresh()
    assert (known.of_user("alice"), known.of_user("bob"), records.asked) == (OFF, OFF, [0, 5])
    clock.now += WHOLE_EVERY_S
    await watch.refresh()
    assert (known.of_user("alice"), known.of_user("bob"), records.asked[-1]) == (UNSAID, OFF, 0)
    records.rows = []
    clock.now += WHOLE_EVERY_S
    await watch.refresh()
    records.add("carol", OFF, 1)  # the journal is another one
    await watch.refresh()
    assert (known.of_user("bob"), known.of_user("carol"), records.asked[-1]) == (UNSAID, OFF, 0)


async def test_while_the_journal_is_away_what_was_known_holds() -> None:
    records = Records()
    watch, known, _ = watching(records)
    records.add("alice", OFF, 1)
    await watch.refresh()
    records.away = True
    with pytest.raises(JournalError):
        await watch.refresh()
    assert known.of_user("alice") == OFF


async def test_two_who_look_at_once_do_not_overtake_each_other() -> None:
    records = Records()
    watch, known, _ = watching(records)
    await watch.refresh()
    records.add("alice", OFF, 1)
    records.gates = [slow := asyncio.Event()]
    first = Tasks().spawn("look", watch.refresh())
    await asyncio.sleep(0)
    records.add("alice", UNSAID, 2)
    second = Tasks().spawn("look", watch.refresh())
    await asyncio.sleep(0)
    slow.set()
    await asyncio.gather(first, second)
    assert known.of_user("alice") == UNSAID


@pytest.mark.parametrize("told", [True, False])
async def test_what_changes_is_known_after_a_pause_or_when_told_also_after_an_outage(
    told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    records, tasks = Records(), Tasks()
    watch, known, _ = watching(records, refresh_s=60.0 if told else 0.01)
    records.away = True
    tasks.keep("switches", watch.run)
    for looks in (1, 2):
        async with asyncio.timeout(60):
            while len(records.asked) < looks:
                await asyncio.sleep(0.001)
        watch.look()
    records.away = False
    records.add("alice", OFF, 1)
    watch.look() if told else None
    async with asyncio.timeout(60):
        while known.of_user("alice") != OFF:
            await asyncio.sleep(0.001)
    await tasks.cancel()
    assert [message.split(",")[0] for message in caplog.messages] == [
        "reading rows of the journal failed",
        "reading rows of the journal works again",
    ]
