"""One user's memories are copied to the new collection, with vectors of the new model.

What is to be copied is embedded first, while others write. Then the user is held, both sides are read again, and only
what is still the same is written: a write in the meantime has another version, and what was erased is not there. An
erasure does not wait for holds; it marks what it takes before it removes it, and whoever writes looks for marks
afterwards (``Writes``). At the end both sides are read once more.

The target is read before the source, every time: then it cannot have anything newer than the source, nor miss a removal
that the source has seen, whatever is written in between."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from semmem.lifecycle.holds import Holds
from semmem.lifecycle.writes import Writes
from semmem.memory import Memory, Scope, Vector
from semmem.passages.shelves import everything
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Collection
from semmem.reindex.movable_store import MovableStore
from semmem.text.quoting import unquoted

SLICE = 50
"""Memories that are embedded, and then written while the user is held."""
ROUNDS_MAX = 10
"""Without an end after so many slices that found nothing to copy but a difference, somebody writes all the time."""
PROBE = "Does the model answer?"

Key = tuple[str, int]
"""A memory's id and version: its text never changes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``missing`` in the target: memories of the source; of some it has another version, or no vector (``present``:
    versions by id). ``extra``: ids that only the target has."""

    memories: int
    missing: Sequence[Memory]
    extra: Sequence[str]
    present: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)


@dataclass(frozen=True, slots=True)
class Moved:
    """``memories`` of the user are the same on both sides, unless there is more to do (``is_whole`` False)."""

    memories: int = 0
    embedded: int = 0
    is_whole: bool = True


@dataclass(eq=False, repr=False)
class Mover:
    """Raises Busy, StoreError, JournalError and EmbedderError; LookupError where nothing is to be moved any more."""

    store: MovableStore
    embedder: Embedder
    records: WriteRecords
    holds: Holds
    _unusable: set[tuple[str, Key]] = field(init=False, default_factory=set)

    async def difference(self, user: str) -> Difference:
        """Between both sides, of one user."""
        target = self._target()
        present = {memory.id: memory for memory in await everything(target, user)}
        source = await everything(self.store.live.store, user)
        missing = [memory for memory in source if not self._is_there(memory, present.get(memory.id))]
        extra = [*(present.keys() - {memory.id for memory in source})]
        return Difference(len(source), missing, extra, {memory.id: memory.version for memory in present.values()})

    async def move(self, user: str, *, embed_max: int | None = None) -> Moved:
        """Copy what is missing, at most ``embed_max`` of it, and remove what is too much."""
        embedded, idle = 0, 0
        while difference := await self.difference(user):
            left = SLICE if embed_max is None else min(SLICE, embed_max - embedded)
            if (difference.missing and left <= 0) or idle >= ROUNDS_MAX:
                return Moved(difference.memories - len(difference.missing), embedded, is_whole=False)
            some = difference.missing[:left]
            made = await asyncio.gather(*map(self._vector, some))
            vectors = {(memory.id, memory.version): vector for memory, vector in zip(some, made, strict=True)}
            embedded += len(vectors)
            idle = 0 if vectors else idle + 1
            async with self.holds.held(user) as hold_id:
                await self._write(user, vectors, Writes(self._target(), self.records, hold_id))
        self.store.is_whole(user)
        return Moved(difference.memories, embedded)

    def _target(self) -> Collection:
        if self.store.target is None:
            raise LookupError
        return self.store.target.store

    def _is_there(self, memory: Memory, present: Memory | None) -> bool:
        if present is None or present.version != memory.version:
            return False
        return present.embedding is not None or (memory.user, (memory.id, memory.version)) in self._unusable

    async def _write(self, user: str, vectors: Mapping[Key, Vector | None], writes: Writes) -> None:
        self.store.written_elsewhere(user)  # from here on what other processes did shows at once
        difference, target = await self.difference(user), self._target()
        for memory_id in difference.extra:
            await target.forget(Scope(user), memory_id)
        told = [memory for memory in difference.missing if (memory.id, memory.version) in vectors]
        new = [replace(memory, embedding=vectors[memory.id, memory.version]) for memory in told]
        may_be = await writes.allowed(*new)
        allowed = [memory for memory in new if memory.id in may_be]
        await target.fill([memory for memory in allowed if memory.id not in difference.present])
        for memory in [memory for memory in allowed if memory.id in difference.present]:
            if difference.present[memory.id] >= memory.version:  # to put the same version again would change nothing
                await target.forget(Scope(user), memory.id)
            await target.put(Scope(user), memory)
        staying = await writes.may_stay(*allowed)
        for memory in allowed:
            if memory.id not in staying:
                await writes.retract(memory)

    async def _vector(self, memory: Memory) -> Vector | None:
        """None: this text can have none, while others can. Raises EmbedderError when nothing can be embedded now."""
        try:
            return await self.embedder.embed(unquoted(memory.content))
        except EmbedderError:
            await self.embedder.embed(PROBE)
            self._unusable.add((memory.user, (memory.id, memory.version)))
            return None
