"""What a batch's turns said becomes passages, behind everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

from cachetools import LRUCache

from semmem.lifecycle.passages import PassageQuota
from semmem.lifecycle.writes import Writes
from semmem.memory import Memory, MemoryType, Turn
from semmem.passages.pieces import passages_of
from semmem.ports.embedder import Embedder
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store
from semmem.text.quoting import unquoted
from semmem.text.screening import readable

LOOK_AFTER = 500
"""Less than the store's room for what is over the limit (wiring.backends.PASSAGES_SPARE), for two replicas each."""
USERS_MAX = 10_000
"""Whose new passages are counted; upkeep makes room for the others once a day."""


class PassageRecords(WriteRecords, Protocol):
    """What is asked when passages are kept. Raises JournalError."""

    async def last_erased(self, user: str) -> float | None:
        """When something of the user's was erased last, as far as it is known, in seconds since the epoch (0: never);
        None while something is."""


@dataclass(eq=False, repr=False)
class Keeping:
    """``quota`` makes room after every LOOK_AFTER passages of a user. ``worth``: how probable it is that a text says
    something lasting about its author, which becomes the passage's importance. ``retention_s``: how long a passage is
    kept; None: none is."""

    store: Store
    records: PassageRecords
    embedder: Embedder
    retention_s: float | None
    _: KW_ONLY
    quota: PassageQuota
    worth: Callable[[str], Awaitable[float]]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._new: LRUCache[str, int] = LRUCache(USERS_MAX)

    async def keep(self, turns: Sequence[Turn], batch_id: str, *, no_gist_until: float = 0.0) -> Counter[str]:
        """Keep what these turns say, in the user's own words alone; how many passages were kept and left out, by word.
        ``no_gist_until``: when the user asked to forget something, which an answer of before may repeat. Safe to
        repeat. Raises StoreError, JournalError and EmbedderError."""
        done = Counter[str]()
        if self.retention_s is None:
            return done
        writes, now = Writes(self.store, self.records, batch_id), self.clock()
        expires_at = now + self.retention_s
        for passage in (each for turn in turns for each in passages_of(turn, now=now, expires_at=expires_at)):
            if reason := readable(passage):  # what may not stand in a prompt: a secret, an order to a model
                done[reason] += 1
                continue
            if passage.type is MemoryType.GIST and passage.said_at <= no_gist_until:
                done["forgotten"] += 1
                continue
            is_kept = await self._may_repeat_nothing(passage) and await writes.put(await self._weighed(passage))
            if is_kept and not await self._may_repeat_nothing(passage):  # erased since: it may have missed this one
                await writes.retract(passage)
                is_kept = False
            done["kept" if is_kept else "forgotten"] += 1
        if turns and done["kept"]:
            user = turns[0].scope.user
            self._new[user] = self._new.get(user, 0) + done["kept"]
            if self._new[user] >= LOOK_AFTER:
                del self._new[user]
                await self.quota.make_room(user)
        return done

    async def _may_repeat_nothing(self, passage: Memory) -> bool:
        """Whether it holds nothing that was erased: an answer to a request of before may, whatever its turn says."""
        if passage.type is not MemoryType.GIST:
            return True
        erased = await self.records.last_erased(passage.user)
        return erased is not None and erased < passage.said_at

    async def _weighed(self, passage: Memory) -> Memory:
        said = unquoted(passage.content)
        worth = 0.0 if passage.type is MemoryType.GIST else await self.worth(said)
        return replace(passage, importance=round(worth, 3), embedding=await self.embedder.embed(said))
