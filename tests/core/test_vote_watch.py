"""What a process knows of votes: new ones within a pause, all of them now and then, the last ones in an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from semmem.background import Tasks, VoteWatch
from semmem.background.vote_watch import WHOLE_EVERY_S
from semmem.ports.errors import JournalError
from semmem.ports.feedback import VoteRow
from semmem.retrieval.feedback import Votes


class Records:
    """FeedbackRecords that can be away, and know what they were asked."""

    def __init__(self) -> None:
        self.rows: list[VoteRow] = []
        self.away = False
        self.asked: list[int] = []

    def add(self, user: str, number: int) -> None:
        self.rows.append(VoteRow(user, f"mem_{number}", 0, 1, 0.0, number))

    async def add_votes(
        self, user: str, memories: Mapping[str, float], *, helpful: bool, now: float, entries_max: int
    ) -> None: ...

    async def votes_since(self, number: int) -> Sequence[VoteRow]:
        self.asked.append(number)
        if self.away:
            raise JournalError("away")
        return [row for row in self.rows if row.number > number]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_only_what_is_new_is_read_and_what_is_gone_is_forgotten_in_the_end() -> None:
    records, votes, clock = Records(), Votes(), Clock()
    watch = VoteWatch(records, votes, refresh_s=60.0, clock=clock)
    records.add("ada", 5)
    await watch.refresh()
    records.rows.clear()
    records.add("bea", 7)
    await watch.refresh()
    assert (votes.of("ada") is not None, votes.of("bea") is not None) == (True, True)
    clock.now = WHOLE_EVERY_S
    await watch.refresh()
    assert (votes.of("ada"), records.asked) == (None, [0, 5, 0])


async def test_an_outage_leaves_what_was_known_and_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    records, votes = Records(), Votes()
    watch = VoteWatch(records, votes, refresh_s=0.01)
    records.add("ada", 5)
    await watch.refresh()
    records.away = True
    tasks = Tasks()
    tasks.keep("votes", watch.run)
    async with asyncio.timeout(5):
        while len(records.asked) < 4:
            await asyncio.sleep(0.01)
        assert votes.of("ada") is not None
        records.away = False
        records.add("bea", 6)
        while votes.of("bea") is None:
            await asyncio.sleep(0.01)
    await tasks.cancel()
    assert len(caplog.messages) == 2  # that it began, and that it is over
