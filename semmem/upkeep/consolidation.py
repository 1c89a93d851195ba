"""Memories that say the same become one; the others are superseded by it and kept in history.

Likeness alone is not enough: "is allergic" and "is not allergic" are 0.98 apart from 1. Two memories are one only when
they are the same word for word, articles, case and the spelling of numbers aside: nothing is lost with the one that
goes."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice

import numpy as np

from semmem.extraction.contradiction.reading import repeats
from semmem.lifecycle.spared import superseded
from semmem.lifecycle.writes import Writes
from semmem.memory import MERGED, Memory, MemoryStatus, Scope, Vector
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store
from semmem.text.grounding import content_words

MERGED_IDS_MAX = 100
"""Of the memories that one took in, so many ids are listed in its metadata."""


@dataclass(frozen=True, slots=True)
class Group:
    """``kept`` says what all of ``merged`` say."""

    kept: Memory
    merged: tuple[Memory, ...]


@dataclass(eq=False, repr=False)
class Consolidator:
    """Finds and merges near-duplicates of one user, type and project. ``cosine_min``: what is less alike is not even
    compared. At most ``memories_max`` memories are looked at (the newest), ``pairs_max`` of their pairs compared, and
    ``groups_max`` groups found in one call. One call at a time is answered: a comparison takes up to 0.3 ms of a thread
    that shares its interpreter with the requests."""

    store: Store
    records: WriteRecords
    _: KW_ONLY
    cosine_min: float = 0.9
    memories_max: int = 2000
    pairs_max: int = 5000
    groups_max: int = 100
    _one_at_a_time: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        if not 0 < self.cosine_min <= 1 or self.memories_max < 2 or min(self.pairs_max, self.groups_max) < 1:
            raise ValueError("cosine_min must be a cosine above 0, memories_max at least 2, the others at least 1")

    async def groups(self, memories: Sequence[Memory], now: float) -> list[Group]:
        """The groups among these memories of one user; those that are not retrievable are left out."""
        newest = sorted(memories, key=lambda memory: -memory.updated_at)[: self.memories_max]
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._groups, [one for one in newest if one.is_retrievable(now)])

    async def merge(self, groups: Iterable[Group], *, hold_id: str, now: float) -> int:
        """Merge groups under a hold of their user; how many memories were superseded. Raises StoreError, JournalError.
        Groups of which anything changed since they were found are left alone."""
        writes = Writes(self.store, self.records, hold_id)
        return sum([await self._merge(group, writes, now) for group in groups])

    async def _merge(self, group: Group, writes: Writes, now: float) -> int:
        current = [await unchanged(self.store, memory) for memory in (group.kept, *group.merged)]
        kept, *others = current
        if kept is None or None in others:
            return 0
        found = [memory for memory in others if memory is not None]
        # What stays is written first: a crash then leaves doubles, not holes.
        if not await writes.replace(kept, _merged(kept, found)):
            return 0
        return sum([await writes.replace(old, superseded(old, kept.id, now, MERGED)) for old in found])

    def _groups(self, memories: Sequence[Memory]) -> list[Group]:
        buckets: dict[tuple[str, str], list[Memory]] = {}
        for memory in memories:
            buckets.setdefault((memory.type, memory.project or ""), []).append(memory)
        pairs = iter(range(self.pairs_max))
        found = (group for bucket in buckets.values() for group in self._bucket(bucket, pairs))
        return list(islice(found, self.groups_max))

    def _bucket(self, memories: list[Memory], pairs: Iterator[int]) -> Iterable[Group]:
        """Each memory joins the first it says the same as; the most informative stays, of equal ones the newest.
        ``pairs`` is exhausted when enough was compared."""
        ordered = sorted(
            memories, key=lambda one: (len(content_words(one.content)), one.updated_at, one.id), reverse=True
        )
        alike = cosines(ordered)
        taken: set[int] = set()
        for place, kept in enumerate(ordered):
            if place in taken:
                continue
            near = np.flatnonzero(alike[place] >= self.cosine_min).tolist()
            later = [other for other in near if other > place and other not in taken]
            compared = [other for other, _ in zip(later, pairs, strict=False)]
            merged = [other for other in compared if repeats(kept.content, ordered[other].content)]
            taken.update(merged)
            if merged:
                yield Group(kept, tuple(ordered[other] for other in merged))


def cosines(memories: Sequence[Memory]) -> Vector:
    """Of each with each; every memory has a vector."""
    matrix = np.stack([memory.embedding for memory in memories if memory.embedding is not None])
    return np.asarray(matrix @ matrix.T, dtype=np.float32)


async def unchanged(store: Store, memory: Memory) -> Memory | None:
    """The memory as it is stored, if it is still the version that was looked at, and active."""
    current = await store.get(Scope(memory.user), memory.id)
    if current is None or current.version != memory.version or current.status is not MemoryStatus.ACTIVE:
        return None
    return current


def _merged(kept: Memory, others: Sequence[Memory]) -> Memory:
    """What was said several times matters as much, is as new and lives as long as any of it."""
    everything = (kept, *others)
    ends = [memory.expires_at for memory in everything]
    ids = [*kept.metadata.get(MERGED, ()), *(memory.id for memory in others)]
    return replace(
        kept,
        version=kept.version + 1,
        importance=max(memory.importance for memory in everything),
        updated_at=max(memory.updated_at for memory in everything),
        expires_at=None if None in ends else max(end for end in ends if end is not None),
        metadata={**kept.metadata, MERGED: ids[-MERGED_IDS_MAX:]},
    )
