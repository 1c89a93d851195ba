"""Who learns from single turns as soon as they are journalled: one after another for each user, beside the batches."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, InitVar, dataclass

from semmem.background.tasks import Outage, Tasks
from semmem.extraction.at_once import AtOnce, Found
from semmem.extraction.result import BatchResult, TurnLearnt
from semmem.extraction.settling import Settling
from semmem.lifecycle.holds import Busy, Holds, Lines
from semmem.memory import REFUSED, Turn, TurnEnding
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.learning import TurnState
from semmem.ports.recording import TurnClosed
from semmem.ports.spans import NO_TRACER, Place, Tracer, current

log = logging.getLogger(__name__)

OVERFLOW, LEFT, FAILED = "overflow", "left", "failed"
"""Why a turn was left to its batch: too many waited; its user's memories were being changed, or the store or the
embedder did not answer, or its words did not come, for too long; something failed."""
ENDED = (TurnEnding.ANSWERED, TurnEnding.ANSWER_LOST, TurnEnding.REFUSED)
RETRY_S, RETRY_FACTOR, RETRY_MAX_S = 0.1, 1.5, 1.0
"""How long is waited before the first further look, how much longer before each next one, and at most."""
LEFT_FOR_S, LEFT_MAX = 300.0, 100
"""Turns that were left longer ago are their batch's, and so many are taken up at a time."""


@dataclass(eq=False)
class AtOnceLearner:
    """At most ``queue_max`` turns wait or are learnt from, ``concurrency`` of them at the same time; a turn waits for
    its user at most ``wait_s``. TurnLearnt is announced, with the seconds since the turn's answer ended. Turns that a
    process left which is gone, or that could not be learnt from, are taken up by ``run``, by whatever replica has a
    place free, ``left_s`` seconds after they ended. Where answers are not waited for, a turn is learnt from when it was
    opened. ``can_learn``: while it is false, turns wait."""

    at_once: AtOnce
    settling: Settling
    holds: Holds
    _: KW_ONLY
    queue_max: int = 1000
    concurrency: InitVar[int] = 2
    wait_s: float = 60.0
    left_s: float = 10.0
    can_learn: Callable[[], bool] = lambda: True
    clock: Callable[[], float] = time.time
    announce: Announce = nobody_listens
    tracer: Tracer = NO_TRACER

    def __post_init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._outage = Outage(log, "look for turns that were left", level=logging.WARNING)
        self._tasks = Tasks()
        self._lines = Lines()  # a correction comes after what it corrects
        self._under_way: set[str] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def committed(self, opened: Iterable[Turn], closed: Iterable[TurnClosed]) -> None:
        """These halves are in the journal. Neither waits nor raises."""
        if self.at_once.unanswered:
            for turn in opened:
                self._accept(turn.id, turn.opened_at, turn.trace)
        for half in closed:
            if half.status in ENDED:
                self._accept(half.turn_id, half.closed_at, half.trace)

    async def run(self) -> None:
        """Look for turns that were left, until cancelled."""
        while True:
            await asyncio.sleep(self.left_s / 2)
            try:
                await self.take_up()
                self._outage.worked()
            except SemmemError as error:
                self._outage.failed(type(error).__name__)

    async def take_up(self) -> None:
        """Learn from turns that were left, unless as many as may be are learnt from now. Raises JournalError."""
        if self._slots.locked() or not self.can_learn():
            return
        now = self.clock()
        for turn_id, ended_at in await self.at_once.left(
            since=now - LEFT_FOR_S, before=now - self.left_s, limit=LEFT_MAX
        ):
            if turn_id not in self._under_way:
                self._accept(turn_id, ended_at, "")

    async def drained(self, timeout_s: float) -> bool:
        """Wait for what is under way; the batch of whatever is left learns from it."""
        return await self._tasks.drained(timeout_s)

    def _accept(self, turn_id: str, ended_at: float, trace: str) -> None:
        if len(self._tasks) >= self.queue_max:
            self.announce(TurnLearnt(BatchResult(OVERFLOW), 0.0))
        else:
            self._tasks.spawn("learn at once", self._learn(turn_id, ended_at, Place(trace)))

    async def _learn(self, turn_id: str, ended_at: float, place: Place) -> None:
        self._under_way.add(turn_id)
        try:
            with self.tracer.resume("semmem.learn_at_once", place) as span:
                result = await self._result(turn_id)
                span.note("semmem.status", "nothing" if result is None else result.status)
        finally:
            self._under_way.discard(turn_id)
        if result is not None:
            self.announce(TurnLearnt(result, max(0.0, self.clock() - ended_at)))

    async def _result(self, turn_id: str) -> BatchResult | None:
        """None when there was nothing to do."""
        try:
            async with asyncio.timeout(self.wait_s):
                return await self._learn_in_line(turn_id)
        except TimeoutError:
            return BatchResult(LEFT)
        except SemmemError as error:
            return BatchResult(FAILED, cause=type(error).__name__)

    async def _learn_in_line(self, turn_id: str) -> BatchResult | None:
        """None when there is nothing to do."""
        state, turn = await self._turn(turn_id)
        if turn is None:
            return None
        current().about(turn.scope)
        found: Found | None = None
        async with self._lines.turn(turn.scope.user):
            for pause_s in _pauses():
                if self.can_learn():
                    async with self._slots:
                        if state is not TurnState.REFUSED and found is None:
                            found = await self.at_once.read(turn)
                        if found is not None and found.is_idle:  # as most turns: no word with the store
                            return await self.at_once.pass_over(found)
                        try:
                            async with self.holds.held(turn.scope.user, wait_s=0.0) as hold_id:
                                return await self._settle_or_learn(turn, found, hold_id)
                        except Busy:
                            pass
                await asyncio.sleep(pause_s)
        raise AssertionError("pauses never end")

    async def _turn(self, turn_id: str) -> tuple[TurnState, Turn | None]:
        """The turn, as soon as its words are there; None when nothing is to be done about it."""
        for pause_s in _pauses():
            state, turn = await self.at_once.records.turn_state(turn_id)
            if self.at_once.is_ready(state) or state is TurnState.REFUSED:
                return state, turn
            if state in (TurnState.READ, TurnState.DONE):
                return state, None
            await asyncio.sleep(pause_s)
        raise AssertionError("pauses never end")

    async def _settle_or_learn(self, turn: Turn, found: Found | None, hold_id: str) -> BatchResult | None:
        result = await self.at_once.learn(turn.id, hold_id, found)
        if result.status != REFUSED:
            return result
        gone = await self.settling.take_back(turn, batch=hold_id, now=self.clock())
        removals = tuple(removal for placed, _ in gone for removal in placed.removals)
        return BatchResult(REFUSED, removals=removals) if removals else None


def _pauses() -> Iterable[float]:
    pause_s = RETRY_S
    while True:
        yield pause_s
        pause_s = min(pause_s * RETRY_FACTOR, RETRY_MAX_S)
