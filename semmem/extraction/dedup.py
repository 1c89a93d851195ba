"""New, changed or known already? Compare a fact with what is stored, and write it so that a crash cannot double it.

Losing is worse than doubling. Each of the nearest memories is the same (nothing is written), contradicted (the newest
wins) or something else (both stay), whatever the cosine: budgets of $10k and $15k are 0.95 apart from 1, "is" and "is
not" 0.98, a daughter Emma and a sister Emma 0.90, "lives in Boston" and "moved to Seattle" 0.61. What is contradicted
above ``update_threshold`` becomes a new version of the same memory, below it is superseded by a memory of its own:
dated, kept, no longer retrieved. Without a judge, cosines above ``update_threshold`` are updates.

A memory is retired only when nothing of it is left over, and a fact dropped only when it is said already: word for
word, as part of what a memory says, or as a paraphrase of which the trained judge is sure
(``contradiction.verdict.SAME_MIN``) and that says no more. ``verdict.may`` holds opinions and closed forms to
that. What went is in ``Placed.removals``, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from semmem.extraction.candidate import (
    PAIR_FOUND,
    PAIR_REPLACED,
    Action,
    Candidate,
    Placed,
    Removal,
    confirmed,
    created,
    reconsidered,
    settled,
    updated,
)
from semmem.extraction.comparing import NO_OPINIONS, Compared, Comparing, with_vector
from semmem.extraction.model_judge import Opinions
from semmem.extraction.screen import same_text
from semmem.lifecycle.spared import reinstated, replaced_by, superseded, without
from semmem.lifecycle.writes import Writes
from semmem.memory import (
    CONTRADICTED,
    QUARANTINED,
    RELEASED,
    REPEATED,
    REWRITTEN,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UPDATED,
    Hit,
    Memory,
    MemoryStatus,
    Scope,
)
from semmem.ports.learning import ProvisionalRecords
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store, list_all


@dataclass(eq=False, repr=False)
class Dedup:
    """Puts facts into the store of a user, one after another. ``comparing`` and ``retiring`` are its two halves, for
    whoever needs but one."""

    comparing: Comparing
    records: ProvisionalRecords

    def __post_init__(self) -> None:
        self._store = self.comparing.store
        self.retiring = Retiring(self._store, self.records)
        self._writes = self.retiring.writes

    async def put(self, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Action:
        """``place``, for whoever only wants to know what it did."""
        return (await self.place(new, opinions)).action

    async def place(
        self, new: Candidate, opinions: Opinions = NO_OPINIONS, *, rewriting: Memory | None = None
    ) -> Placed:
        """Store one fact. An opinion on a pair outweighs the judge's, where it may be believed. ``rewriting`` is a
        memory that says the same in other words: where one would be created, it has a new version instead. Safe to
        repeat after a crash anywhere in it, with other opinions as well. Raises StoreError, JournalError."""
        if rewriting is not None:
            new = replace(new, apart=frozenset({rewriting.id}))
        found = await self.comparing.compared(new, opinions)
        if found.same is not None:
            return await self._drop(new, found.same)
        new, contradicted, later = _by_time(found, new.turn.opened_at, new)
        if later and (newer := await self.comparing.outdated_by(new, later)) is not None:
            # Kept as history only.
            is_kept = await self._writes(new).put(replaced_by(created(new), (newer.id, CONTRADICTED)))
            removals = (Removal(CONTRADICTED, new.id, newer.id),) if is_kept else ()
            return Placed(Action.OUTDATED if is_kept else Action.FORGOTTEN, removals, newer.id)
        gone: tuple[Removal, ...] = ()
        if contradicted and self.comparing.is_update(new, contradicted[0]):
            if new.provisional:  # first: whoever erases what is written now is to be heard by its batch
                await self.records.note_provisional(new.turn.id, [contradicted[0].memory.id])
            gone, is_written = await self.retiring.update(new, contradicted)
            if is_written:
                ended = await self.retiring.settle(found.hits, gone, new)
                return Placed(Action.UPDATED, gone, contradicted[0].memory.id, _noted(new) + ended)
            contradicted = contradicted[1:]
        if rewriting is not None:
            return await self._rewrite(rewriting, new, contradicted, found.hits, gone)
        if not new.provisional:
            gone += await self.retiring.supersede(contradicted, new, by=new.id)
        if not await self._writes(new).put(created(new)):
            return Placed(Action.FORGOTTEN, gone)
        if new.provisional:  # afterwards: nobody comes back to it before its batch does, which compares it again
            gone += await self.retiring.supersede(contradicted, new, by=new.id)
        ended = await self.retiring.settle(found.hits, gone, new)
        return Placed(Action.SUPERSEDED if contradicted else Action.CREATED, gone, new.id, _noted(new) + ended)

    async def _rewrite(
        self, old: Memory, new: Candidate, contradicted: list[Hit], neighbours: Sequence[Hit], gone: tuple[Removal, ...]
    ) -> Placed:
        gone += await self.retiring.supersede(contradicted, new, by=old.id)
        new = replace(new, changes_standing=new.changes_standing or old.changes_standing)  # in other words the same
        if not await self._writes(new).replace(old, replace(updated(old, new), type=new.fact.type)):
            return Placed(Action.FORGOTTEN, gone)
        ended = await self.retiring.settle(neighbours, gone, new)
        gone = (*gone, Removal(REWRITTEN, old.id, old.id))
        return Placed(Action.REWRITTEN, gone, old.id, _noted(new, old) + ended)

    async def confirm(self, held: Memory, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Placed:
        """Let a provisional memory stay, which says what ``new`` says, and what it contradicts go, unless that was said
        later or in the same turn. Where another memory says the same, that one stays. Safe to repeat. Raises StoreError
        and JournalError."""
        new = replace(new, id=held.id, apart=frozenset({held.id}))
        gone: tuple[Removal, ...] = ()
        ended: tuple[str, ...] = ()
        if held.status is MemoryStatus.ACTIVE:
            found = await self.comparing.compared(new, opinions)
            if found.same is not None:
                return await self.retiring.retire(held, new, REPEATED, by=found.same.id)
            new, contradicted, later = _by_time(found, held.said_at, new)
            if later and (newer := await self.comparing.outdated_by(new, later)) is not None:
                return await self.retiring.retire(held, new, CONTRADICTED, by=newer.id)
            others = [hit for hit in contradicted if hit.memory.source.turn != held.source.turn]
            gone = await self.retiring.supersede(others, new, by=held.id)
            ended = await self.retiring.settle(found.hits, gone, new)
        if not await self._writes(new).put(confirmed(held, new)):
            return Placed(Action.FORGOTTEN, gone)
        return Placed(Action.CONFIRMED, gone, held.id, _noted(new, held) + ended)

    async def confirm_all(self, held: Sequence[Memory], *, batch: str, now: float) -> list[Placed]:
        """``confirm`` of provisional memories of one user that need not be compared again."""
        if not held:
            return []
        news = [replace(reconsidered(memory, batch, now), unsettled=tuple(memory.unsettled)) for memory in held]
        stay = await self._writes(news[0]).put(*map(confirmed, held, news))
        return [
            Placed(Action.CONFIRMED, id=memory.id) if memory.id in stay else Placed(Action.FORGOTTEN) for memory in held
        ]

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
        """Store what stands alone under its id (``keyed_id``): a new version of it, if there is one already. Safe to
        repeat like ``put``."""
        old = await self.stored(new.turn.scope.user, new.id)
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
        """Let a quarantined memory (with its vector) be retrieved; the action taken, and the memory that says it. It is
        compared like a new fact: where another memory says the same it is superseded by that one, and what it
        contradicts is superseded by it. Raises StoreError and JournalError."""
        new = reconsidered(held, batch, now)
        found = await self.comparing.compared(new)
        if found.same is not None:
            await self._writes(new).replace(held, superseded(held, found.same.id, now, REPEATED))
            return Action.UNCHANGED, found.same
        metadata = without(held, QUARANTINED).metadata | {RELEASED: True}
        released = replace(
            held, version=held.version + 1, status=MemoryStatus.ACTIVE, updated_at=now, metadata=metadata
        )
        # First what stays: where the hold is cut off, or the process dies, there are doubles then, and no hole.
        if not await self._writes(new).replace(held, released):
            return Action.FORGOTTEN, held
        contradicted = [] if new.fact.beside else found.contradicted
        await self.retiring.supersede(contradicted, new, by=held.id)
        return (Action.SUPERSEDED if contradicted else Action.CREATED), released

    async def stored(self, user: str, memory_id: str) -> Memory | None:
        """A memory with its vector, of any status."""
        return await self._store.get(Scope(user), memory_id)


def _by_time(found: Compared, said_at: float, new: Candidate) -> tuple[Candidate, list[Hit], list[Hit]]:
    """The fact with what it may disagree with; what was said until then and ends with it; and what was said later. In a
    message in which others speak as well, it ends nothing and leaves no doubt at what was known."""
    until = [] if new.fact.beside else [hit for hit in found.contradicted if hit.memory.said_at <= said_at]
    later = [hit for hit in found.contradicted if hit.memory.said_at > said_at]
    unsettled = () if new.fact.beside else found.unsettled
    standing = any(hit.memory.standing is not None for hit in until)
    return replace(new, unsettled=unsettled, changes_standing=standing), until, later


def _noted(new: Candidate, before: Memory | None = None) -> tuple[str, ...]:
    """A word for each pair that is noted at the fact's memory, and was not yet at the version before."""
    known = () if before is None else before.unsettled
    return (PAIR_FOUND,) * len(set(new.unsettled).difference(known))


