"""New, changed or known already? Compare a fact with what is stored, and write it so that a crash cannot double it.

Losing is worse than doubling. Each of the nearest memories is the same (nothing is written), contradicted (the newest
wins) or something else (both stay), whatever the cosine: budgets of $10k and $15k are 0.95 apart from 1, "is" and "is
not" 0.98, a daughter Emma and a sister Emma 0.90, "lives in Boston" and "moved to Seattle" 0.61. What is contradicted
above ``update_threshold`` becomes a new version of the same memory, below it is superseded by a memory of its own:
dated, kept, no longer retrieved. Without a judge, cosines above ``update_threshold`` are updates.

Whoever judges, ``may`` has the last word: a fact is dropped only when it is said already word for word, and a memory
retired only when nothing of it is left over. What went is in ``Placed.removals``, with its reason.

``doubts`` are the pairs that a language model may judge instead of the rules, before anything is stored: those between
``grey_threshold`` and ``update_threshold``, and those above where numbers, days, names or a negation differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from semmem.extraction.candidate import (
    Candidate,
    as_released,
    confirmed,
    created,
    reconsidered,
    reinstated,
    settled,
    superseded,
    updated,
)
from semmem.extraction.contradiction import Judged, Verdict, details_differ
from semmem.extraction.model_judge import Doubt, Opinions
from semmem.extraction.pair_judge import Open, PairJudge
from semmem.extraction.screen import same_text
from semmem.extraction.session_summary import KEY_PREFIX
from semmem.extraction.weighing import Judge, Neighbour, Weighing, unweighed
from semmem.extraction.work import InThread
from semmem.lifecycle.writes import Writes
from semmem.memory import (
    CONTRADICTED,
    QUARANTINED,
    REPEATED,
    REWRITTEN,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNSETTLED,
    UPDATED,
    Hit,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Vector,
)
from semmem.ports.errors import WorkLost, WorkTooSlow
from semmem.ports.store import Store
from semmem.ports.text_work import TextWork
from semmem.ports.writes import DedupRecords

NO_OPINIONS: Opinions = MappingProxyType({})


UNSETTLED_MAX = 5
"""So many memories that it may contradict are noted at a memory."""
DAY_S = 86_400.0
CORRECTED_S = 600.0
"""What is said within ten minutes in the same session may correct what was said before."""


class Action(StrEnum):
    """What storing a fact did. ``superseded``: it was created, and an older memory is no longer retrieved.
    ``confirmed``: a provisional memory says it, and stays. ``rewritten``: one says it in other words, and has a new
    version. ``outdated``: what was said later replaces it, and it is
    kept as history. ``forgotten``: its batch was erased meanwhile, and nothing is stored."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"
    CONFIRMED = "confirmed"
    REWRITTEN = "rewritten"
    OUTDATED = "outdated"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Removal:
    """What is no longer retrieved, and why (a reason word). ``by`` is empty where nothing took its place.

    ``contradicted``: the memory ``id``, since ``by`` says otherwise. ``updated``: the version before of memory ``id``.
    ``repeated``: a new fact was not stored, under ``id``, since ``by`` says the same word for word. ``rewritten``,
    ``not_confirmed``, ``refused``: the provisional memory ``id`` (see semmem.memory).
    """

    reason: str
    id: str
    by: str


@dataclass(frozen=True, slots=True)
class Placed:
    """What storing a fact did, what went with it, and the id of the memory that says it now (empty: none)."""

    action: Action
    removals: tuple[Removal, ...] = ()
    id: str = field(default="", compare=False)


