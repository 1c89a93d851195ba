"""Active users' memories in this process, ready to be ranked; everybody else's are loaded when they are asked for.

It is a Store around the store: reads and writes pass through, and a write that passes shows in the user's index at
once. What other replicas write shows when the index is older than ``staleness_s``, and is loaded again. From half that
age on it is loaded behind the requests, so that a user who stays active never waits for it.

A load reads all of the user's memories. When a write ends meanwhile, what was read may miss it, and it is read again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cachetools import LRUCache, TTLCache

from semmem.memory import Memory, MemoryStatus, MemoryType, Scope
from semmem.ports.errors import StoreError, StoreTimeout
from semmem.ports.store import Store
from semmem.ports.store_wrapper import StoreWrapper
from semmem.ports.text_work import Offload
from semmem.retrieval.index.memory_index import MemoryIndex

Spawn = Callable[[str, Coroutine[Any, Any, Any]], asyncio.Task[Any]]
"""Starts a task that somebody owns."""

READS_MAX = 3
"""How often memories are read for one load while writes go on. Then it is given up: what was read may hold a memory
that was deleted meanwhile."""
LATE_S = 30.0
"""How long after it failed here (a deadline, a cancelled caller) a write may still be done in the store. What was read
before that is read again after it: a memory whose deletion came late must not stay here until the process ends."""
DOUBT_S = 1.0
"""How long memories that another process has changed are shown on while they are read anew: a request that came
meanwhile would have none at all."""
ALL_DOUBT_S = 5.0
"""The same where anybody's may have changed: they are read anew as they are asked for."""
AHEAD_S = 1.0
"""So long what was read ahead waits for the search that it was read for, where it is not kept anyway."""


@dataclass(slots=True)
class _Kept:
    """One user's memories. ``index`` None: something was written since it was built. ``doubted_at``: another process
    has changed them since they were read."""

    memories: dict[str, Memory]
    index: MemoryIndex | None
    read_at: float
    doubted_at: float = math.inf


@dataclass(slots=True)
class _Load:
    """``is_ahead``: somebody will ask for it who does not wait yet."""

    task: asyncio.Task[MemoryIndex | StoreError | None]
    overtaken: bool = False
    is_ahead: bool = False


