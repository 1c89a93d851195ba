"""The journal's writer and the learner: bounded, patient, drained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from semmem.background import Tasks
from semmem.background.learner import Learner, watch_topics
from semmem.background.writers import JournalWriter
from semmem.memory import Forgetting, Scope, Turn, TurnEnding
from semmem.ports.errors import JournalError, StoreUnavailable
from semmem.ports.learning import Batch, BatchRules
from semmem.ports.recording import TurnClosed


def turn(name: str) -> Turn:
    return Turn(id=name, scope=Scope("u", session="s"), ordinal=1, user_text="hello", opened_at=1.0)


class Recording:
    """The part of a journal that the writer and the learner use."""

    def __init__(self, batches: Sequence[Batch] = ()) -> None:
        self.commits: list[list[str]] = []
        self.failing = False
        self.mistaken = False
        self.batches = list(batches)
        self.claims = 0

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        if self.mistaken:
            raise TypeError("something the user said")
        if self.failing:
            raise JournalError("disk full")
        self.commits.append([*(half.id for half in opened), *(half.turn_id for half in closed)])

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        self.claims += 1
        if self.failing:
            raise JournalError("locked")
        return self.batches.pop(0) if self.batches else None


@asynccontextmanager
async def running(worker: Any) -> AsyncIterator[None]:
    tasks = Tasks()
    task = tasks.spawn("worker", worker.run())
    try:
        yield
    finally:
        assert not task.done(), "the worker must outlive whatever happens to it"
        await tasks.cancel()


def writer_for(journal: Recording, **limits: Any) -> JournalWriter:
    return JournalWriter(journal, **{"interval_s": 0.005, "retry_s": 0.005} | limits)


async def test_halves_that_arrive_together_share_a_commit() -> None:
    journal = Recording()
    writer = writer_for(journal)
    async with running(writer):
        for name in ("a", "b", "c"):
            assert writer.offer(turn(name))
        writer.offer(TurnClosed("a", TurnEnding.ANSWERED, 2.0, "hi"))
        assert await writer.drained(1.0)
    assert journal.commits == [["a", "b", "c", "a"]]


async def test_a_failing_journal_is_tried_again_and_nothing_is_lost() -> None:
    journal = Recording()
    journal.failing = True
    writer = writer_for(journal)
    async with running(writer):
        writer.offer(turn("a"))
        assert not await writer.drained(0.05)
        assert (writer.fails, len(writer)) == (True, 1)
        writer.offer(turn("b"))
        journal.failing = False
        assert await writer.drained(1.0)
        assert (writer.fails, len(writer)) == (False, 0)
    assert [name for commit in journal.commits for name in commit] == ["a", "b"]


@pytest.mark.parametrize("worker", ["writer", "learner"])
async def test_a_journal_that_is_away_is_said_once_for_the_outage(
    worker: str, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Recording()
    journal.failing = True
    writer = writer_for(journal, retry_s=0.001)
    learner = Learner(journal, batches_nobody_has, rules=BatchRules(), poll_interval_s=0.001)
    async with running(writer if worker == "writer" else learner):
        writer.offer(turn("a"))
        await asyncio.sleep(0.1)
        said = list(caplog.messages)
        journal.failing = False
        await asyncio.sleep(0.1)
    assert len(said) == 1
    assert len(caplog.messages) == 2
    assert "failures" in caplog.messages[1]


async def batches_nobody_has(_batch: Batch) -> None:
    raise AssertionError("there is none")


async def test_a_mistake_of_ours_does_not_end_the_writer_and_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    journal = Recording()
    journal.mistaken = True
    writer = writer_for(journal)
    async with running(writer):
        writer.offer(turn("a"))
        assert not await writer.drained(0.05)
        journal.mistaken = False
        assert await writer.drained(1.0)
    assert journal.commits == [["a"]]
    assert "TypeError" in caplog.text
    assert "the user said" not in caplog.text


async def test_erased_halves_are_dropped_and_the_others_are_written() -> None:
    journal = Recording()
    writer = writer_for(journal)
    again = structs.replace(turn("said again"), opened_at=9.0)
    for half in (turn("a"), TurnClosed("a", TurnEnding.ANSWERED, 2.0, "hi"), turn("said again"), again):
        writer.offer(half)
    other = structs.replace(turn("b"), scope=Scope("v", session="s"))
    writer.offer(other)
    writer.offer(TurnClosed("b", TurnEnding.ANSWERED, 2.0, "hi"))
    assert writer.forget(Forgetting(Scope("u"), 5.0)) == (3, ["a"])
    async with running(writer):
        assert await writer.drained(5.0)
    assert journal.commits == [["said again", "b", "b"]]


async def test_what_is_erased_while_it_is_committed_is_not_tried_again_and_nothing_else_is_lost() -> None:
    class FirstFails(Recording):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
            first = not self.begun.is_set()
            self.begun.set()
            await self.go_on.wait()
            if first:
                raise JournalError("disk full")
            await super().record(opened, closed)

    journal = FirstFails()
    writer = writer_for(journal)
    other = structs.replace(turn("b"), scope=Scope("v", session="s"))
    async with running(writer):
        writer.offer(turn("a"))
        writer.offer(other)
        await journal.begun.wait()
        assert writer.forget(Forgetting(Scope("u"), 5.0)) == (1, ["a"])
        writer.offer(structs.replace(other, id="c"))
        journal.go_on.set()
        assert await writer.drained(5.0)
    assert [name for commit in journal.commits for name in commit] == ["b", "c"]


async def test_a_queue_of_which_everything_is_erased_is_idle() -> None:
    writer = writer_for(Recording())
    writer.offer(turn("a"))
    writer.forget(Forgetting(Scope("u"), 5.0))
    assert await writer.drained(0.0)


async def test_a_full_queue_drops_and_counts() -> None:
    writer = writer_for(Recording(), queue_max=2)
    assert [writer.offer(turn(name)) for name in ("a", "b", "c")] == [True, True, False]
    assert writer.dropped == 1


@pytest.mark.parametrize("status", [TurnEnding.DECLINED, TurnEnding.REFUSED])
async def test_a_full_queue_still_takes_what_says_that_words_are_not_to_be_kept(status: TurnEnding) -> None:
    writer = writer_for(Recording(), queue_max=2)
    offered: list[Turn | TurnClosed] = [
        turn("a"),
        turn("b"),
        *(TurnClosed(f"m.{number}", status, 1.0) for number in range(3)),
    ]
    assert [writer.offer(half) for half in offered] == [True, True, True, True, False]
    assert not writer.offer(TurnClosed("a", TurnEnding.ANSWERED, 1.0, "Noted."))
    assert len(writer) == 4


async def test_a_commit_has_a_limit() -> None:
    journal = Recording()
    writer = writer_for(journal, batch_max=2)
    async with running(writer):
        for name in "abcde":
            writer.offer(turn(name))
        assert await writer.drained(1.0)
    assert journal.commits == [["a", "b"], ["c", "d"], ["e"]]


def batch(name: str) -> Batch:
    return Batch(id=name, scope=Scope("u", session="s"), turns=(turn("t"),), context=(), trigger="size", attempt=1)


async def test_batches_are_learnt_side_by_side_up_to_the_limit() -> None:
    at_once, most, learnt = 0, 0, []
    everything = asyncio.Event()

    async def learn(one: Batch) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        learnt.append(one.id)
        if len(learnt) == 6:
            everything.set()

    journal = Recording([batch(f"b{i}") for i in range(6)])
    learner = Learner(journal, learn, rules=BatchRules(), concurrency=2, poll_interval_s=0.01)
    async with running(learner):
        await asyncio.wait_for(everything.wait(), 2.0)
    assert sorted(learnt) == [f"b{i}" for i in range(6)]
    assert most == 2


async def test_a_batch_that_fails_does_not_end_the_learner() -> None:
    learnt = asyncio.Event()

    async def learn(one: Batch) -> None:
        if one.id == "bad":
            raise StoreUnavailable("down")
        learnt.set()

    journal = Recording([batch("bad"), batch("good")])
    learner = Learner(journal, learn, rules=BatchRules(), concurrency=1, poll_interval_s=0.01)
    async with running(learner):
        await asyncio.wait_for(learnt.wait(), 2.0)


async def test_a_locked_journal_is_asked_again_and_a_nudge_does_not_wait_for_the_poll() -> None:
    learnt = asyncio.Event()

    async def learn(one: Batch) -> None:
        learnt.set()

    journal = Recording([batch("b")])
    journal.failing = True
    learner = Learner(journal, learn, rules=BatchRules(), concurrency=1, poll_interval_s=30.0)
    async with running(learner):
        await asyncio.sleep(0.02)
        journal.failing = False
        learner.nudge()
        await asyncio.wait_for(learnt.wait(), 2.0)


async def test_while_nothing_is_written_the_journal_is_left_alone_until_a_nudge() -> None:
    learnt: asyncio.Queue[str] = asyncio.Queue()

    async def learn(one: Batch) -> None:
        learnt.put_nowait(one.id)

    journal, written = Recording([batch("first")]), 1
    learner = Learner(
        journal, learn, rules=BatchRules(), concurrency=1, poll_interval_s=0.005, last_write=lambda: written
    )
    async with running(learner):
        assert await asyncio.wait_for(learnt.get(), 2.0) == "first"
        await asyncio.sleep(0.03)
        looks = journal.claims
        await asyncio.sleep(0.1)
        assert journal.claims == looks
        journal.batches.append(batch("second"))
        written = 2
        assert await asyncio.wait_for(learnt.get(), 2.0) == "second"
        await asyncio.sleep(0.03)
        journal.batches.append(batch("third"))
        learner.nudge()
        assert await asyncio.wait_for(learnt.get(), 2.0) == "third"


async def test_what_only_time_makes_due_is_looked_for_after_a_share_of_the_shortest_time() -> None:
    learnt = asyncio.Event()

    async def learn(one: Batch) -> None:
        learnt.set()

    journal, rules = Recording(), BatchRules(idle_s=0.5)
    learner = Learner(journal, learn, rules=rules, concurrency=1, poll_interval_s=0.005, last_write=lambda: "same")
    async with running(learner):
        await asyncio.sleep(0.02)
        journal.batches.append(batch("b"))
        await asyncio.wait_for(learnt.wait(), 2.0)


async def test_nothing_is_claimed_while_nothing_can_be_learnt() -> None:
    learnt = asyncio.Event()
    able = False

    async def learn(one: Batch) -> None:
        learnt.set()

    journal = Recording([batch("b")])
    learner = Learner(journal, learn, rules=BatchRules(), concurrency=1, poll_interval_s=0.01)
    tasks = Tasks()
    tasks.spawn("learner", learner.run(lambda: able))
    try:
        await asyncio.sleep(0.05)
        assert [one.id for one in journal.batches] == ["b"]
        able = True
        await asyncio.wait_for(learnt.wait(), 2.0)
    finally:
        await tasks.cancel()


async def test_draining_waits_for_running_batches_and_cancels_what_takes_too_long() -> None:
    ended: list[str] = []

    async def learn(one: Batch) -> None:
        await asyncio.sleep(0.02 if one.id == "quick" else 60.0)
        ended.append(one.id)

    journal = Recording([batch("quick"), batch("slow")])
    learner = Learner(journal, learn, rules=BatchRules(), concurrency=2, poll_interval_s=0.01)
    async with running(learner):
        await asyncio.sleep(0.01)
        assert not await learner.drained(0.2)
    assert ended == ["quick"]


def watching(look: Any) -> Any:
    return lambda: SimpleNamespace(look=look)


async def test_a_change_of_topic_is_told_and_a_failed_look_is_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    found = [1, 0, 1]
    looked: list[float] = []
    told = asyncio.Event()

    async def look(now: float) -> int:
        looked.append(now)
        if len(looked) == 1:
            raise JournalError("something the user said")
        return found.pop()

    tasks, watch = Tasks(), watching(look)
    tasks.spawn("topics", watch_topics(watch, told.set, interval_s=0.001, clock=lambda: 7.0))
    await asyncio.wait_for(told.wait(), 5.0)
    await tasks.cancel()
    assert looked[:2] == [7.0, 7.0]
    assert "JournalError" in caplog.text
    assert "said" not in caplog.text


async def test_topics_are_not_looked_at_while_that_cannot_work() -> None:
    looks: list[float] = []

    async def look(now: float) -> int:
        looks.append(now)
        return 0

    ready = asyncio.Event()
    task = Tasks()
    task.spawn("topics", watch_topics(watching(look), lambda: None, ready.is_set, interval_s=0.001))
    await asyncio.sleep(0.03)
    assert looks == []
    ready.set()
    await asyncio.sleep(0.03)
    await task.cancel()
    assert looks != []


async def test_owned_tasks_end_together_and_an_unexpected_failure_is_logged_without_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("something the user said")

    tasks = Tasks()
    with suppress(ValueError):
        await tasks.spawn("failing", fail())
    sleeping = tasks.spawn("sleeping", asyncio.sleep(60))
    await tasks.cancel()
    assert sleeping.cancelled()
    assert "ValueError" in caplog.text
    assert "said" not in caplog.text


async def test_work_that_never_ends_begins_again_after_a_failure_nobody_expected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks, begun, goes_on = Tasks(), [0], asyncio.Event()

    async def work() -> None:
        begun[0] += 1
        if begun[0] < 3:
            raise LookupError("what somebody said")
        goes_on.set()
        await asyncio.sleep(60)

    tasks.keep("work", work, pause_s=0.0)
    async with asyncio.timeout(60):
        await goes_on.wait()
    assert (begun[0], len(tasks)) == (3, 1)
    assert [record.getMessage() for record in caplog.records] == ["work failed, it begins again: LookupError"] * 2
    await tasks.cancel()
    assert len(tasks) == 0


async def test_what_swallows_its_cancellation_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await over.wait()

    tasks, over = Tasks(), asyncio.Event()
    going_on = tasks.spawn("stubborn", stubborn())
    ends = tasks.spawn("usual", asyncio.sleep(3600))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await tasks.cancel(timeout_s=0.05)
    assert ends.cancelled()
    assert not going_on.done()
    assert [record.message for record in caplog.records] == ["task stubborn was cancelled and goes on"]
    over.set()
    await going_on
    assert len(tasks) == 0
