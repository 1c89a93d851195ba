"""Learn from one batch: extract, summarise, screen, judge, store, and report the result.

Every step may fail or be cut off by a crash, and the batch then comes back with what the journal knows of it. So:
facts are saved before the first one is stored, each is marked once it is stored, and storing one again changes
nothing. What a model thought of the facts is not saved: another try asks again, and whatever it hears then, what is
stored already is found there.

A language model may take seconds. While one is asked the batch is set aside: its user's memories are free for others,
for turns that are learnt from at once and for calls of the API. What was read of them before is read again, or
compared again when it is written."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Protocol

from semmem.extraction.candidate import Action, Candidate, Placed, keyed_id, memory_id
from semmem.extraction.comparing import NO_OPINIONS
from semmem.extraction.llm import ENDS, SessionSummariser
from semmem.extraction.model_judge import ModelJudge, Opinions, Pair, Unsettled
from semmem.extraction.reading import Read, Reader
from semmem.extraction.result import BatchResult, Tally
from semmem.extraction.screen import Ruling, Screened
from semmem.extraction.settling import Provisional, Settling
from semmem.extraction.storing import Keeping, Storing, extracted
from semmem.extraction.unlearning import Unlearning
from semmem.memory import Fact, Memory
from semmem.ports.errors import JournalError, ModelError, ModelRefused, ModelUnavailable, SemmemError
from semmem.ports.learning import Batch, BatchRecords, Extracted, Extractor, ProvisionalRecords
from semmem.text.grounding import SourceText

New = tuple[Candidate, Screened]
"""A fact ready to be stored, and the screen's ruling on it."""
BACKOFF_FACTOR = 4
"""Each wait between two tries is this much longer: with the defaults five tries span 81 minutes of an outage."""
TAKE_UP_S = 0.05
"""Between two looks whether a hold that was had while a model was asked has ended."""


class LearningRecords(BatchRecords, ProvisionalRecords, Protocol):
    """What learning needs of the journal."""


@dataclass(slots=True)
class _Try:
    """One try at a batch. ``told``: what its turns were made into at once, as far as is known by now."""

    batch: Batch
    told: Provisional
    tally: Tally


