"""Learn from one turn as soon as its answer has ended: provisional memories, which its batch settles later.

It is the local extractor that reads it, the same that batches without a model are learnt by: these read again only
what was left to them. Ids are made of the turn and of what is said, so that a turn that is read again, here or on
another replica, doubles nothing. What this misses (a crash, a full queue, a store that is down) is taken up a little
later by whoever has time, else the batch learns it.
"""

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

from semmem.extraction.candidate import Action, Candidate, Placed, memory_id
from semmem.extraction.reading import UNHEARD, ForgetRequest, Reader
from semmem.extraction.result import BatchResult, Tally
from semmem.extraction.screen import Ruling, Screened, same_text
from semmem.extraction.storing import Storing, extracted
from semmem.extraction.unlearning import Unlearning
from semmem.lifecycle.spared import as_settled
from semmem.memory import REFUSED, Fact, Scope, Turn
from semmem.ports.errors import SemmemError
from semmem.ports.learning import Batch, Extracted, Extractor, ProvisionalRecords, TurnState
from semmem.text.grounding import SourceText

AT_ONCE = "at_once"
"""Trigger word of the batch of one turn that the extractor is shown."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a turn says, before anything is stored. ``said``: its words, as facts are held against them. ``partly``:
    another try may find more."""

    turn: Turn
    facts: Sequence[Fact]
    said: SourceText
    tally: Tally
    forget: tuple[ForgetRequest, ...] = ()
    partly: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done about it."""
        return not self.facts and not self.forget

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to the batch, which also counts, by reason, what was rejected."""
        return not self.partly and not self.tally.rejected


