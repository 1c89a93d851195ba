"""What goes of what was said: with memories that are erased, and where there is too much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from semmem.lifecycle.elsewhere import WaitingWords
from semmem.lifecycle.writes import remove
from semmem.memory import PASSAGES, Memory, MemoryType, Scope
from semmem.passages.pieces import ids_of
from semmem.ports.erasure import ErasureRecords
from semmem.ports.events import Announce, MemoriesRemoved, nobody_listens
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store, list_all

ANSWER_S = 60.0
"""A request that was asked so long before a memory was made may have been shown it."""
PASSAGE_QUOTA = "passage_quota"
"""The reason under which passages are counted that went for want of room."""


@dataclass(eq=False, repr=False)
class SaidPassages:
    """``store``, ``everything``, ``records`` and ``waiting`` are the erasure's own. Raises StoreError, JournalError and
    WorkError."""

    store: Store
    everything: Store
    records: ErasureRecords
    waiting: WaitingWords
    _: KW_ONLY
    clock: Callable[[], float]

    async def forget_scope(self, scope: Scope, *, at: float) -> int:
        """What was said in it until then; and the gist of every answer to the user, which may repeat that in other
        scopes, and later. How many went. Safe to repeat."""
        gone = await self.store.forget_scope(scope, types=PASSAGES, said_until=at)
        return gone + await self.store.forget_scope(Scope(scope.user), types=(MemoryType.GIST,))

    async def forget(self, user: str, told: Sequence[Memory], *, at: float) -> int:
        """With memories, in all their versions, the passages of the turns that they were learnt from, those that say
        the same again, and the gist of every answer since: it may repeat them. How many went. Safe to repeat."""
        if not told:
            return 0
        kept = await listed(self.everything, user)
        turns = {memory.source.turn for memory in told if memory.type not in PASSAGES} - {""}
        since = min(memory.said_at for memory in told) - ANSWER_S
        going = [one for one in kept if one.source.turn in turns or (_is_gist(one) and one.said_at >= since)]
        known = {one.id for one in going}
        others = [one for one in kept if not _is_gist(one) and one.id not in known and one.said_at <= at]
        going += await self.waiting.stating(others, told)
        return await self._forget(user, going, turns, at)

    async def _forget(self, user: str, going: Sequence[Memory], turns: Iterable[str], at: float) -> int:
        """Marked first, as memories are; those too that a batch is about to write."""
        alone = [replace(one, source=replace(one.source, turn="")) for one in going]  # their turns are not erased
        await self.records.mark_memories(alone, at=at, now=max(at, self.clock()))
        ids = {one.id for one in going} | {passage for turn in turns for passage in ids_of(turn)}
        await self.records.forget_memories(Scope(user), sorted(ids), shuts_turns=False)
        return sum([await self.store.forget(Scope(user), one.id) for one in going])


@dataclass(eq=False, repr=False)
class PassageQuota:
    """Keeps at most ``per_user_max`` passages of each user. MemoriesRemoved is announced."""

    store: Store
    records: WriteRecords
    per_user_max: int
    announce: Announce = nobody_listens

    async def make_room(self, user: str) -> int:
        """Forget the oldest; how many. Raises StoreError and JournalError."""
        if await self.store.count(Scope(user), types=PASSAGES) <= self.per_user_max:
            return 0
        kept = sorted(await listed(self.store, user), key=lambda passage: -passage.said_at)
        surplus = kept[self.per_user_max :]
        for passage in surplus:
            await remove(self.store, self.records, Scope(user), passage.id)
        self.announce(MemoriesRemoved(PASSAGE_QUOTA, len(surplus)))
        return len(surplus)


async def listed(store: Store, user: str) -> list[Memory]:
    """All passages of a user, without vectors. Raises StoreError."""
    return await list_all(store, Scope(user), types=PASSAGES, vectors=False)


def _is_gist(passage: Memory) -> bool:
    return passage.type is MemoryType.GIST
