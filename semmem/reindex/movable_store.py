"""A store of one collection, or of two while memories get vectors of another embedding model.

While they do, the collection that everybody reads decides what there is. Its own vectors are of a model that is not
loaded any more: of what is read here, a memory has the vector that the new collection keeps for the same version, or
none. Every write and every removal goes to the collection that is read first, and then to all beside it, as long as
they are there: so does it to a former collection that is kept."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace

from semmem.lifecycle.write_gate import UnderWay
from semmem.memory import Hit, Memory, MemoryStatus, Scope, Types, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, JournalError, StoreError, StoreMismatch, StoreUnavailable
from semmem.ports.reindexing import ReindexRecords, ReindexState
from semmem.ports.storable import nearest
from semmem.ports.store import Collection, Collections, Described, Lagging, Store, StoreCall, StoreWrapper, next_name
from semmem.text.quoting import unquoted

ALL = 2**31 - 1
"""More than any user has: stores bound what one list may read."""


@dataclass(frozen=True, slots=True)
class Part:
    about: Described
    store: Collection


@dataclass(eq=False, repr=False)
class MovableStore:
    """A Store with all that backups and upkeep ask of one: Enumerable, Sweepable, Lagging, DiskBound and Purgeable.
    ``may_move``: whether it opens a collection of another model than the ``embedder``'s, to reindex it; else that is
    StoreMismatch. ``wants`` is called with a user who is asked for and whose memories have no vectors yet."""

    collections: Collections
    embedder: Embedder
    records: ReindexRecords
    _: KW_ONLY
    may_move: bool
    wants: Callable[[str], None] = lambda _user: None
    _live: Part | None = field(init=False, default=None)
    beside: tuple[Part, ...] = field(init=False, default=())
    """What is written to as well: the target, former ones."""
    target: Part | None = field(init=False, default=None)
    """What is being filled, to be read by everybody."""
    _whole: set[str] = field(init=False, default_factory=set)
    _opening: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _writing: UnderWay = field(init=False, default_factory=UnderWay)

    @property
    def name(self) -> str:
        """Of the first collection, by which the store is known."""
        return self.collections.name

    @property
    def is_open(self) -> bool:
        return self._live is not None

    @property
    def live(self) -> Part:
        """What everybody reads. Raises StoreUnavailable."""
        if self._live is None:
            raise StoreUnavailable("the store is not open")
        return self._live

    @property
    def lacks_vectors(self) -> bool:
        """Whether the vectors of the collection that is read are of another model."""
        return self.target is not None and self.live.about.signature != self.embedder.signature

    async def open(self) -> None:
        """As the port says. Raises StoreMismatch for another model's collection unless it may be reindexed."""
        async with self._opening:
            if self._live is not None:
                return
            parts: list[Part] = []
            try:
                await self.collections.open()
                target = await self._open_parts(parts)
            except BaseException:
                for part in parts:
                    await part.store.close()
                await self.collections.close()
                raise
            self.beside, self.target = tuple(parts[1:]), target
            self._live = parts[0]

    async def _open_parts(self, parts: list[Part]) -> Part | None:
        """Open the one that is read, and then all beside it; the target."""
        found, beside = await self.collections.found()
        live = found or self._own(self.name)
        wanted = await self._target_of(live, beside)
        more = [wanted] if wanted is not None and wanted not in beside else []
        for about in (live, *beside, *more):
            parts.append(Part(about, self.collections.collection(about)))
            await parts[-1].store.open()
        if wanted is not None:
            await self._say_writing(wanted.name)
        return next((part for part in parts[1:] if part.about == wanted), None)

    async def close(self) -> None:
        async with self._opening:
            parts = (*self.beside, *([self._live] if self._live else []))
            self._live, self.beside, self.target = None, (), None
            for part in parts:
                await part.store.close()
            await self.collections.close()

    def _own(self, name: str) -> Described:
        return Described(name, self.embedder.signature, self.embedder.dimension)

    def _is_own(self, about: Described) -> bool:
        return about == self._own(about.name)

    async def _target_of(self, live: Described, beside: Sequence[Described]) -> Described | None:
        if not self._is_own(live):
            begun = [about for about in beside if self._is_own(about)]
            if not self.may_move:
                raise StoreMismatch(_refusal(live, self._own(live.name), bool(begun)))
            return begun[-1] if begun else self._own(next_name(self.name, [each.name for each in (live, *beside)]))
        try:
            known = await self.records.reindex(self.name)
        except JournalError as error:
            raise StoreUnavailable(f"what is known of a reindex cannot be read: {error}") from None
        if known is None or known.state in (ReindexState.KEPT, ReindexState.DROPPING):
            return None
        return next((about for about in beside if about.name == known.target), None)

    async def _say_writing(self, target: str) -> None:
        try:
            await self.records.writes_to(target)
        except JournalError as error:
            raise StoreUnavailable(f"other replicas cannot be told of a reindex: {error}") from None

    async def begin(self, target: str | None = None) -> Part:
        """Write to a new collection from now on, or to this one that another process has made."""
        _, beside = await self.collections.found()
        taken = [self.live.about.name, *(about.name for about in beside)]
        about = self._own(target or next_name(self.name, taken))
        part = Part(about, self.collections.collection(about))
        await part.store.open()
        self._whole.clear()
        self.beside, self.target = (*self.beside, part), part
        await self._writing.ended()
        await self._say_writing(about.name)
        return part

    async def switch(self) -> None:
        """Everybody reads the target from now on."""
        if self.target is not None:
            await self.collections.switch(self.target.about.name)
            self._switched()

    def _switched(self) -> None:
        if self.target is not None:
            former, self._live = self.live, self.target
            self.beside = (former, *(part for part in self.beside if part is not self.target))
            self.target = None
            self._whole.clear()

    async def follow(self) -> None:
        """Do what another process has done: read what it has switched to, no longer write to what it has dropped.
        Raises StoreMismatch when everybody reads another model's vectors now."""
        found, beside = await self.collections.found()
        if found is not None and found.name != self.live.about.name:
            if self.target is None or self.target.about.name != found.name:
                raise StoreMismatch(_refusal(found, self._own(found.name), begun=False))
            self._switched()
        names = {about.name for about in beside}
        for part in [part for part in self.beside if part.about.name not in names]:
            await self.leave(part)

    async def leave(self, part: Part) -> None:
        """Write to it no more."""
        self.beside = tuple(each for each in self.beside if each is not part)
        if self.target is part:
            self.target = None
        await self._writing.ended()
        await part.store.close()

    async def drop(self, part: Part) -> None:
        """Leave one beside, and drop it with all that it holds."""
        await self.leave(part)
        await self.collections.drop(part.about.name)

    def is_whole(self, user: str) -> None:
        """All of the user's memories have their new vectors, or can have none."""
        self._whole.add(user)

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        """As the port says. Without ``as_of``, some of a user who has no new vectors yet may be missing."""
        live, target = self.live.store, self.target
        if target is None or not self.lacks_vectors:
            return await live.search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)
        if as_of is not None:
            told = await _with_vectors_of(target, await live.list(scope, types=types, limit=ALL))
            memories = await asyncio.gather(*map(self._with_own_vector, told))
            return await asyncio.to_thread(nearest, memories, vector, limit, now)
        hits = await target.store.search(scope, vector, limit=limit, now=now, types=types)
        there = {memory.id: memory.version for memory in await live.list(scope, types=types, limit=ALL)}
        return [hit for hit in hits if there.get(hit.memory.id) == hit.memory.version]

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        live, target = self.live.store, self.target
        if target is None or not self.lacks_vectors:
            return await live.get(scope, memory_id)
        memory, other = await live.get(scope, memory_id), await target.store.get(scope, memory_id)
        return None if memory is None else _with_vector_of(memory, other)

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        """As the port says. All of them have vectors, or none: some without would stand behind the others."""
        live, target = self.live.store, self.target
        if target is None or not self.lacks_vectors or not vectors:
            return await live.list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        told = await _with_vectors_of(target, await live.list(scope, types=types, limit=limit, offset=offset))
        if scope.user in self._whole or all(map(_has_vector_if_needed, told)):
            return told
        self.wants(scope.user)
        return [replace(memory, embedding=None) for memory in told]

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        return await self.live.store.count(scope, types=types)

    async def health(self) -> None:
        await self.live.store.health()

    async def users(self) -> set[str]:
        return await self.live.store.users()

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        return await self.live.store.expired(now, limit=limit)

    def written_elsewhere(self, user: str) -> None:
        """As Lagging says, of every collection that lags."""
        for part in self._parts() if self.is_open else ():
            if isinstance(part.store, Lagging):
                part.store.written_elsewhere(user)

    async def check_room(self) -> None:
        await self.collections.check_room()

    async def put(self, scope: Scope, *memories: Memory) -> None:
        with self._everywhere() as parts:
            for part in parts:
                await part.store.put(scope, *(self._fitting(memory, part) for memory in memories))

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        with self._everywhere() as parts:
            result, *_ = [await part.store.forget(scope, memory_id) for part in parts]
        return result

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        with self._everywhere() as parts:
            result, *_ = [await part.store.forget_scope(scope, types=types, said_until=said_until) for part in parts]
        return result

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        with self._everywhere() as parts:
            result, *_ = [await part.store.sweep(now, expired=expired) for part in parts]
        return result

    async def purge(self) -> bool:
        return all([await part.store.purge() for part in self._parts()])

    @contextmanager
    def _everywhere(self) -> Iterator[tuple[Part, ...]]:
        """Where a write goes, known to whoever changes that: it waits until those have ended that are under way."""
        with self._writing.call(""):
            yield self._parts()

    def _parts(self) -> tuple[Part, ...]:
        return (self.live, *self.beside)

    def _fitting(self, memory: Memory, part: Part) -> Memory:
        """What is written here has vectors of the embedder's model, which say nothing in another one's collection."""
        return memory if self._is_own(part.about) or memory.embedding is None else replace(memory, embedding=None)

    async def _with_own_vector(self, memory: Memory) -> Memory:
        """One that the target does not keep is made now."""
        if _has_vector_if_needed(memory):
            return memory
        try:
            return replace(memory, embedding=await self.embedder.embed(unquoted(memory.content)))
        except EmbedderError:
            return memory