@dataclass(eq=False, repr=False)
class AtOnce:
    """Whoever has it learn holds the turn's user. ``unanswered``: answers are not waited for: nobody tells of them."""

    records: ProvisionalRecords
    extractor: Extractor
    storing: Storing
    _: KW_ONLY
    reader: Reader = field(default_factory=Reader)
    unlearning: Unlearning | None = None
    unanswered: bool = False

    def is_ready(self, state: TurnState) -> bool:
        """Whether a turn of this state may be learnt from now."""
        return state is TurnState.CLOSED or (self.unanswered and state is TurnState.OPEN)

    async def left(self, *, since: float, before: float, limit: int) -> list[tuple[str, float]]:
        """Turns of that time that nobody has learnt from, oldest first, and when each ended. Raises JournalError."""
        return await self.records.left(since=since, before=before, unanswered=self.unanswered, limit=limit)

    async def read(self, turn: Turn) -> Found:
        """What the turn says; nobody need hold its user. Raises SemmemError."""
        tally = Tally()
        alone = Batch(turn.id, turn.scope, (turn,), (), AT_ONCE, attempt=1)
        read = await self.reader.read(alone)
        tally.engine = self.extractor.name
        found = await extracted(self.extractor, read.shown) if read.shown.turns else Extracted([])
        facts = await self.storing.screened(read.weighed(found.facts), {turn.id}, read.said, tally)
        return Found(turn, facts, read.said, tally, read.forget, found.partly or read.embedded is UNHEARD)

    async def pass_over(self, found: Found) -> BatchResult:
        """There is nothing to be stored of a turn, so that nobody need hold its user: it is not read again. Raises
        JournalError."""
        await self.records.note_read(found.turn, wholly=found.is_whole)
        return found.tally.result(earlier=0)

    async def learn(self, turn_id: str, hold_id: str, found: Found | None = None) -> BatchResult:
        """Learn from a turn; ``late`` when there is nothing to learn from it any more, ``refused`` when there never
        was, ``failed`` when it could not be done. ``found``: what was read of it, if its words are the same still.
        Raises nothing but cancellation and mistakes of ours."""
        try:
            state, turn = await self.records.turn_state(turn_id)
            if state is TurnState.REFUSED:
                return BatchResult(REFUSED)
            if turn is None or not self.is_ready(state):
                return BatchResult("late")
            if found is None or found.turn.user_text != turn.user_text:
                found = await self.read(turn)
            await self._learn(found, hold_id)
        except SemmemError as error:
            return BatchResult("failed", engine=self.extractor.name, cause=type(error).__name__)
        return found.tally.result(earlier=0)

    async def _learn(self, found: Found, hold_id: str) -> None:
        turn, facts = found.turn, found.facts
        known = {noted.memory_id for noted in await self.records.provisional([turn.id])}
        for fact, verdict in zip(facts, await self.storing.verdicts(facts, found.said), strict=True):
            if not await self._place(found, fact, verdict, hold_id, known):
                return
        if self.unlearning is not None:
            for placed, _ in await self.unlearning.obey(found.forget, hold=hold_id, now=self.storing.clock()):
                found.tally.went(placed)
        await self.records.note_read(turn, wholly=found.is_whole and not known, hold=hold_id)

    async def _place(self, found: Found, fact: Fact, verdict: Screened, hold_id: str, known: Collection[str]) -> bool:
        """Store one fact; False when the turn waits no longer. What is suspicious is left to the batch, and so is what
        an earlier try began to write, or what somebody had erased since (``known``)."""
        if verdict.outcome in (Ruling.REJECT, Ruling.QUARANTINE):
            found.tally.rejected[verdict.reason] += 1
            return True
        memory_id = provisional_id(found.turn, fact.content)
        if memory_id in known:
            return True
        new = await self.storing.candidate(fact, found.turn, memory_id, hold_id, provisional=True)
        placed = await self.storing.put(new, verdict, partial(self._put, new), found.tally)
        return placed is None or placed.action is not Action.FORGOTTEN

    async def _put(self, new: Candidate) -> Placed:
        """Its turn is told first which memory it is made into; where another one says the same already, that one."""
        turn = new.turn
        if not await self.records.note_provisional(turn.id, [new.id]):
            return Placed(Action.FORGOTTEN)
        placed = await self.storing.dedup.place(new)
        if placed.action is not Action.UPDATED and placed.id not in ("", new.id):
            await self.records.note_provisional(turn.id, [placed.id])
        # Again: whoever erases a turn marks it before he removes its memories.
        state, now = await self.records.turn_state(turn.id)
        if self.is_ready(state):
            return await self._unless_reworded(placed, new, now)
        if now is not None and not await self._is_unknown(placed, new, state):
            return placed
        if placed.action is not Action.UNCHANGED and state is not TurnState.REFUSED:  # which is taken back as a whole
            await self.storing.dedup.take_back(replace(new, id=_written(placed, new)))
        return Placed(Action.FORGOTTEN, placed.removals)

    async def _is_unknown(self, placed: Placed, new: Candidate, state: TurnState) -> bool:
        """Whether a batch that learnt from the turn while it was written here does not know of what was written. It
        comes to that where an erasure elsewhere cuts a hold off. What it has confirmed is settled, and an older memory
        that says this now was the user's before: neither is taken back."""
        if state is TurnState.REFUSED:
            return True
        if state is not TurnState.DONE or _written(placed, new) != new.id:
            return False
        stored = await self.storing.dedup.stored(new.turn.scope.user, new.id)
        return stored is not None and stored.is_provisional

    async def _unless_reworded(self, placed: Placed, new: Candidate, now: Turn | None) -> Placed:
        """Something was taken out of the turn's words since they were read: its batch reads what is left."""
        if now is None or now.user_text == new.turn.user_text:
            return placed
        if placed.id == new.id or placed.action is Action.OUTDATED:  # made of these words alone
            await self.storing.dedup.take_back(new)
        elif placed.action is Action.UPDATED:
            await self._unsay(placed.id, new)
        return Placed(Action.FORGOTTEN, placed.removals)

    async def _unsay(self, memory_id: str, new: Candidate) -> None:
        """A memory that says these words now says again what it said before."""
        user = new.turn.scope.user
        held = await self.storing.dedup.stored(user, memory_id)
        versions = await self.records.versions(Scope(user), memory_id)
        earlier = [old for old in versions if old.source.turn != new.turn.id]
        if held is not None and held.source.turn == new.turn.id and earlier:
            before = await self.storing.embedded(as_settled(earlier[-1]))
            await self.storing.dedup.retiring.unsay(held, before, new)


def _written(placed: Placed, new: Candidate) -> str:
    """The memory that was written, if one was: what is outdated names the one that says otherwise."""
    return placed.id if placed.action is Action.UPDATED else new.id


def provisional_id(turn: Turn, content: str) -> str:
    """The id of the provisional memory of what a turn said: alike on every replica, for every try."""
    return memory_id(turn.id, f"{AT_ONCE}\n{same_text(content)}")
