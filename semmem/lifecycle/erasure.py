"""The one owner of forgetting, and its one order: hide, mark, cut short, wait, spare, remove, look again, receipt.

    unsay   where turns stay: what of the memories was said again, and not yet learnt from, is taken out of them
    hide    from this moment no read of this process shows it and no write takes it; what waits in memory is dropped
    mark    in the journal's database: turns and versions go, running batches end, later halves are turned away
    wait    (bounded) for writes that are under way to the store and to the statistics, and for other replicas to
            hide it too
    spare   what would go with it, and was said elsewhere (semmem.lifecycle.sparing)
    remove  what the store holds of it, until a read that sees every write finds nothing
    finish  nobody needs to know any more whose it was

Wherever that breaks off, what is hidden stays hidden, and the erasure is pending: tried again until it is finished, by
this process, or after its end by the next one that opens the journal, if the journal had taken the mark."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace

from semmem.lifecycle.elsewhere import Elsewhere, InProcess, WaitingWords
from semmem.lifecycle.hiding_store import Marks
from semmem.lifecycle.quota import all_passages
from semmem.lifecycle.spared import means
from semmem.lifecycle.sparing import Sparing, VectorsMissing
from semmem.memory import PASSAGES, SKEW_S, Forgetting, Memory, MemoryType, Scope
from semmem.passages.pieces import ids_of
from semmem.ports.erasure import ErasureRecords
from semmem.ports.errors import JournalError, SemmemError
from semmem.ports.events import Announce, ErasureEnded, nobody_listens
from semmem.ports.store import Store, list_all

DONE, PENDING, FINISHED = "done", "pending", "finished"
"""How an erasure ended: at once; not yet; after it was pending."""
MARKED_MAX = 200
"""Memories that are marked in one transaction."""
ANSWER_S = 60.0
"""A request that was asked so long before a memory was made may have been shown it."""
ERASED = "erased"
"""The reason under which memories are counted that somebody asked to be erased."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went: turns in the journal, halves of turns that waited in memory, batches and holds that were cut short,
    memories, their earlier versions, statistics of their use, pieces of waiting turns that said the same again, of
    recorded conversations whole ones and single messages, passages of what was said, logged requests, and the user's
    alias."""

    turns: int = 0
    halves: int = 0
    batches: int = 0
    memories: int = 0
    versions: int = 0
    statistics: int = 0
    sentences: int = 0
    conversations: int = 0
    messages: int = 0
    passages: int = 0
    requests: int = 0
    aliases: int = 0

    def shown(self) -> dict[str, int]:
        return asdict(self)

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(**Counter(self.shown()) + Counter(other.shown()))


class ErasurePending(Exception):
    """Not everything is erased yet. It is hidden, remembered, and will be finished. ``receipt``: what went already.
    ``remembered``: the journal has it too, so that it outlives this process."""

    def __init__(self, receipt: Receipt, *, remembered: bool) -> None:
        super().__init__("the erasure is pending")
        self.receipt = receipt
        self.remembered = remembered


class ErasuresFull(SemmemError):
    """So many erasures are pending that no more are remembered."""


@dataclass(slots=True)
class _Progress:
    """How far one erasure has come in this process; over several tries. Of one memory: ``told`` is what it said in all
    its versions; ``beside`` are ids and versions of what there was of the same turns before it was hidden, None where
    nobody looked."""

    counts: Counter[str]
    turned_away: list[str]
    marked: bool = False
    running: bool = False
    unsaid: bool = False
    beside: frozenset[tuple[str, int]] | None = None
    told: list[Memory] = field(default_factory=list)

    def receipt(self) -> Receipt:
        return Receipt(**{name: self.counts[name] for name in Receipt.__dataclass_fields__})


@dataclass(eq=False, repr=False)
class Erasure:
    """Forgets. ``store`` is what everybody reads and writes through, and hides what ``marks`` cover; ``everything`` is
    the same without hiding. ``wait_s``: longest wait for writes under way. ``answer_s``: how long a caller waits,
    before the rest is done behind him and the erasure is pending. ``hold_s``: how long the user is held for the removal
    at most. ``hidden_s``: how long what was erased stays hidden after it is gone, for those who read it before and
    write late. At most ``pending_max`` erasures are remembered in this process. ErasureEnded is announced with DONE,
    PENDING or FINISHED, and what went. ``elsewhere``: other replicas."""

    store: Store
    everything: Store
    records: ErasureRecords
    marks: Marks
    here: InProcess
    waiting: WaitingWords
    sparing: Sparing
    _: KW_ONLY
    clock: Callable[[], float]
    wait_s: float = 2.0
    answer_s: float = 15.0
    hold_s: float = 60.0
    hidden_s: float = 300.0
    pending_max: int = 1000
    announce: Announce = nobody_listens
    elsewhere: Elsewhere | None = None
    _pending: dict[Forgetting, _Progress] = field(init=False, default_factory=dict)

    @property
    def pending(self) -> int:
        """How many erasures are begun and not finished, as far as this process knows."""
        return len(self._pending)

    def is_own(self, what: Forgetting) -> bool:
        return what in self._pending

    async def forget_scope(
        self, scope: Scope, types: Sequence[MemoryType] = (), *, until: float | None = None
    ) -> Receipt:
        """Erase a scope; without ``types`` also its turns, so that nothing is learnt again. ``until``: only what was
        said then or before. Raises ErasurePending, ErasuresFull when nothing was done and nothing is remembered, and
        StoreError when it cannot be looked whether that was all."""
        now = self.marks.after(scope.user, self.clock())
        receipt = await self._forget(Forgetting(scope, now if until is None else min(until, now), tuple(types)))
        if until is not None:
            return receipt
        for memory_id in await self._ahead(scope, types):
            receipt += await self.forget_memory(scope, memory_id) or Receipt()
        return receipt

    async def forget_memory(self, scope: Scope, memory_id: str) -> Receipt | None:
        """Erase one memory with its versions and statistics; None when the scope has none with this id. Whoever is
        writing it just then sees the mark, and may have taken it out before this does: it is erased as well."""
        was_there = False
        with suppress(SemmemError):
            was_there = await self.store.get(scope, memory_id) is not None
        receipt = await self._forget(Forgetting(scope, self.marks.after(scope.user, self.clock()), memory_id=memory_id))
        if receipt.memories:
            return receipt
        is_gone = was_there and await self.everything.get(scope, memory_id) is None
        return replace(receipt, memories=1) if is_gone else None

    async def load(self) -> None:
        """Hide and remember what other processes, or this one before it was started again, did not finish. Raises
        JournalError."""
        for what in await self.records.pending_erasures(limit=self.pending_max):
            if what not in self._pending:
                self._remember(what).marked = True

    async def finish_pending(self) -> int:
        """One more try for each that is pending and not being tried; how many are left. Raises nothing expected."""
        for what, progress in list(self._pending.items()):
            if progress.running or self._pending.get(what) is not progress:  # done by another one meanwhile
                continue
            try:
                await self._complete(what, progress)
            except SemmemError:
                continue
            self._ended(FINISHED, progress.receipt())
        return len(self._pending)

    def _ended(self, result: str, receipt: Receipt) -> None:
        self.announce(ErasureEnded(result, receipt.turns, receipt.halves, receipt.memories, receipt.sentences))

    async def _ahead(self, scope: Scope, types: Sequence[MemoryType]) -> list[str]:
        """What the clock says will be said: it was said before the clock was set back, or where another goes ahead.
        They go one by one. A mark at so late a time would turn away what is said from now until then."""
        now, left = self.clock(), list[Memory]()
        for kinds in (types, *([] if types else [PASSAGES])):
            left += await list_all(self.everything, scope, types=kinds)
        return [memory.id for memory in left if memory.said_at > now]

    async def _forget(self, what: Forgetting) -> Receipt:
        if len(self._pending) >= self.pending_max:
            raise ErasuresFull
        unsaid = await self._unsay_first(what)
        beside = await self._beside(what)
        progress = self._remember(what)
        progress.beside = beside
        progress.unsaid = unsaid is not None
        progress.counts.update(unsaid or {})
        try:
            async with asyncio.timeout(self.answer_s):
                await self._complete(what, progress)
        except (SemmemError, TimeoutError):
            self._ended(PENDING, progress.receipt())
            raise ErasurePending(progress.receipt(), remembered=progress.marked) from None
        self._ended(DONE, progress.receipt())
        return progress.receipt()

    def _remember(self, what: Forgetting) -> _Progress:
        """From here on it is hidden, and tried again until it is done, even if the caller is cancelled."""
        self.marks.hold(what)
        halves, turned_away = self.here.forget(what)
        progress = self._pending[what] = _Progress(Counter(halves=halves), turned_away)
        for earlier in [each for each in self._pending if replace(each, at=what.at) == what and each.at < what.at]:
            if not self._pending[earlier].running:  # this one does all that is left of it
                progress.turned_away += self._pending.pop(earlier).turned_away
                self.marks.release(earlier)
        return progress

    async def _complete(self, what: Forgetting, progress: _Progress) -> None:
        progress.running = True
        try:
            await self._erase(what, progress)
        finally:
            progress.running = False
        del self._pending[what]
        self.marks.release(what, after_s=self.hidden_s if what.takes_turns else 0.0)

    async def _erase(self, what: Forgetting, progress: _Progress) -> None:
        user = what.scope.user
        hold_id, counts = await self.records.begin_erasure(
            what, now=self.clock(), turned_away=progress.turned_away, hold_s=self.hold_s
        )
        progress.marked = True
        progress.counts.update(counts)
        try:
            await self.here.settled(user, timeout_s=self.wait_s)
            if self.elsewhere is not None:
                await self.elsewhere.hide(what)
            have_vectors = await self.sparing.spare(what, hold_id)
            await self._remove(what, progress)
            if not have_vectors:  # erasing comes first; another try makes them
                raise VectorsMissing
        except BaseException:
            with suppress(JournalError):  # it ends by itself
                await self.records.release(hold_id)
            raise
        await self.records.finish_erasure(what, hold_id)

    async def _remove(self, what: Forgetting, progress: _Progress) -> None:
        """Marked first and removed then: who writes one of them at this moment sees the mark, or is seen here."""
        scope, found = what.scope, await self._found(what)
        progress.told = progress.told or (await self._told(what, found) if what.memory_id is not None else [])
        await self._mark(what, found, progress)
        if what.memory_id is None:
            removed = await self.store.forget_scope(scope, types=what.types, said_until=what.at)
        else:
            late = await self._learnt_meanwhile(what, progress)
            if late:
                until = max(what.at, *(memory.updated_at for memory in late))
                await self._mark(replace(what, at=until), late, progress)
            removed = sum([await self.store.forget(Scope(scope.user), memory.id) for memory in (*late, *found)])
        progress.counts["memories"] += removed
        if what.takes_user and await self.everything.count(Scope(scope.user)):
            await self.records.register_user(scope.user)  # what was said since is gone through like anybody's

    async def _mark(self, what: Forgetting, found: Sequence[Memory], progress: _Progress) -> None:
        """Of these memories all but themselves goes: passages, versions, statistics, messages."""
        scope, ids = what.scope, [memory.id for memory in found]
        if not what.takes_turns:
            if not progress.unsaid:
                progress.counts.update(await self._unsay(what))
                progress.unsaid = True
            progress.counts["messages"] += await self._forget_past(what, found)
            told = await self._told(what, found)
            await self._forget_passages(scope.user, told, progress, at=what.at)
        else:
            # Before they go: where this breaks off, another try has to find them.
            said = await self._said(scope, at=what.at)
            await self.records.withhold_answers(scope.user, [*ids, *said], now=max(what.at, self.clock()))
            progress.counts["requests"] += await self.records.forget_requests(scope.user, said)
            progress.counts["passages"] += await self._forget_said(scope, at=what.at)
        self.here.forget_memories(scope.user, None if what.takes_user else ids)
        progress.counts["requests"] += await self.records.forget_requests(scope.user, ids)
        if not what.takes_user:  # the others' statistics were counted with their marks
            progress.counts["statistics"] += len((await self.records.uses(scope.user)).keys() & set(ids))
        # What turns of other scopes said is not erased, though it be the same: their batches learn it from them.
        shuts = not what.takes_turns
        progress.counts["versions"] += await self.records.forget_memories(Scope(scope.user), ids, shuts_turns=shuts)

    async def _beside(self, what: Forgetting) -> frozenset[tuple[str, int]] | None:
        if what.memory_id is None:
            return None
        try:
            async with asyncio.timeout(self.wait_s):
                told = await self._told(what, await self._found(what))
                kept = await list_all(self.everything, Scope(what.scope.user), vectors=False)
        except (SemmemError, TimeoutError):
            return None
        turns = {memory.source.turn for memory in told}
        return frozenset((memory.id, memory.version) for memory in kept if memory.source.turn in turns)

    async def _learnt_meanwhile(self, what: Forgetting, progress: _Progress) -> list[Memory]:
        """What says the same again since a batch has learnt it of the same turns: it no longer saw the memory, which is
        hidden, and did not see the mark yet. Where nobody looked what there was before: what is new since then."""
        turns = {memory.source.turn for memory in progress.told if memory.type not in PASSAGES} - {""}
        if not turns:
            return []
        kept = await list_all(self.everything, Scope(what.scope.user), vectors=False)
        of_them = [one for one in kept if one.source.turn in turns and one.id != what.memory_id]
        if progress.beside is None:
            new = [one for one in of_them if one.updated_at > what.at - SKEW_S]
        else:
            new = [one for one in of_them if (one.id, one.version) not in progress.beside]
        return await self.waiting.stating(new, progress.told)

    async def _unsay_first(self, what: Forgetting) -> Counter[str] | None:
        """Before anything is hidden: a batch that no longer saw the memory would write what its turn says as a new one.
        None when it could not be done, or not in time; it is done before the memory is removed then."""
        try:
            async with asyncio.timeout(self.wait_s):
                return await self._unsay(what)
        except (SemmemError, TimeoutError):
            return None

    async def _unsay(self, what: Forgetting) -> Counter[str]:
        """Turns that stay must not bring back what goes, nor what it said in earlier versions."""
        if what.takes_turns:
            return Counter()
        await self.here.written(timeout_s=self.wait_s)
        found = await self._found(what)
        told = [memory for memory in found if memory.version == 1]  # the first has none before it
        told += await self._told(what, [memory for memory in found if memory.version > 1])
        sentences, batches = await self.waiting.take_out(what.scope.user, told, until=what.at)
        return Counter(sentences=sentences, batches=batches)

    async def _found(self, what: Forgetting) -> list[Memory]:
        scope, everything = what.scope, self.everything
        if what.memory_id is not None:
            memory = await everything.get(scope, what.memory_id)
            return [memory] if memory is not None and what.covers(memory) else []
        return [memory for memory in await list_all(everything, scope, types=what.types) if what.covers(memory)]

    async def _forget_past(self, what: Forgetting, found: Sequence[Memory]) -> int:
        """What was said in their sessions until now is in no summary any more, no older copy brings them back, and the
        turns that they were learnt from leave the record of conversations; how many messages those had."""
        messages, at = 0, what.at
        for start in range(0, len(found), MARKED_MAX):
            some = found[start : start + MARKED_MAX]
            told = await self._told(what, some)
            messages += await self.records.mark_memories(told, at=at, now=max(at, self.clock()))
            sessions = {each.session or "" for each in told}
            await self.records.forget_past(some[0].user, sorted(sessions), now=self.clock())
        return messages

    async def _told(self, what: Forgetting, found: Iterable[Memory]) -> list[Memory]:
        """These, each with those of its earlier versions that go as well. With one that is erased by its id all go."""
        told: list[Memory] = []
        for memory in found:
            versions = await self.records.versions(Scope(memory.user), memory.id)
            told += [memory, *(each for each in versions if what.memory_id is not None or means(what, each))]
        return told

    async def _said(self, scope: Scope, *, at: float) -> list[str]:
        """The ids of what ``_forget_said`` takes: prompts elsewhere may have been given it in place of memories."""
        passages = await all_passages(self.everything, scope.user)
        of_scope = Forgetting(scope, at)
        return [one.id for one in passages if _is_gist(one) or of_scope.covers(one)]

    async def _forget_said(self, scope: Scope, *, at: float) -> int:
        """What was said in it until then; and the gist of every answer to the user, which may repeat that in other
        scopes, and later. How many passages went. Safe to repeat."""
        gone = await self.store.forget_scope(scope, types=PASSAGES, said_until=at)
        return gone + await self.store.forget_scope(Scope(scope.user), types=(MemoryType.GIST,))

    async def _forget_passages(self, user: str, told: Sequence[Memory], progress: _Progress, *, at: float) -> None:
        """With memories, in all their versions, the passages of the turns that they were learnt from, those that say
        the same again, and the gist of every answer since: it may repeat them. Safe to repeat. Marked first, as
        memories are; those too that a batch is about to write."""
        if not told:
            return
        kept = await all_passages(self.everything, user)
        turns = {memory.source.turn for memory in told if memory.type not in PASSAGES} - {""}
        since = min(memory.said_at for memory in told) - ANSWER_S
        going = [one for one in kept if one.source.turn in turns or (_is_gist(one) and one.said_at >= since)]
        known = {one.id for one in going}
        others = [one for one in kept if not _is_gist(one) and one.id not in known and one.said_at <= at]
        going += await self.waiting.stating(others, told)
        alone = [replace(one, source=replace(one.source, turn="")) for one in going]  # their turns are not erased
        await self.records.mark_memories(alone, at=at, now=max(at, self.clock()))
        ids = {one.id for one in going} | {passage for turn in turns for passage in ids_of(turn)}
        await self.records.forget_memories(Scope(user), sorted(ids), shuts_turns=False)
        progress.counts["requests"] += await self.records.forget_requests(user, sorted(ids))
        progress.counts["passages"] += sum([await self.store.forget(Scope(user), one.id) for one in going])


def _is_gist(passage: Memory) -> bool:
    return passage.type is MemoryType.GIST