class HotMemories(StoreWrapper):
    """``index`` gives what ranking needs of a user; the rest is the Store port, passed on.

    At most ``users_max`` users and ``memories_max`` memories in all are kept, the least recently used go first. A user
    has at most ``rows_max`` memories of any status. At most ``loads_max`` users are loaded at a time while no more than
    ``loads_waiting_max`` wait for it; a place among them and each reading have ``load_timeout_s``.
    ``staleness_s`` 0 keeps nothing: every search loads. ``offload`` builds the indexes. What ``warm`` has loaded and
    nothing keeps serves one search within AHEAD_S: at most as many memories again, or those of one user.
    """

    def __init__(
        self,
        store: Store,
        *,
        spawn: Spawn,
        offload: Offload = asyncio.to_thread,
        users_max: int = 1000,
        memories_max: int = 20_000,
        rows_max: int = 5000,
        staleness_s: float = math.inf,
        loads_max: int = 4,
        loads_waiting_max: int = 200,
        load_timeout_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if users_max < 1 or memories_max < 1 or rows_max < 1 or loads_max < 1:
            raise ValueError("users_max, memories_max, rows_max and loads_max must be at least 1")
        super().__init__(store)
        self._spawn = spawn
        self._users_max = users_max
        self._rows_max = rows_max
        self._staleness_s = staleness_s
        self._loads_waiting_max = loads_waiting_max
        self._load_timeout_s = load_timeout_s
        self._clock = clock
        self._kept: LRUCache[str, _Kept] = LRUCache(memories_max, getsizeof=lambda kept: len(kept.memories))
        self._ahead: TTLCache[str, _Kept, float] = TTLCache(
            max(memories_max, rows_max), AHEAD_S, timer=clock, getsizeof=lambda kept: len(kept.memories)
        )
        self._loading: dict[str, _Load] = {}
        self._slots = asyncio.Semaphore(loads_max)
        self._offload = offload
        self._late_until: dict[str, float] = {}
        self._all_doubted_at = -math.inf

    @property
    def users(self) -> int:
        """How many users' memories are kept now."""
        return len(self._kept)

    @property
    def memories(self) -> int:
        """How many memories are kept now."""
        return int(self._kept.currsize)

    # --- the index ---------------------------------------------------------------------------------------------------

    def warm(self, user: str) -> None:
        """Begin to load what a search by this user will need, if it is not here."""
        if self._ready(user) is None and (load := self._load(user)) is not None:
            load.is_ahead = True

    def at_hand(self, user: str) -> MemoryIndex | None:
        """The user's index where it is here already."""
        return self._ready(user)

    async def index(self, user: str, *, wait_s: float) -> MemoryIndex | None:
        """The user's index; None when it cannot be had within ``wait_s`` (its load goes on). Raises StoreError."""
        ready = self._ready(user) or self._read_ahead(user)
        if ready is not None:
            return ready
        load = self._load(user)
        if load is None:
            return None
        load.is_ahead = False
        await asyncio.wait({load.task}, timeout=wait_s)  # neither late nor cancelled does this end the load
        if not load.task.done() or load.task.cancelled():
            return None
        loaded = load.task.result()
        if isinstance(loaded, StoreError):
            raise loaded
        return loaded

    def _ready(self, user: str) -> MemoryIndex | None:
        kept = self._kept.get(user)
        if kept is None or kept.index is None:
            return None
        now = self._clock()
        if not self._is_current(user, kept, now):
            return None
        if now - kept.read_at > self._staleness_s / 2 or self._is_doubted(kept):
            self._load(user)
        return kept.index

    def _read_ahead(self, user: str) -> MemoryIndex | None:
        """What was loaded for this search before it came here, once."""
        kept = self._ahead.pop(user, None)
        return None if kept is None or self._missed_a_late_write(user, kept, self._clock()) else kept.index

    def _is_current(self, user: str, kept: _Kept, now: float) -> bool:
        if now - kept.read_at >= self._staleness_s or now - kept.doubted_at >= DOUBT_S:
            return False
        return not self._missed_a_late_write(user, kept, now) and not self._is_doubted_too_long(kept, now)

    def _is_doubted(self, kept: _Kept) -> bool:
        return kept.doubted_at < math.inf or kept.read_at <= self._all_doubted_at

    def _is_doubted_too_long(self, kept: _Kept, now: float) -> bool:
        return kept.read_at <= self._all_doubted_at <= now - ALL_DOUBT_S

    def _missed_a_late_write(self, user: str, kept: _Kept, now: float) -> bool:
        return kept.read_at < self._late_until.get(user, -math.inf) <= now

    def _load(self, user: str) -> _Load | None:
        """The load that is under way for the user, or a new one; None when too many users wait for theirs."""
        load = self._loading.get(user)
        if load is None and len(self._loading) < self._loads_waiting_max:
            load = self._loading[user] = _Load(self._spawn("load memories", self._prepare(user)))
            load.task.add_done_callback(lambda _task: self._loading.pop(user, None))
        return load

    async def _prepare(self, user: str) -> MemoryIndex | StoreError | None:
        """Read what is not here, build the index, and keep it. An error is an answer: nobody may be waiting for it."""
        try:
            async with asyncio.timeout(self._load_timeout_s) as limit, self._slots:
                for _ in range(READS_MAX):
                    load = self._loading[user]
                    load.overtaken = False
                    limit.reschedule(asyncio.get_running_loop().time() + self._load_timeout_s)
                    read_at, memories = await self._read(user)
                    limit.reschedule(None)  # a thread cannot be stopped: what it has begun is better used
                    index = await self._build(memories.values())
                    if not load.overtaken:
                        self._keep(user, _Kept(memories, index, read_at), is_ahead=load.is_ahead)
                        return index
                return None
        except StoreError as error:
            return error
        except TimeoutError:
            return StoreTimeout(f"memories were not loaded within {self._load_timeout_s} s")

    async def _build(self, memories: Iterable[Memory]) -> MemoryIndex:
        """Beside the event loop."""
        live = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
        return await self._offload(partial(MemoryIndex, live))

    async def _read(self, user: str) -> tuple[float, dict[str, Memory]]:
        kept, now = self._kept.get(user), self._clock()
        if kept is not None and kept.index is None and not self._is_doubted(kept) and self._is_current(user, kept, now):
            return kept.read_at, dict(kept.memories)
        found = await self._store.list(Scope(user), limit=self._rows_max)
        return now, {memory.id: _slim(memory) for memory in found}

    def _keep(self, user: str, kept: _Kept, *, is_ahead: bool) -> None:
        self._drop(user)
        if kept.read_at >= self._late_until.get(user, math.inf):
            del self._late_until[user]
        if self._staleness_s > 0:
            self._put(user, kept)
        if is_ahead and user not in self._kept and len(kept.memories) <= self._ahead.maxsize:
            self._ahead[user] = kept

    def _put(self, user: str, kept: _Kept) -> None:
        """Of two bounds the cache keeps that of all memories. A user with more than these is not kept at all."""
        self._drop(user)
        if len(kept.memories) > self._kept.maxsize:
            return
        while len(self._kept) >= self._users_max:
            self._kept.popitem()
        self._kept[user] = kept

    def _drop(self, user: str) -> None:
        self._kept.pop(user, None)

    def forget_user(self, user: str) -> None:
        """Read the user's memories anew: what was read before shows what must not be shown any more."""
        self._overtake(user)
        self._drop(user)

    # --- other processes' writes -------------------------------------------------------------------------------------

    def holds(self, user: str) -> bool:
        """Whether the user's memories are here, or being read."""
        return user in self._kept or user in self._loading or user in self._ahead

    def changed_elsewhere(self, user: str) -> bool:
        """Another process changed the user's memories: those in use are read anew, and shown until then. Whether they
        are read now and nobody waits for it."""
        self._overtake(user)
        kept, now = self._kept.get(user), self._clock()
        if kept is None:
            return False
        if kept.index is None or not self._is_current(user, kept, now):
            self._drop(user)
            return False
        kept.doubted_at = min(kept.doubted_at, now)
        return self._load(user) is not None

    def all_changed_elsewhere(self) -> None:
        """Another process may have changed anybody's: each is read anew when it is asked for."""
        self._all_doubted_at = self._clock()
        self._ahead.clear()
        for load in self._loading.values():
            load.overtaken = True

    # --- the store ---------------------------------------------------------------------------------------------------

    async def put(self, scope: Scope, memory: Memory) -> None:
        try:
            await super().put(scope, memory)
        except BaseException:  # it may have been written all the same
            self._overtake(scope.user)
            self._drop(scope.user)
            self._may_be_late(scope.user)
            raise
        self._overtake(scope.user)
        self._written(scope.user, memory)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        with self._removing(scope.user):
            return await super().forget(scope, memory_id)

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        with self._removing(scope.user):
            return await super().forget_scope(scope, types=types, said_until=said_until)

    @contextmanager
    def _removing(self, user: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._may_be_late(user)
            raise
        finally:
            self._overtake(user)
            self._drop(user)

    def _may_be_late(self, user: str) -> None:
        now = self._clock()
        waiting = self._late_until.items()
        self._late_until = {other: until for other, until in waiting if until > now or other in self._kept}
        self._late_until[user] = now + LATE_S

    def _overtake(self, user: str) -> None:
        self._ahead.pop(user, None)
        load = self._loading.get(user)
        if load is not None:
            load.overtaken = True

    def _written(self, user: str, memory: Memory) -> None:
        kept = self._kept.get(user)
        if kept is None:
            return
        present = kept.memories.get(memory.id)
        if present is not None and present.version >= memory.version:
            return  # as in the store, a version is written once
        kept.memories[memory.id] = _slim(memory)
        kept.index = None
        self._put(user, kept)


def _slim(memory: Memory) -> Memory:
    """Of a memory that is not recalled only id and version matter: an older version must not come back."""
    return memory if memory.status is MemoryStatus.ACTIVE else replace(memory, content="", embedding=None)