@dataclass(eq=False, repr=False)
class Learning:
    """Learns from leased batches. Holds no state of its own: any number of batches of different users at a time.

    ``fallback`` takes over when the extractor refuses, and on the last of ``attempts_max`` tries. A try that failed is
    repeated after ``backoff_s``, four times as long after each further one, up to ``backoff_max_s``. ``reader`` says
    what is read of a turn. ``model_judge`` is asked which of the facts replace or repeat what is stored, about pairs
    that are ``unsettled`` as well, and ``summariser`` for a summary of a session that has ended; when either fails, the
    batch goes on without. ``passages`` keeps what was said, before anybody is asked what it means, and ``unlearning``
    lets go what the user asks to forget. ``local_engine`` is the name of the extractor that reads turns at once:
    another one is a model's, which may name what was learnt at once as wrong."""

    journal: LearningRecords
    storing: Storing
    extractor: Extractor
    _: KW_ONLY
    fallback: Extractor | None = None
    reader: Reader = field(default_factory=Reader)
    model_judge: ModelJudge | None = None
    unsettled: Unsettled | None = None
    summariser: SessionSummariser | None = None
    passages: Keeping | None = None
    unlearning: Unlearning | None = None
    local_engine: str = "rules"
    attempts_max: int = 5
    backoff_s: float = 60.0
    backoff_max_s: float = 3600.0

    def __post_init__(self) -> None:
        self.settling = Settling(self.journal, self.storing)

    async def learn(self, batch: Batch) -> BatchResult:
        """Work off one leased batch, and finish or postpone it. Raises nothing but cancellation."""
        try:
            return await self._learn(batch)
        except Exception as error:  # a mistake of ours as well: a batch must come to an end, and be counted
            return await self._try_later(batch, type(error).__name__)

    async def _learn(self, batch: Batch) -> BatchResult:
        if batch.attempt > self.attempts_max:
            return await self._give_up(batch, BatchResult("gave_up", cause="attempts"))
        one = _Try(batch, await self.settling.of(batch.scope.user, batch.turns), Tally())
        read = await self.reader.read(one.told.readable(batch))
        if self.passages is not None:
            asked_at = max((request.turn.opened_at for request in read.forget), default=0.0)
            one.tally.passages.update(await self.passages.keep(read.own_turns, batch.id, no_gist_until=asked_at))
        if await self._was_read(one):
            one.tally.engine = self.extractor.name
            await self._settled(one, await self.settling.confirm(one.told, batch=batch.id, now=self.storing.clock()))
            return await self._finish(batch, one.tally.result(earlier=0))
        try:
            facts, wrong = await self._facts(one, read)
        except ModelRefused as error:
            failed = BatchResult("extraction_failed", engine=one.tally.engine, cause=type(error).__name__)
            return await self._give_up(batch, failed)
        one.told = await self.settling.of(batch.scope.user, batch.turns)  # a model takes its time
        if any(turn.id in one.told.shut for turn in read.shown.turns):
            # no wait for vectors: what is shut meanwhile would be missed
            read = await asyncio.to_thread(self.reader.read_with, one.told.readable(batch), read.embedded)
        await self._apply(one, read.weighed(facts), wrong, read.said)
        if self.unlearning is not None:
            for placed, _ in await self.unlearning.obey(read.forget, hold=batch.id, now=self.storing.clock()):
                one.tally.went(placed)
        return await self._finish(batch, one.tally.result(earlier=batch.applied))

    async def _was_read(self, one: _Try) -> bool:
        """Whether the same extractor has read every turn at once, and left nothing; and what it made of them is there:
        it may have gone with another turn that said the same."""
        if self.extractor.name != self.local_engine or one.batch.facts is not None or one.told.missing:
            return False
        left = {turn.id for turn in one.told.readable(one.batch).turns}
        return left <= await self.journal.read_wholly(sorted(left))

    async def _apply(self, one: _Try, facts: Sequence[Fact], wrong: Mapping[str, str], said: SourceText) -> None:
        """Store what is left of the facts, and settle what the turns were made into at once. Facts are screened again
        before they are stored, since an earlier try may have saved them under other settings."""
        batch = one.batch
        verdicts = await self.storing.verdicts(facts, said)
        left = range(batch.applied, len(facts))
        news = [await self._candidate(one, index, facts[index], verdicts[index]) for index in left]
        opinions, pairs, was_aside = await self._opinions(batch, news)
        if was_aside:
            news = await self._as_it_is_now(one, news)
        kept = [index for index in range(batch.applied) if verdicts[index].outcome in (Ruling.KEEP, Ruling.REDACT)]
        says = {memory_id(batch.id, index): verdicts[index].content for index in kept}
        for index, new in zip(left, news, strict=True):
            if new is not None:
                placed = await self.storing.put(*new, partial(self._put, one, *new, opinions), one.tally)
                says |= {placed.id: new[0].fact.content} if placed is not None and placed.id else {}
            await self.journal.mark_applied(batch.id, index + 1)
        if self.unsettled is not None:
            one.tally.went(await self.unsettled.settle(pairs, opinions, batch=batch.id, now=self.storing.clock()))
        await self._settle(one, says, wrong)

    async def _settle(self, one: _Try, says: Mapping[str, str], wrong: Mapping[str, str]) -> None:
        settling = self.settling.settle(one.told, says, wrong=wrong, batch=one.batch.id, now=self.storing.clock())
        await self._settled(one, await settling)

    async def _settled(self, one: _Try, done: Sequence[tuple[Placed, Memory]]) -> None:
        """With what is overdue."""
        batch = one.batch
        overdue = self.settling.settle_overdue(batch.scope.user, batch=batch.id, now=self.storing.clock())
        for placed, memory in [*done, *await overdue]:
            one.tally.settle(placed, memory)

    async def _facts(self, one: _Try, read: Read) -> tuple[Sequence[Fact], Mapping[str, str]]:
        """The facts, and by id what a model named as wrong. Of an earlier try only the facts are known: what it named
        stays."""
        if one.batch.facts is not None:
            return one.batch.facts, {}
        shown, notes = read.shown, one.told.notes(read.shown)
        found = await self._extract(shown, notes, one.tally)
        facts = await self.storing.screened(found.facts, {turn.id for turn in shown.turns}, read.said, one.tally)
        facts += await self._summary(shown, one.tally)
        await self.journal.save_facts(shown.id, facts)
        one.tally.ignored.update(found.ignored)
        return facts, {notes[place].id: notes[place].content for place in found.wrong}

    async def _extract(self, shown: Batch, notes: Sequence[Memory], tally: Tally) -> Extracted:
        """What the extractor found, or the fallback where there is one and the extractor will not do."""
        if not shown.turns:
            return Extracted([])
        tally.engine = self.extractor.name
        try:
            if self.extractor.name == self.local_engine:
                return await extracted(self.extractor, shown)
            async with self._aside(shown):
                return await extracted(self.extractor, shown, notes)
        except (ModelRefused, ModelUnavailable) as error:
            last = shown.attempt >= self.attempts_max
            if self.fallback is None or (isinstance(error, ModelUnavailable) and not last):
                raise
        tally.engine = self.fallback.name
        return await extracted(self.fallback, shown)

    async def _summary(self, shown: Batch, tally: Tally) -> list[Fact]:
        """The session's summary, when the session has ended and its facts came from a model as well."""
        if self.summariser is None or shown.trigger not in ENDS or tally.engine != self.extractor.name:
            return []
        session = await self.journal.session_turns(shown.turns[-1], limit=self.summariser.turns_max)
        turns = await self.reader.turns([turn for turn in session if turn.scope == shown.scope])
        try:
            async with self._aside(shown):
                summary = await self.summariser.summarise(turns)
        except ModelError:  # counted by the model's own metric; the facts are worth more than their summary
            return []
        if summary is None:
            return []
        ground = SourceText(summary.content)  # which the whole session's words are already
        return await self.storing.screened([summary], {turn.id for turn in shown.turns}, ground, tally)

    @asynccontextmanager
    async def _aside(self, batch: Batch) -> AsyncIterator[None]:
        """While a model is asked. A try that failed is postponed by whoever has it in hand again; one that is cancelled
        stays aside until its lease is over."""
        await self.journal.set_aside(batch.id)
        try:
            yield
        except Exception:
            await self._in_hand(batch)
            raise
        await self._in_hand(batch)

    async def _in_hand(self, batch: Batch) -> None:
        while True:
            if await self.journal.take_up(batch.id, now=self.storing.clock()):
                return
            await asyncio.sleep(TAKE_UP_S)

    async def _candidate(self, one: _Try, index: int, fact: Fact, verdict: Screened) -> New | None:
        """One fact ready to be stored."""
        batch = one.batch
        turn = next((turn for turn in batch.turns if turn.id == fact.turn_id), None)
        if fact.turn_id in one.told.shut:
            one.tally.actions[Action.FORGOTTEN.value] += 1
            return None
        if turn is None or verdict.outcome is Ruling.REJECT or (fact.key and verdict.outcome is Ruling.QUARANTINE):
            one.tally.rejected[verdict.reason or "unknown_turn"] += 1
            return None
        new_id = memory_id(batch.id, index) if fact.key is None else keyed_id(batch.scope.user, fact.key)
        screened = replace(fact, content=verdict.content)
        return await self.storing.candidate(screened, turn, new_id, batch.id), verdict

    async def _opinions(self, batch: Batch, news: Sequence[New | None]) -> tuple[Opinions, Sequence[Pair], bool]:
        """What the model thinks of the facts that compete with others, and, as it is asked anyway, of the pairs that
        nobody has settled; and whether it was asked. Without it the rules' judgement stands."""
        facts = [entry[0] for entry in news if entry is not None and entry[1].outcome is not Ruling.QUARANTINE]
        if self.model_judge is None or not facts:
            return NO_OPINIONS, (), False
        doubts = await self.storing.dedup.comparing.doubts([new for new in facts if new.fact.key is None])
        pairs = await self.unsettled.pairs(batch.scope.user) if doubts and self.unsettled is not None else []
        doubts += [pair.doubt for pair in pairs]
        if not doubts:
            return NO_OPINIONS, (), False
        try:
            async with self._aside(batch):
                return await self.model_judge.opinions(doubts, [new.turn for new in facts]), pairs, True
        except ModelError:
            return NO_OPINIONS, (), True

    async def _as_it_is_now(self, one: _Try, news: Sequence[New | None]) -> list[New | None]:
        """The facts without those of turns that are shut, since others have learnt and erased while a model was asked.
        What the turns were made into is read again."""
        one.told = await self.settling.of(one.batch.scope.user, one.batch.turns)
        now = self.storing.clock()
        left: list[New | None] = []
        for entry in news:
            if entry is not None and entry[0].turn.id in one.told.shut:
                one.tally.actions[Action.FORGOTTEN.value] += 1
                entry = None
            left.append(None if entry is None else (replace(entry[0], now=now), entry[1]))
        return left

    async def _put(self, one: _Try, new: Candidate, verdict: Screened, opinions: Opinions) -> Placed:
        if verdict.outcome is Ruling.QUARANTINE:
            return Placed(await self.storing.dedup.quarantine(new, verdict.reason))
        if new.fact.key is not None:
            return Placed(await self._put_summary(new))
        if one.batch.attempt > 1 and await self.storing.dedup.stored(one.batch.scope.user, new.id) is not None:
            return Placed(Action.CREATED, id=new.id)  # by an earlier try; it may have been changed since
        return await self.settling.place(new, one.told, opinions)

    async def _put_summary(self, new: Candidate) -> Action:
        """Not when a memory of its session was forgotten since it was made: looked at again when it is stored, since
        whoever forgets marks the session before he removes anything."""
        if not await self.journal.session_turns(new.turn, limit=1):
            return Action.FORGOTTEN
        action = await self.storing.dedup.put_keyed(new)
        if action is Action.UNCHANGED or await self.journal.session_turns(new.turn, limit=1):
            return action
        await self.storing.dedup.take_back(new)
        return Action.FORGOTTEN

    async def _try_later(self, batch: Batch, cause: str) -> BatchResult:
        """Postpone or give up. When the journal cannot even note that, the lease runs out and the batch comes back."""
        try:
            if batch.attempt >= self.attempts_max:
                return await self._give_up(batch, BatchResult("gave_up", cause=cause))
            wait_s = min(self.backoff_s * BACKOFF_FACTOR ** (batch.attempt - 1), self.backoff_max_s)
            await self.journal.postpone(batch.id, until=self.storing.clock() + wait_s)
        except JournalError:
            pass
        return BatchResult("postponed", cause=cause)

    async def _give_up(self, batch: Batch, result: BatchResult) -> BatchResult:
        """What was learnt at once from the batch's turns stays, as far as the store can be told."""
        tally = Tally()
        with suppress(SemmemError):
            told = await self.settling.of(batch.scope.user, batch.turns)
            await self._settle(_Try(batch, told, tally), {}, {})
        given_up = replace(
            result, stored=tally.stored, actions=tally.actions, removals=tuple(tally.removals), pairs=tally.pairs
        )
        return await self._finish(batch, given_up)

    async def _finish(self, batch: Batch, result: BatchResult) -> BatchResult:
        """What the turns were made into is forgotten last: where the batch was cut off they wait for another one, which
        has to know what of them was erased. After a crash here it is overdue."""
        await self.journal.finish(batch.id, result.status, now=self.storing.clock())
        with suppress(JournalError):
            await self.settling.done(batch.turns)
        return result


def choose_extractor(engine: str, *, llm: Extractor | None, rules: Extractor) -> tuple[Extractor, Extractor | None]:
    """The extractor and its fallback for an engine word: ``llm``, ``rules``, or ``auto`` (llm when there is one, with
    the rules behind it). Raises ValueError for another word, and for ``llm`` without one."""
    if engine == "rules" or (engine == "auto" and llm is None):
        return rules, None
    if engine not in ("llm", "auto"):
        raise ValueError("engine must be llm, rules or auto")
    if llm is None:
        raise ValueError("engine llm needs a model with the role memory_extraction")
    return llm, rules if engine == "auto" else None