@dataclass(eq=False, repr=False)
class Retiring:
    """Memories that a new fact, or the batch of their turn, lets go, and those that come back since it did not. Each
    write leaves the version before it in the journal. What went is returned as removals, each with its reason. All of
    it is safe to repeat, and raises StoreError and JournalError."""

    store: Store
    records: WriteRecords

    async def update(self, new: Candidate, contradicted: list[Hit]) -> tuple[tuple[Removal, ...], bool]:
        """A new version of the nearest; what went, and whether it is written: else the nearest was forgotten meanwhile,
        and what is said now is a memory of its own. The others go first, because a second try finds the new version and
        stops. Of what is provisional there is no second try, and its batch compares it again: there they go
        afterwards."""
        nearest, *others = contradicted
        gone = () if new.provisional else await self.supersede(others, new, by=nearest.memory.id)
        if not await self.writes(new).replace(nearest.memory, updated(nearest.memory, new)):
            return gone, False
        if new.provisional:
            gone = await self.supersede(others, new, by=nearest.memory.id)
        return (*gone, Removal(UPDATED, nearest.memory.id, nearest.memory.id)), True

    async def supersede(self, hits: list[Hit], new: Candidate, *, by: str) -> tuple[Removal, ...]:
        """Retire what the fact makes untrue. Before the fact is written: a second try, finding the fact already
        there, would never come back to it."""
        gone: list[Removal] = []
        for hit in hits:
            old = await self._retrieved(hit)
            if old is not None and await self.writes(new).replace(old, superseded(old, by, new.now)):
                gone.append(Removal(CONTRADICTED, old.id, by))
        return tuple(gone)

    async def _retrieved(self, hit: Hit) -> Memory | None:
        old = await with_vector(self.store, hit.memory)
        return old if old is not None and old.status is MemoryStatus.ACTIVE else None

    async def settle(self, neighbours: Sequence[Hit], gone: tuple[Removal, ...], new: Candidate) -> tuple[str, ...]:
        """Let no neighbour stand against what went; a word for each pair that is settled by that."""
        ids = {removal.id for removal in gone}
        pairs: list[str] = []
        for hit in neighbours:
            others = hit.memory.unsettled
            if hit.memory.id in ids:
                pairs += [PAIR_REPLACED] * len(others)
                continue
            if ids.isdisjoint(others) or (old := await self._retrieved(hit)) is None:
                continue
            if await self.writes(new).replace(old, settled(old, ids, new.now)):
                pairs += [PAIR_REPLACED] * len(ids.intersection(others))
        return tuple(pairs)

    async def retire(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Let a memory be retrieved no more, for this reason, in favour of ``by``; the version before is history."""
        is_gone = await self.writes(new).replace(held, superseded(held, by, new.now, why))
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if is_gone else (), by)

    async def withdraw(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Remove a memory for this reason, in favour of ``by``; what it said is kept as a version."""
        is_gone = await self.writes(new).withdraw(held)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if is_gone else (), by)

    async def give_back(self, held: Memory, before: Memory, new: Candidate, why: str) -> Placed:
        """Let a memory say again what it said before (``before`` has its vector); what it said is kept as a version.
        One that was replaced since stays replaced."""
        replaced = {name: held.metadata[name] for name in (SUPERSEDED_BY, SUPERSEDED_WHY) if name in held.metadata}
        metadata = before.metadata | replaced
        restored = replace(before, version=held.version + 1, status=held.status, updated_at=new.now, metadata=metadata)
        put = await self.writes(new).replace(held, restored)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, held.id),) if put else (), held.id)

    async def unsay(self, held: Memory, before: Memory, new: Candidate) -> None:
        """Undo an update by ``new``: nothing is kept of what the memory says, which somebody had erased. ``before`` has
        its vector."""
        await self.reinstate(held.id, new, since=new.now)
        await self.writes(new).put(replace(before, version=held.version + 1, updated_at=new.now))

    async def reinstate(self, replaced: str, new: Candidate, *, since: float = 0.0) -> list[str]:
        """Let those memories be retrieved again that memory ``replaced`` has contradicted ``since`` then; their ids."""
        scope = Scope(new.turn.scope.user)
        memories = await list_all(self.store, scope)
        back = [memory for memory in memories if was_replaced(memory, replaced) and memory.updated_at >= since]
        return [old.id for old in back if await self.writes(new).replace(old, reinstated(old, new.now))]

    async def have_back(self, held: Memory, new: Candidate) -> bool:
        """Let a memory be retrieved again; whether it is."""
        return await self.writes(new).replace(held, reinstated(held, new.now))

    def writes(self, new: Candidate) -> Writes:
        """Under the batch or hold that the fact is written under."""
        return Writes(self.store, self.records, new.batch)


def was_replaced(memory: Memory, by: str) -> bool:
    """Whether it is no longer retrieved since memory ``by`` says otherwise."""
    told = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return memory.status is MemoryStatus.SUPERSEDED and told == (by, CONTRADICTED)
