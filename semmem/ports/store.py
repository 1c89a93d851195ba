"""What keeps memories and finds them by vector."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from semmem.memory import Hit, Memory, Scope, Types, Vector, are_passages
from semmem.ports.errors import StoreMismatch


class Store(Protocol):
    """Keeps memories and finds them by vector. Every call is bound to a scope and checks it inside: a memory of another
    user is never returned, changed, counted or removed, whatever id is asked for. ``scope.project``, ``scope.agent``
    and ``scope.session`` narrow reads when given. Only the highest version of a memory id is ever visible."""

    async def open(self) -> None:
        """Connect and make ready. Raises StoreUnavailable when waiting may help, StoreMismatch when the existing data
        does not fit the configuration, another StoreError for what waiting will not mend either."""

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def put(self, scope: Scope, *memories: Memory) -> None:
        """Write one version of each of these memories, all of them passages or none; it replaces lower versions of the
        same id. Putting it again changes nothing. When it raises, some of several may be written. Raises StoreRefused
        for what is too long, not text or not JSON (``semmem.ports.storable``), and StoreError when a memory's user is
        not ``scope.user`` or an embedding is not usable."""

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        """The nearest active, unexpired memories, best first, ``score`` = ``cosine``. Passages carry their embeddings,
        and so does what is found ``as_of`` a time; other memories need not. ``types`` empty means all but passages, as
        for every call (``semmem.passages.shelves``). ``as_of`` asks to see every write that this process finished, and
        every one that anybody finished before that time, in seconds since the epoch (it may wait for them: never on the
        request path); without it a write may take a moment to show."""

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        """One memory of any status, or None when this scope has none with that id."""

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        """Memories of any status, newest ``created_at`` first (ties by id). Without ``vectors`` they may come without
        their embeddings: whoever shows them needs none, and they are most of what is read."""

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Remove every version of one memory. False when there was none."""

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        """Remove every memory of the scope, until a read that sees every write finds none; how many there were.
        ``said_until``: only those that were said then or before."""

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        """How many memories (not versions) the scope has, of any status."""

    async def health(self) -> None:
        """One cheap round trip. Raises StoreError when the store does not answer."""


class Sweepable(Protocol):
    """What only housekeeping asks of a store: the calls that look at every user's memories. Raises StoreError."""

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        """(user, memory id) of memories whose time is over; of some a newer version may live on."""

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """Remove rows that no read shows (lower versions and, when asked, expired memories); how many."""


class Enumerable(Protocol):
    """Whose memories a store has: asked by what copies all of them. Raises StoreError."""

    async def users(self) -> set[str]:
        """Every user with a memory of any status; one that comes or goes meanwhile may be missing, or in it."""


class Fillable(Protocol):
    """An empty store that is filled from a copy. Raises StoreError."""

    async def fill(self, memories: Sequence[Memory]) -> None:
        """Write memories that are not there yet in any version, and are not written by anybody else."""


class Purgeable(Protocol):
    """What was removed also leaves the files."""

    async def purge(self) -> bool:
        """Rewrite what the files still keep of removed rows; reads go on meanwhile. False when that is not in this
        process's hands (a server removes rows when it compacts). Killed at any moment it loses nothing else. Raises
        StoreError or JournalError when it could not be done; try again later."""


@runtime_checkable
class Lagging(Protocol):
    """A store whose reads may miss for a while what another process has written."""

    def written_elsewhere(self, user: str) -> None:
        """Another process has written this user's memories: reads begun from here on see it."""


