"""New, changed or known already? Compare a fact with what is stored, and write it so that a crash cannot double it.

Losing is worse than doubling. Each of the nearest memories is the same (nothing is written), contradicted (the newest
wins) or something else (both stay), whatever the cosine: budgets of $10k and $15k are 0.95 apart from 1, "is" and "is
not" 0.98, a daughter Emma and a sister Emma 0.90, "lives in Boston" and "moved to Seattle" 0.61. What is contradicted
above ``update_threshold`` becomes a new version of the same memory, below it is superseded by a memory of its own:
dated, kept, no longer retrieved. Without a judge, cosines above ``update_threshold`` are updates.

A memory is retired only when nothing of it is left over, and a fact dropped only when it is said already: word for
word, as part of what a memory says, or as a paraphrase of which the trained judge is sure
(``contradiction.verdict.SAME_MIN``) and that says no more. ``verdict.may`` holds opinions and closed forms to
that. What went is in ``Placed.removals``, with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from semmem.extraction.candidate import (
    PAIR_FOUND,
    Action,
    Candidate,
    Placed,
    Removal,
    as_released,
    confirmed,
    created,
    reconsidered,
    updated,
)
from semmem.extraction.comparing import NO_OPINIONS, Compared, Comparing, with_vector
from semmem.extraction.model_judge import Opinions
from semmem.extraction.retiring import Retiring
from semmem.extraction.screen import same_text
from semmem.lifecycle.spared import replaced_by, superseded
from semmem.lifecycle.writes import Writes
from semmem.memory import CONTRADICTED, QUARANTINED, REPEATED, REWRITTEN, UNSETTLED, Hit, Memory, MemoryStatus, Scope
from semmem.ports.learning import ProvisionalRecords


@dataclass(eq=False, repr=False)
class Dedup:
    """Puts facts into the store of a user, one after another. ``comparing`` and ``retiring`` are its two halves, for
    whoever needs but one."""

    comparing: Comparing
    records: ProvisionalRecords

    def __post_init__(self) -> None:
        self._store = self.comparing.store
        self.retiring = Retiring(self._store, self.records)

    async def put(self, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Action:
        """``place``, for whoever only wants to know what it did."""
        return (await self.place(new, opinions)).action

    async def place(
        self, new: Candidate, opinions: Opinions = NO_OPINIONS, *, rewriting: Memory | None = None
    ) -> Placed:
        """Store one fact. An opinion on a pair outweighs the judge's, where it may be believed. ``rewriting`` is a
        memory that says the same in other words: where one would be created, it has a new version instead.

        Safe to repeat after a crash anywhere in it, with other opinions as well. Raises StoreError, JournalError.
        """
        if rewriting is not None:
            new = replace(new, apart=frozenset({rewriting.id}))
        found = await self.comparing.compared(new, opinions)
        if found.same is not None:
            return await self._drop(new, found.same)
        contradicted, later = _by_time(found.contradicted, new.turn.opened_at, new)
        new = replace(new, unsettled=_unsettled(found, new), changes_standing=_is_standing(contradicted))
        if later and (newer := await self.comparing.outdated_by(new, later)) is not None:
            return await self._put_outdated(new, newer)
        gone: tuple[Removal, ...] = ()
        if contradicted and self.comparing.is_update(new, contradicted[0]):
            if new.provisional:  # first: whoever erases what is written now is to be heard by its batch
                await self.records.note_provisional(new.turn.id, [contradicted[0].memory.id])
            gone, is_written = await self.retiring.update(new, contradicted)
            if is_written:
                settled = await self.retiring.settle(found.hits, gone, new)
                return Placed(Action.UPDATED, gone, contradicted[0].memory.id, _noted(new) + settled)
            contradicted = contradicted[1:]
        if rewriting is not None:
            return await self._rewrite(rewriting, new, contradicted, found.hits, gone)
        if not new.provisional:
            gone += await self.retiring.supersede(contradicted, new, by=new.id)
        if not await self._writes(new).put(created(new)):
            return Placed(Action.FORGOTTEN, gone)
        if new.provisional:  # afterwards: nobody comes back to it before its batch does, which compares it again
            gone += await self.retiring.supersede(contradicted, new, by=new.id)
        settled = await self.retiring.settle(found.hits, gone, new)
        return Placed(Action.SUPERSEDED if contradicted else Action.CREATED, gone, new.id, _noted(new) + settled)

    async def _rewrite(
        self,
        old: Memory,
        new: Candidate,
        contradicted: list[Hit],
        neighbours: Sequence[Hit],
        gone: tuple[Removal, ...],
    ) -> Placed:
        gone += await self.retiring.supersede(contradicted, new, by=old.id)
        new = replace(new, changes_standing=new.changes_standing or old.changes_standing)  # in other words the same
        if not await self._writes(new).replace(old, replace(updated(old, new), type=new.fact.type)):
            return Placed(Action.FORGOTTEN, gone)
        settled = await self.retiring.settle(neighbours, gone, new)
        gone = (*gone, Removal(REWRITTEN, old.id, old.id))
        return Placed(Action.REWRITTEN, gone, old.id, _noted(new, old) + settled)

    async def confirm(self, held: Memory, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Placed:
        """Let a provisional memory stay, which says what ``new`` says, and what it contradicts go, unless that was said
        later or in the same turn. Where another memory says the same, that one stays. Safe to repeat.

        Raises StoreError and JournalError.
        """
        new = replace(new, id=held.id, apart=frozenset({held.id}))
        gone: tuple[Removal, ...] = ()
        settled: tuple[str, ...] = ()
        if held.status is MemoryStatus.ACTIVE:
            found = await self.comparing.compared(new, opinions)
            if found.same is not None:
                return await self.retiring.retire(held, new, REPEATED, by=found.same.id)
            contradicted, later = _by_time(found.contradicted, held.said_at, new)
            new = replace(new, unsettled=_unsettled(found, new), changes_standing=_is_standing(contradicted))
            if later and (newer := await self.comparing.outdated_by(new, later)) is not None:
                return await self.retiring.retire(held, new, CONTRADICTED, by=newer.id)
            others = [hit for hit in contradicted if hit.memory.source.turn != held.source.turn]
            gone = await self.retiring.supersede(others, new, by=held.id)
            settled = await self.retiring.settle(found.hits, gone, new)
        if not await self._writes(new).put(confirmed(held, new)):
            return Placed(Action.FORGOTTEN, gone)
        return Placed(Action.CONFIRMED, gone, held.id, _noted(new, held) + settled)

    async def _put_outdated(self, new: Candidate, newer: Memory) -> Placed:
        """Keep the fact as history only."""
        put = await self._writes(new).put(replaced_by(created(new), (newer.id, CONTRADICTED)))
        removals = (Removal(CONTRADICTED, new.id, newer.id),) if put else ()
        return Placed(Action.OUTDATED if put else Action.FORGOTTEN, removals, newer.id)

    async def _drop(self, new: Candidate, known: Memory) -> Placed:
        """Nothing is stored; beside the memory it is noted that it was said again. What was provisional is not any
        more when a batch says it too."""
        if new.id == known.id:  # an earlier try of this very fact
            return Placed(Action.UNCHANGED, id=known.id)
        if known.is_provisional and not new.provisional:
            held = await with_vector(self._store, known)
            if held is not None:
                return await self.confirm(held, new)
        batch = new.batch or None
        await self.records.note_dropped(Scope(known.user), known.id, REPEATED, now=new.now, batch=batch)
        return Placed(Action.UNCHANGED, (Removal(REPEATED, new.id, known.id),), known.id)

    async def put_keyed(self, new: Candidate) -> Action:
        """Store what stands alone under its id (``keyed_id``): a new version of it, if there is one already.

        Safe to repeat like ``put``.
        """
        old = await self._store.get(_owner(new), new.id)
        if old is not None and same_text(old.content) == same_text(new.fact.content):
            return Action.UNCHANGED
        if old is None:
            if new.batch:  # else upkeep takes it for what a dead worker left of a forgotten one
                await self.records.settle(new.turn.scope.user, new.id)
            return Action.CREATED if await self._writes(new).put(created(new)) else Action.FORGOTTEN
        newer = updated(old, new)
        if old.status is MemoryStatus.SUPERSEDED:  # what took its place does not know what is said now
            newer = replace(newer, status=MemoryStatus.ACTIVE)
        return Action.UPDATED if await self._writes(new).replace(old, newer) else Action.FORGOTTEN

    async def take_back(self, new: Candidate) -> None:
        """Remove what was just stored, with all versions of it."""
        await self._writes(new).retract(created(new))

    async def quarantine(self, new: Candidate, reason: str) -> Action:
        """Keep a suspicious fact where an operator sees it and no search does. ``reason`` is the screen's word."""
        held = replace(created(new), status=MemoryStatus.QUARANTINED, metadata={QUARANTINED: reason})
        return Action.QUARANTINED if await self._writes(new).put(held) else Action.FORGOTTEN

    async def release(self, held: Memory, *, batch: str, now: float) -> tuple[Action, Memory]:
        """Let a quarantined memory (with its vector) be retrieved; the action taken, and the memory that says it.

        It is compared like a new fact: where another memory says the same it is superseded by that one, and what it
        contradicts is superseded by it. Raises StoreError and JournalError.
        """
        new = reconsidered(held, batch, now)
        found = await self.comparing.compared(new)
        if found.same is not None:
            await self._writes(new).replace(held, superseded(held, found.same.id, now, REPEATED))
            return Action.UNCHANGED, found.same
        released = as_released(held, now)
        # First what stays: where the hold is cut off, or the process dies, there are doubles then, and no hole.
        if not await self._writes(new).replace(held, released):
            return Action.FORGOTTEN, held
        contradicted = [] if new.fact.beside else found.contradicted
        await self.retiring.supersede(contradicted, new, by=held.id)
        return (Action.SUPERSEDED if contradicted else Action.CREATED), released

    async def holds(self, new: Candidate) -> bool:
        """Whether an earlier try created this very memory (it may have been changed since)."""
        return await self._store.get(_owner(new), new.id) is not None

    async def stored(self, user: str, memory_id: str) -> Memory | None:
        """A memory with its vector, of any status."""
        return await self._store.get(Scope(user), memory_id)

    def _writes(self, new: Candidate) -> Writes:
        return Writes(self._store, self.records, new.batch)


def _by_time(hits: Sequence[Hit], said_at: float, new: Candidate) -> tuple[list[Hit], list[Hit]]:
    """What was said until then and ends with the new fact, which is nothing where others speak in its message as well;
    and what was said later."""
    until = [] if new.fact.beside else [hit for hit in hits if hit.memory.said_at <= said_at]
    return until, [hit for hit in hits if hit.memory.said_at > said_at]


def _is_standing(hits: Sequence[Hit]) -> bool:
    return any(hit.memory.standing is not None for hit in hits)


def _unsettled(found: Compared, new: Candidate) -> tuple[str, ...]:
    """With what the new fact may disagree. A message in which others speak leaves no doubt at what was known."""
    return () if new.fact.beside else found.unsettled


def _noted(new: Candidate, before: Memory | None = None) -> tuple[str, ...]:
    """A word for each pair that is noted at the fact's memory, and was not yet at the version before."""
    known = () if before is None else before.metadata.get(UNSETTLED, ())
    return (PAIR_FOUND,) * len(set(new.unsettled).difference(known))


def _owner(new: Candidate) -> Scope:
    return Scope(new.turn.scope.user)