async def _with_vectors_of(target: Part, memories: Sequence[Memory]) -> list[Memory]:
    """One user's memories, with the vectors that the target keeps for the same versions."""
    kept = await target.store.list(Scope(memories[0].user), limit=ALL) if memories else ()
    there = {memory.id: memory for memory in kept}
    return [_with_vector_of(memory, there.get(memory.id)) for memory in memories]


def _with_vector_of(memory: Memory, other: Memory | None) -> Memory:
    is_same = other is not None and other.version == memory.version
    return replace(memory, embedding=other.embedding if other is not None and is_same else None)


def _has_vector_if_needed(memory: Memory) -> bool:
    """What is not recalled needs none."""
    return memory.embedding is not None or memory.status is not MemoryStatus.ACTIVE


def _refusal(live: Described, own: Described, begun: bool) -> str:
    far = " (it was begun already, and goes on from there)" if begun else ""
    return (
        f"the collection {live.name} holds vectors of {live.signature or 'unknown'}, {live.dimension} numbers each, and"
        f" the configuration names {own.signature}, {own.dimension} numbers: run `semmem reindex`{far}, or set"
        " memory.reindex.start: auto, which does it while requests are served; or configure the former model"
    )


class WithVectors(StoreWrapper):
    """A view of ``shown``, which shows what ``store`` has, for whoever keeps vectors: StoreError while there are none
    of the model whose name they would be kept under."""

    def __init__(self, shown: Store, store: MovableStore) -> None:
        super().__init__(shown)
        self._movable = store

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        if self._movable.lacks_vectors:
            raise StoreError(
                "memories are being reindexed, and have no vectors of their new model yet: try again later"
            )
        yield