@runtime_checkable
class DiskBound(Protocol):
    """A store that needs room on a disk of this machine."""

    async def check_room(self) -> None:
        """Raises StoreFull when nothing can be written now."""


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One call of a store: its name, and whose memory it changes (``memory_id`` None: any of the user's).
    ``of_passages``: no memory, but something that was said."""

    operation: str
    user: str = ""
    memory_id: str | None = None
    writes: bool = False
    of_passages: bool = False


class StoreWrapper:
    """A Store that passes every call on to the one inside. The only class that does nothing but that, so that a
    subclass says only what it does differently: it overrides a call, or ``around`` for all of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        """Every call but ``close`` runs inside."""
        yield

    async def open(self) -> None:
        with self.around(StoreCall("open")):
            await self._store.open()

    async def close(self) -> None:
        """Passed on bare: it may be called when everything else is gone."""
        await self._store.close()

    async def put(self, scope: Scope, *memories: Memory) -> None:
        only = memories[0].id if len(memories) == 1 else None
        with self.around(StoreCall("put", scope.user, only, True, are_passages([memory.type for memory in memories]))):
            await self._store.put(scope, *memories)

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        with self.around(StoreCall("search")):
            return await self._store.search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        with self.around(StoreCall("get")):
            return await self._store.get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        with self.around(StoreCall("list")):
            return await self._store.list(scope, types=types, limit=limit, offset=offset, vectors=vectors)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        with self.around(StoreCall("forget", scope.user, memory_id, writes=True)):
            return await self._store.forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, *, types: Types = (), said_until: float | None = None) -> int:
        with self.around(StoreCall("forget_scope", scope.user, None, True, are_passages(types))):
            return await self._store.forget_scope(scope, types=types, said_until=said_until)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        with self.around(StoreCall("count")):
            return await self._store.count(scope, types=types)

    async def health(self) -> None:
        with self.around(StoreCall("health")):
            await self._store.health()


# --- a store's collections: of one embedding model, and beside them of another ---------------------------------------


class Collection(Store, Sweepable, Purgeable, Enumerable, Fillable, Protocol):
    """One collection, as a store of its own."""


@dataclass(frozen=True, slots=True)
class Described:
    """``signature`` and ``dimension`` of the embedding that its vectors are of."""

    name: str
    signature: str
    dimension: int


class Collections(Protocol):
    """The collection that everybody reads, and those beside it. Raises StoreError."""

    @property
    def name(self) -> str:
        """What the first of them is called; the others' names begin with it."""

    async def open(self) -> None:
        """Connect. After a failure it may be called again. Raises as Store.open."""

    async def close(self) -> None:
        """Release everything, after the collections themselves were closed. Idempotent."""

    async def found(self) -> tuple[Described | None, Sequence[Described]]:
        """The one that everybody reads (None: there is none yet), and those beside it."""

    def collection(self, described: Described) -> Collection:
        """To be opened, which makes it when it is not there, and to be closed."""

    async def switch(self, name: str) -> None:
        """From now on everybody reads this one, in one step. Idempotent."""

    async def drop(self, name: str) -> None:
        """With all that it holds, and its passages. Never the one that everybody reads. Idempotent."""

    async def check_room(self) -> None:
        """As DiskBound says; nothing where there is no disk of this machine."""


async def list_all(store: Store, scope: Scope, *, types: Types = (), vectors: bool = True) -> list[Memory]:
    """All that the store has of these types in the scope, of any status. Raises StoreError."""
    number = await store.count(scope, types=types)
    return await store.list(scope, types=types, limit=number, vectors=vectors) if number else []


def next_name(base: str, taken: Sequence[str]) -> str:
    """A name for one more collection: ``base_g2``, ``base_g3``, ..."""
    return f"{base}_g{1 + max((number_of(base, name) or 0 for name in taken), default=1)}"


def number_of(base: str, name: str) -> int | None:
    """1 for the first, the number of a later one, None for what is none of them."""
    if name == base:
        return 1
    found = re.fullmatch(re.escape(base) + r"_g([0-9]{1,9})", name)
    return int(found[1]) if found else None


def made_of(base: str, names: Iterable[str]) -> list[str]:
    """Those of a store's collections, in the order in which they were made."""
    numbers = {name: number for name in names if (number := number_of(base, name))}
    return sorted(numbers, key=numbers.__getitem__)


def live_name(base: str) -> str:
    """The alias of the one that everybody reads. Without it that is the first."""
    return f"{base}_live"


def passages_name(name: str) -> str:
    """Of the collection that lies beside this one, and holds what was said in the users' own words."""
    return f"{name}_passages"


def check_same(what: str, wanted_and_found: Mapping[str, tuple[str, str]], remedy: str) -> None:
    """Raises StoreMismatch, which names what of a collection is another than wanted."""
    differences = [
        f"{name} {found or 'unknown'} (configured: {wanted})"
        for name, (wanted, found) in wanted_and_found.items()
        if found != wanted
    ]
    if differences:
        raise StoreMismatch(f"{what} has {', '.join(differences)}. {remedy}")