class Dedup:
    """Puts facts into the store of a user, one after another.

    ``update_threshold`` and ``grey_threshold`` are cosines; with the grey one above, there is no grey zone.
    ``judge_cosine_min`` is the cosine from which the judge is asked: what replaces a memory may hardly resemble it.
    ``neighbours_max`` memories of the same user are compared; more than the few that matter, because those of other
    projects are sorted out only afterwards. At most ``doubts_per_fact_max`` of them are doubts.
    ``text_work`` weighs a fact and its neighbours, within ``judge_budget_s`` seconds; else all stay, since a double is
    better than a loss.
    """

    def __init__(
        self,
        store: Store,
        records: DedupRecords,
        *,
        update_threshold: float = 0.9,
        grey_threshold: float = 0.55,
        neighbours_max: int = 20,
        doubts_per_fact_max: int = 5,
        judge: Judge | None = None,
        judge_cosine_min: float = 0.25,
        text_work: TextWork | None = None,
        judge_budget_s: float = 1.0,
        pair_judge: PairJudge | None = None,
    ) -> None:
        if not all(0 < cosine <= 1 for cosine in (update_threshold, grey_threshold, judge_cosine_min)):
            raise ValueError("thresholds must be cosines above 0")
        if neighbours_max < 1 or doubts_per_fact_max < 1:
            raise ValueError("neighbours_max and doubts_per_fact_max must be at least 1")
        self._store = store
        self._records = records
        self._update_threshold = update_threshold
        self._grey_threshold = grey_threshold
        self._neighbours_max = neighbours_max
        self._doubts_per_fact_max = doubts_per_fact_max
        self._weighing = Weighing(judge, judge_cosine_min, update_threshold)
        self._text_work = text_work or InThread()
        self._judge_budget_s = judge_budget_s
        self._pair_judge = pair_judge

    async def doubts(self, news: Sequence[Candidate]) -> list[Doubt]:
        """Each fact's doubtful neighbours, those among the facts before it included. Raises StoreError."""
        found: list[Doubt] = []
        for place, new in enumerate(news):
            known = [(hit.memory.content, hit.cosine) for hit in await self._neighbours(new)]
            known += [
                (other.fact.content, float(other.vector @ new.vector))
                for other in news[:place]
                if _comparable(other.fact.type, new.fact.type)
            ]
            found += await asyncio.to_thread(self._doubts, new.fact.content, known)
        return found

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
        neighbours = await self._neighbours(new)
        verdicts = await self._verdicts(new, neighbours, opinions)
        if same := _judged(neighbours, verdicts, Verdict.SAME):
            return await self._drop(new, same[0].memory)
        new = replace(new, unsettled=_unsettled(neighbours, verdicts))
        contradicted, later = _by_time(_judged(neighbours, verdicts, Verdict.CONTRADICTION), new.turn.opened_at)
        if later and (newer := await self._outdated_by(new, later)) is not None:
            return await self._put_outdated(new, newer)
        if contradicted and self._is_update(new, contradicted[0]):
            if (updating := await self._update(new, contradicted)) is not None:
                await self._settle(neighbours, updating, new)
                return Placed(Action.UPDATED, updating, contradicted[0].memory.id)
            contradicted = []
        if rewriting is not None:
            return await self._rewrite(rewriting, new, contradicted)
        gone = () if new.provisional else await self._supersede(contradicted, new, by=new.id)
        if not await self._writes(new).put(created(new)):
            return Placed(Action.FORGOTTEN, gone)
        if new.provisional:  # afterwards: nobody comes back to it before its batch does, which compares it again
            gone = await self._supersede(contradicted, new, by=new.id)
        await self._settle(neighbours, gone, new)
        return Placed(Action.SUPERSEDED if contradicted else Action.CREATED, gone, new.id)

    async def _rewrite(self, old: Memory, new: Candidate, contradicted: list[Hit]) -> Placed:
        gone = await self._supersede(contradicted, new, by=old.id)
        if not await self._writes(new).replace(old, replace(updated(old, new), type=new.fact.type)):
            return Placed(Action.FORGOTTEN, gone)
        return Placed(Action.REWRITTEN, (*gone, Removal(REWRITTEN, old.id, old.id)), old.id)

    async def confirm(self, held: Memory, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Placed:
        """Let a provisional memory stay, which says what ``new`` says, and what it contradicts go, unless that was said
        later or in the same turn. Where another memory says the same, that one stays. Safe to repeat.

        Raises StoreError and JournalError.
        """
        new = replace(new, id=held.id, apart=frozenset({held.id}))
        gone: tuple[Removal, ...] = ()
        if held.status is MemoryStatus.ACTIVE:
            neighbours = await self._neighbours(new)
            verdicts = await self._verdicts(new, neighbours, opinions)
            if same := _judged(neighbours, verdicts, Verdict.SAME):
                return await self.retire(held, new, REPEATED, by=same[0].memory.id)
            new = replace(new, unsettled=_unsettled(neighbours, verdicts))
            contradicted, later = _by_time(_judged(neighbours, verdicts, Verdict.CONTRADICTION), held.said_at)
            if later and (newer := await self._outdated_by(new, later)) is not None:
                return await self.retire(held, new, CONTRADICTED, by=newer.id)
            others = [hit for hit in contradicted if hit.memory.source.turn != held.source.turn]
            gone = await self._supersede(others, new, by=held.id)
            await self._settle(neighbours, gone, new)
        if not await self._writes(new).put(confirmed(held, new)):
            return Placed(Action.FORGOTTEN, gone)
        return Placed(Action.CONFIRMED, gone, held.id)

    async def _outdated_by(self, new: Candidate, later: list[Hit]) -> Memory | None:
        """Which of the memories that were said after the fact replaces it: batches of two sessions, or a batch and what
        is learnt at once, do not come in the order in which their turns were said."""
        said = [Neighbour(new.fact.content, new.fact.type, hit.cosine) for hit in later]
        for old, hit in zip(said, later, strict=True):
            judged = (await self._weighed([old], hit.memory.content, hit.memory.type))[0]
            if (
                judged is None
                and self._pair_judge is not None
                and (vector := await self._vector(hit.memory)) is not None
            ):
                told = Open(new.fact.content, new.vector)
                judged = (await self._pair_judge.judged(hit.memory.content, vector, [told]))[0]
            if judged is not None and judged.verdict is Verdict.CONTRADICTION:
                return hit.memory
        return None

    async def _put_outdated(self, new: Candidate, newer: Memory) -> Placed:
        """Keep the fact as history only."""
        told = created(new)
        metadata = {**told.metadata, SUPERSEDED_BY: newer.id, SUPERSEDED_WHY: CONTRADICTED}
        put = await self._writes(new).put(replace(told, status=MemoryStatus.SUPERSEDED, metadata=metadata))
        removals = (Removal(CONTRADICTED, new.id, newer.id),) if put else ()
        return Placed(Action.OUTDATED if put else Action.FORGOTTEN, removals, newer.id)

    async def retire(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Let a memory be retrieved no more, for this reason, in favour of ``by``; the version before is history."""
        replaced = await self._writes(new).replace(held, superseded(held, new, by, why))
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if replaced else (), by)

    async def withdraw(self, held: Memory, new: Candidate, why: str, *, by: str = "") -> Placed:
        """Remove a memory for this reason, in favour of ``by``; what it said is kept as a version."""
        withdrawn = await self._writes(new).withdraw(held)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, by),) if withdrawn else (), by)

    async def give_back(self, held: Memory, before: Memory, new: Candidate, why: str) -> Placed:
        """Let a memory say again what it said before (``before`` has its vector); what it said is kept as a version.
        One that was replaced since stays replaced."""
        replaced = {name: held.metadata[name] for name in (SUPERSEDED_BY, SUPERSEDED_WHY) if name in held.metadata}
        metadata = before.metadata | replaced
        restored = replace(before, version=held.version + 1, status=held.status, updated_at=new.now, metadata=metadata)
        put = await self._writes(new).replace(held, restored)
        return Placed(Action.UNCHANGED, (Removal(why, held.id, held.id),) if put else (), held.id)

    async def reinstate(self, replaced: str, new: Candidate) -> list[str]:
        """Let those memories be retrieved again that were contradicted by memory ``replaced``; their ids."""
        scope = _owner(new)
        memories = await self._store.list(scope, limit=max(1, await self._store.count(scope)))
        back = [memory for memory in memories if _was_replaced(memory, replaced)]
        return [old.id for old in back if await self._writes(new).replace(old, reinstated(old, new.now))]

    async def _drop(self, new: Candidate, known: Memory) -> Placed:
        """Nothing is stored; beside the memory it is noted that it was said again. What was provisional is not any
        more when a batch says it too."""
        if new.id == known.id:  # an earlier try of this very fact
            return Placed(Action.UNCHANGED, id=known.id)
        if known.is_provisional and not new.provisional:
            held = await self._with_vector(known)
            if held is not None:
                return await self.confirm(held, new)
        batch = new.batch or None
        await self._records.note_dropped(Scope(known.user), known.id, REPEATED, now=new.now, batch=batch)
        return Placed(Action.UNCHANGED, (Removal(REPEATED, new.id, known.id),), known.id)

    def _is_update(self, new: Candidate, hit: Hit) -> bool:
        """A memory keeps its type: across types the old one is superseded."""
        return hit.cosine > self._update_threshold and hit.memory.type is new.fact.type

    async def put_keyed(self, new: Candidate) -> Action:
        """Store what stands alone under its id (``keyed_id``): a new version of it, if there is one already.

        Safe to repeat like ``put``.
        """
        old = await self._store.get(_owner(new), new.id)
        if old is not None and same_text(old.content) == same_text(new.fact.content):
            return Action.UNCHANGED
        if old is None:
            if new.batch:  # else upkeep takes it for what a dead worker left of a forgotten one
                await self._records.settle(new.turn.scope.user, new.id)
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
        neighbours = await self._neighbours(new)
        verdicts = await self._verdicts(new, neighbours, NO_OPINIONS)
        if same := _judged(neighbours, verdicts, Verdict.SAME):
            await self._writes(new).replace(held, superseded(held, new, same[0].memory.id, REPEATED))
            return Action.UNCHANGED, same[0].memory
        contradicted = _judged(neighbours, verdicts, Verdict.CONTRADICTION)
        await self._supersede(contradicted, new, by=held.id)
        released = as_released(held, now)
        if not await self._writes(new).replace(held, released):
            return Action.FORGOTTEN, held
        return (Action.SUPERSEDED if contradicted else Action.CREATED), released

    async def holds(self, new: Candidate) -> bool:
        """Whether an earlier try created this very memory (it may have been changed since)."""
        return await self._store.get(_owner(new), new.id) is not None

    async def stored(self, user: str, memory_id: str) -> Memory | None:
        """A memory with its vector, of any status."""
        return await self._store.get(Scope(user), memory_id)

    async def _neighbours(self, new: Candidate) -> list[Hit]:
        """The nearest memories of this user and project. A project's fact never meets a global one."""
        scope = Scope(new.turn.scope.user, project=new.turn.scope.project or None)
        types = tuple(kind for kind in MemoryType if _comparable(kind, new.fact.type))
        limit = self._neighbours_max + len(new.apart)
        hits = await self._store.search(scope, new.vector, limit=limit, now=new.now, types=types, fresh=True)
        others = [hit for hit in hits if hit.memory.id not in new.apart]
        return [hit for hit in others if (hit.memory.project or None) == scope.project and not _is_summary(hit.memory)]

    def _doubts(self, new: str, known: list[tuple[str, float]]) -> list[Doubt]:
        if any(same_text(old) == same_text(new) for old, _ in known):
            return []
        doubtful = [Doubt(old, new, cosine) for old, cosine in known if self._is_doubtful(old, new, cosine)]
        return sorted(doubtful, key=lambda doubt: -doubt.cosine)[: self._doubts_per_fact_max]

    def _is_doubtful(self, old: str, new: str, cosine: float) -> bool:
        if cosine > self._update_threshold:
            return details_differ(old, new)
        return cosine >= self._grey_threshold

    async def _verdicts(self, new: Candidate, neighbours: list[Hit], opinions: Opinions) -> list[Judged]:
        """What the fact is to each neighbour, nearest first."""
        said = new.fact.content
        pairs = [_neighbour(hit, new, opinions.get((hit.memory.content, said))) for hit in neighbours]
        weighed = await self._weighed(pairs, said, new.fact.type)
        if self._pair_judge is None or None not in weighed:
            return [each or Judged(Verdict.DIFFERENT) for each in weighed]
        asked = [hit for hit, each in zip(neighbours, weighed, strict=True) if each is None]
        opened = [
            Open(hit.memory.content, vector, _follows(new, hit.memory))
            for hit in asked[: self._pair_judge.pairs_max]
            if (vector := await self._vector(hit.memory)) is not None
        ]
        judged = await self._pair_judge.judged(said, new.vector, opened)
        found = dict(zip((old.content for old in opened), judged, strict=True))
        beside = Judged(Verdict.DIFFERENT)
        return [each or found.get(pair.content, beside) for pair, each in zip(pairs, weighed, strict=True)]

    async def _weighed(self, pairs: list[Neighbour], said: str, type: MemoryType) -> list[Judged | None]:
        try:
            return await self._text_work.run(self._weighing.verdicts, pairs, said, type, budget_s=self._judge_budget_s)
        except (WorkTooSlow, WorkLost):
            return unweighed(pairs, said)

    async def _vector(self, memory: Memory) -> Vector | None:
        held = await self._with_vector(memory)
        return held.embedding if held is not None else None

    async def _settle(self, neighbours: list[Hit], gone: tuple[Removal, ...], new: Candidate) -> None:
        """Let no neighbour stand against what went."""
        ids = {removal.id for removal in gone}
        for hit in neighbours:
            if hit.memory.id in ids or ids.isdisjoint(hit.memory.metadata.get(UNSETTLED, ())):
                continue
            old = await self._with_vector(hit.memory)
            if old is not None and old.status is MemoryStatus.ACTIVE:
                await self._writes(new).replace(old, settled(old, ids, new.now))

    async def _update(self, new: Candidate, contradicted: list[Hit]) -> tuple[Removal, ...] | None:
        """A new version of the nearest; the others go first, because a second try finds the new version and stops.

        None when the nearest was forgotten meanwhile: what is said now is then a memory of its own.
        """
        nearest, *others = contradicted
        gone = await self._supersede(others, new, by=nearest.memory.id)
        if new.provisional:  # first: whoever erases what is written now is to be heard by its batch
            await self._records.note_provisional(new.turn.id, [nearest.memory.id])
        if not await self._writes(new).replace(nearest.memory, updated(nearest.memory, new)):
            return None
        return (*gone, Removal(UPDATED, nearest.memory.id, nearest.memory.id))

    async def _supersede(self, hits: list[Hit], new: Candidate, *, by: str) -> tuple[Removal, ...]:
        """Retire what the fact makes untrue. Before the fact is written: a second try, finding the fact already
        there, would never come back to it."""
        gone: list[Removal] = []
        for hit in hits:
            old = await self._with_vector(hit.memory)
            if old is None or old.status is not MemoryStatus.ACTIVE:
                continue
            if await self._writes(new).replace(old, superseded(old, new, by)):
                gone.append(Removal(CONTRADICTED, old.id, by))
        return tuple(gone)

    async def _with_vector(self, found: Memory) -> Memory | None:
        """A store may leave the vectors out of what it finds; a version written without would have lost its own."""
        return found if found.embedding is not None else await self._store.get(Scope(found.user), found.id)

    def _writes(self, new: Candidate) -> Writes:
        return Writes(self._store, self._records, new.batch)


def _judged(neighbours: Sequence[Hit], judged: Sequence[Judged], wanted: Verdict) -> list[Hit]:
    """Those neighbours whose verdict is the wanted one, nearest first."""
    return [hit for hit, each in zip(neighbours, judged, strict=True) if each.verdict is wanted]


def _unsettled(neighbours: Sequence[Hit], judged: Sequence[Judged]) -> tuple[str, ...]:
    """The ids of those that may be contradicted and yet stay, nearest first."""
    found = [hit.memory.id for hit, each in zip(neighbours, judged, strict=True) if each.unsettled]
    return tuple(found[:UNSETTLED_MAX])


def _neighbour(hit: Hit, new: Candidate, opinion: Verdict | None) -> Neighbour:
    memory, happened = hit.memory, new.fact.occurred_at
    before = happened is not None and new.fact.type is MemoryType.EPISODIC and happened < memory.said_at - DAY_S
    return Neighbour(
        memory.content, memory.type, hit.cosine, opinion, dated=memory.occurred_at is not None, later=before
    )


def _follows(new: Candidate, memory: Memory) -> bool:
    """Whether the fact was said right after the memory, in the same session."""
    session = new.turn.scope.session
    return bool(session) and session == memory.session and 0 <= new.turn.opened_at - memory.said_at <= CORRECTED_S


def _by_time(hits: Sequence[Hit], said_at: float) -> tuple[list[Hit], list[Hit]]:
    """What was said until then, and what was said later."""
    until = [hit for hit in hits if hit.memory.said_at <= said_at]
    return until, [hit for hit in hits if hit.memory.said_at > said_at]


def _comparable(one: MemoryType, other: MemoryType) -> bool:
    """What is known and what happened may say the same or exclude each other; how-tos stand apart."""
    return one is other or MemoryType.PROCEDURAL not in (one, other)


def _is_summary(memory: Memory) -> bool:
    """A summary is replaced by the next one of its session, never by a single fact."""
    return memory.key is not None and memory.key.startswith(KEY_PREFIX)


def _was_replaced(memory: Memory, by: str) -> bool:
    told = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    return memory.status is MemoryStatus.SUPERSEDED and told == (by, CONTRADICTED)


def _owner(new: Candidate) -> Scope:
    return Scope(new.turn.scope.user)
