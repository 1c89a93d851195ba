"""What becomes of the provisional memories of a batch's turns, once the batch has learnt from them.

    read wholly     at once, by the extractor that the batch would ask: confirmed
    said again      word for word: confirmed, the same memory
    rewritten       a fact of the batch says all of it in other words: the memory says it so from now on; or another
                    memory says it, and this one goes
    named as wrong  by the model that read the turn, with a reason: it goes, and what it had replaced is retrieved
                    again; but never one with a standing, since pasted text may have steered the model
    else            confirmed: that a model says nothing of it is no evidence

Losing is worse than doubling, so "all of it" means every number, every name, every other telling word and a negation.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from semmem.extraction.candidate import Action, Candidate, Placed, reconsidered
from semmem.extraction.model_judge import Opinions
from semmem.extraction.screen import same_text
from semmem.extraction.storing import Storing
from semmem.lifecycle.spared import as_settled
from semmem.memory import MODEL_DROPPED, REFUSED, REWRITTEN, Memory, MemoryStatus, Scope, Turn
from semmem.ports.learning import Batch, ProvisionalRecords, TurnState
from semmem.text.grounding import SourceText, content_words, is_negative
from semmem.text.quoting import unquoted

OVERDUE_MAX = 50
"""Turns that are settled with a batch of others."""

_ELSEWHERE = (Action.UPDATED, Action.REWRITTEN)
"""What placing a fact did where another memory says it now."""


@dataclass(slots=True)
class Provisional:
    """What the turns of a batch were made into at once. ``waiting``: memories by id that are provisional still,
    superseded ones among them, and those of other turns that say the same as one of these. ``known``: texts that an
    earlier try of the batch has confirmed, or that have been replaced since in the same memory. ``noted``: turns that
    were made into something, and ``shut`` those of which somebody had a memory erased: nothing more is learnt from
    them. ``missing``: something that they were made into is not in the store, and nobody had it erased."""

    turns: frozenset[str]
    noted: frozenset[str]
    waiting: dict[str, Memory]
    known: frozenset[str]
    shut: frozenset[str]
    missing: bool

    def readable(self, batch: Batch) -> Batch:
        """The batch without turns that nothing is learnt from."""
        both = batch.turns, batch.context
        turns, context = (tuple(turn for turn in some if turn.id not in self.shut) for some in both)
        return replace(batch, turns=turns, context=context)

    def saying(self, content: str) -> Memory | None:
        """The one that says the same."""
        same = (memory for memory in self.waiting.values() if same_text(memory.content) == same_text(content))
        return next(same, None)

    def own(self) -> list[Memory]:
        """Those that were made of these turns, the oldest first."""
        mine = (memory for memory in self.waiting.values() if memory.source.turn in self.turns)
        return sorted(mine, key=lambda memory: (memory.said_at, memory.id))

    def notes(self, shown: Batch) -> list[Memory]:
        """Those that a model which is shown these turns may name as wrong."""
        seen = {turn.id for turn in shown.turns}
        return [memory for memory in self.own() if memory.source.turn in seen and may_be_dropped(memory)]

    def rewritten(self, content: str) -> Memory | None:
        """The one that says no more than this."""
        says = {"": content}
        return next((memory for memory in self.own() if rewritten_by(memory.content, says) is not None), None)


@dataclass(eq=False, repr=False)
class Settling:
    """Raises StoreError and JournalError. Whoever calls it holds the user."""

    records: ProvisionalRecords
    storing: Storing

    def __post_init__(self) -> None:
        self._dedup, self._retiring = self.storing.dedup, self.storing.dedup.retiring

    async def of(self, user: str, turns: Sequence[Turn]) -> Provisional:
        """What these turns were made into."""
        turn_ids = frozenset(turn.id for turn in turns)
        noted = await self.records.provisional(sorted(turn_ids))
        found = [await self._dedup.stored(user, each.memory_id) for each in noted if not each.forgotten]
        memories = [memory for memory in found if memory is not None]
        settled = [memory for memory in memories if not memory.is_provisional]
        past = [old for memory in memories for old in await self._earlier(memory) if old.source.turn in turn_ids]
        return Provisional(
            turns=turn_ids,
            noted=frozenset(each.turn_id for each in noted),
            waiting={memory.id: memory for memory in memories if memory.is_provisional},
            known=frozenset(same_text(memory.content) for memory in [*settled, *past]),
            shut=frozenset(each.turn_id for each in noted if each.forgotten),
            missing=None in found,
        )

    async def _earlier(self, memory: Memory) -> list[Memory]:
        """What a memory said before, by another turn, oldest first."""
        if memory.version == 1:
            return []
        versions = await self.records.versions(Scope(memory.user), memory.id)
        return [old for old in versions if old.source.turn != memory.source.turn]

    async def place(self, new: Candidate, told: Provisional, opinions: Opinions) -> Placed:
        """Store one fact of the batch: confirm or rewrite what says the same, else compare it with everything."""
        if same_text(new.fact.content) in told.known:
            return Placed(Action.UNCHANGED)
        if (held := await self._current(told.saying(new.fact.content))) is not None:
            del told.waiting[held.id]
            return await self._dedup.confirm(held, new, opinions)
        rewriting = await self._current(await asyncio.to_thread(told.rewritten, new.fact.content))
        placed = await self._dedup.place(new, opinions, rewriting=rewriting)
        if placed.action is Action.REWRITTEN and rewriting is not None:
            del told.waiting[rewriting.id]
        is_said = placed.id == new.id or placed.action in (Action.OUTDATED, *_ELSEWHERE)
        # Looked at again after the write: whoever erases a memory tells its turn first.
        noted = await self.records.provisional([new.turn.id]) if is_said and new.turn.id in told.noted else []
        if any(each.forgotten for each in noted):
            await self._undo(placed, new)
            return Placed(Action.FORGOTTEN)
        return placed

    async def _undo(self, placed: Placed, new: Candidate) -> None:
        """A memory of its own goes, and another one says again what it said before."""
        if placed.action not in _ELSEWHERE:
            return await self._dedup.take_back(new)
        user = new.turn.scope.user
        held = await self._dedup.stored(user, placed.id)
        versions = await self.records.versions(Scope(user), placed.id)
        if held is not None and held.content == new.fact.content and versions:
            before = await self.storing.embedded(as_settled(versions[-1]))
            await self._retiring.unsay(held, before, new)
        return None

    async def _current(self, told_before: Memory | None) -> Memory | None:
        """The memory as it is now, if it still is provisional and says what it said: other facts of the batch may have
        replaced it."""
        if told_before is None:
            return None
        held = await self._dedup.stored(told_before.user, told_before.id)
        return held if held and held.is_provisional and held.content == told_before.content else None

    async def settle(
        self, told: Provisional, says: Mapping[str, str], *, wrong: Mapping[str, str], batch: str, now: float
    ) -> list[tuple[Placed, Memory]]:
        """What is left of them, the oldest first. ``says``: the batch's facts by the id of the memory that says each;
        ``wrong``: what a model named as wrong, by id, as it was shown to it."""
        done: list[tuple[Placed, Memory]] = []
        for told_before in told.own():
            held = await self._current(told_before)
            if held is None:
                continue
            new = reconsidered(held, batch, now)
            by = await asyncio.to_thread(rewritten_by, held.content, says)
            if by is not None and await self._earlier(held):  # what it said before it said this stays as history
                placed = await self._retiring.retire(held, new, REWRITTEN, by=by)
            elif by is not None:
                placed = await self._withdraw(held, new, REWRITTEN, by)
            elif wrong.get(held.id) == held.content and held.source.turn not in told.shut and may_be_dropped(held):
                placed = await self.drop(held, MODEL_DROPPED, batch=batch, now=now)
            else:
                placed = await self._dedup.confirm(held, new)
            done.append((placed, held))
        return done

    async def confirm(self, told: Provisional, *, batch: str, now: float) -> list[tuple[Placed, Memory]]:
        """Let all of them stay, in one write: each was compared when it was written, and what came later with it."""
        held = told.own()
        return list(zip(await self._dedup.confirm_all(held, batch=batch, now=now), held, strict=True))

    async def drop(self, held: Memory, why: str, *, batch: str, now: float) -> Placed:
        """Let a provisional memory go, and bring back what it had replaced."""
        new = reconsidered(held, batch, now)
        earlier = await self._earlier(held)
        if held.status is MemoryStatus.ACTIVE:  # by what it said before, others were replaced for good
            versions = await self.records.versions(Scope(held.user), held.id) if earlier else []
            said = [each.updated_at for each in (*versions, held) if each.source.turn == held.source.turn]
            await self._retiring.reinstate(held.id, new, since=min(said) if earlier else 0.0)
        if not earlier:
            return await self._withdraw(held, new, why)
        before = await self.storing.embedded(as_settled(earlier[-1]))
        return await self._retiring.give_back(held, before, new, why)

    async def _withdraw(self, held: Memory, new: Candidate, why: str, by: str = "") -> Placed:
        """Noted afterwards: what is noted as withdrawn and yet is there, nobody would come back to."""
        placed = await self._retiring.withdraw(held, new, why, by=by)
        if placed.removals:
            await self.records.note_withdrawn(held.source.turn, held.id)
        return placed

    async def settle_overdue(self, user: str, *, batch: str, now: float) -> list[tuple[Placed, Memory]]:
        """What was left of earlier turns of the user, whose batch could not tell the store, or that were refused when
        nobody was there to take them back."""
        done: list[tuple[Placed, Memory]] = []
        for turn_id in await self.records.overdue(user, limit=OVERDUE_MAX):
            state, turn = await self.records.turn_state(turn_id)
            if turn is not None and state is TurnState.REFUSED:
                done += await self.take_back(turn, batch=batch, now=now)
            elif turn is not None and state is TurnState.DONE:
                done += await self.settle(await self.of(user, [turn]), {}, wrong={}, batch=batch, now=now)
                await self.done([turn])
        return done

    async def take_back(self, turn: Turn, *, batch: str, now: float) -> list[tuple[Placed, Memory]]:
        """The turn was refused after all: nothing is learnt from it. What could not go, since the hold was cut off, is
        overdue."""
        told = await self.of(turn.scope.user, [turn])
        gone = [(await self.drop(held, REFUSED, batch=batch, now=now), held) for held in told.own()]
        if all(placed.removals for placed, _ in gone):
            await self.done([turn])
        return gone

    async def done(self, turns: Sequence[Turn]) -> None:
        """Their batch has settled everything."""
        await self.records.settle_provisional([turn.id for turn in turns])


def may_be_dropped(held: Memory) -> bool:
    """Whether a model's word is enough: what somebody must not do, who they are and how they want to be answered is
    let go by their own words alone."""
    return held.standing is None and held.status is MemoryStatus.ACTIVE


def rewritten_by(content: str, says: Mapping[str, str]) -> str | None:
    """Which memory says all that ``content`` says; the one that shares most with it where it takes several."""
    told = unquoted(content)
    telling = content_words(told)
    near = {memory_id: text for memory_id, text in says.items() if content_words(text) & telling}
    near = {memory_id: text for memory_id, text in near.items() if is_negative(text) is is_negative(told)}
    if not SourceText("\n".join(map(unquoted, near.values()))).grounds(told, share_min=1.0):
        return None
    return max(near, key=lambda memory_id: (len(content_words(near[memory_id]) & telling), memory_id))
