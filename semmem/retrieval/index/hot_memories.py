"""Active users' memories in this process, ready to be ranked; everybody else's are loaded when they are asked for.

It is a Store around the store: reads and writes pass through, and a write that passes shows in the user's index at
once. What other replicas write shows when the index is older than ``staleness_s``, and is loaded again. From half that
age on it is loaded behind the requests, so that a user who stays active never waits for it.

A load reads all of the user's memories. When a write ends meanwhile, what was read may miss it, and it is read again.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cachetools import TTLCache

from semmem.memory import Hit, Memory, Scope, are_passages
from semmem.ports.errors import StoreError, StoreTimeout
from semmem.ports.store import Store, StoreCall, StoreWrapper
from semmem.ports.text_work import Offload
from semmem.retrieval.index.kept import Freshness, Kept, Preloaded, Unsaid, built, slim
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.regulars import Regulars, Room

Spawn = Callable[[str, Coroutine[Any, Any, Any]], asyncio.Task[Any]]
"""Starts a task that somebody owns."""

READS_MAX = 3
"""How often memories are read for one load while writes go on. Then it is given up: what was read may hold a memory
that was deleted meanwhile."""
AHEAD_S = 1.0
"""So long what was read ahead waits for the search that it was read for, where it is not kept anyway."""
AHEAD_ROW_BYTES = 8192
"""Of a memory of a user of whom there is more than is ever kept: more than nearly every memory takes."""


@dataclass(slots=True)
class _Load:
    """``is_ahead``: somebody will ask for it who does not wait yet. ``is_spare``: nobody has asked for it, so it is
    kept only where there is room for it without anybody's going."""

    task: asyncio.Task[MemoryIndex | StoreError | None]
    overtaken: bool = False
    is_ahead: bool = False
    is_spare: bool = False


class HotMemories(StoreWrapper):
    """``index`` gives what ranking needs of a user; the rest is the Store port, passed on.

    What is kept takes at most ``bytes_max``, of at most ``users_max`` users and ``memories_max`` memories. A user has
    at most ``rows_max`` memories of any status. At most ``loads_max`` users are loaded at a time while no more than
    ``loads_waiting_max`` wait for it; a place among them and each reading have ``load_timeout_s``. ``staleness_s`` 0
    keeps nothing: every search loads; ``told_staleness_s`` is in its place while ``trust`` says so. ``offload`` builds
    the indexes. What ``warm`` has loaded and nothing keeps serves one search within AHEAD_S: at most as many memories
    again, or those of one user."""

    def __init__(
        self,
        store: Store,
        *,
        spawn: Spawn,
        offload: Offload = asyncio.to_thread,
        bytes_max: int = 100_000_000,
        users_max: float = math.inf,
        memories_max: float = math.inf,
        rows_max: int = 5000,
        staleness_s: float = math.inf,
        told_staleness_s: float | None = None,
        loads_max: int = 4,
        loads_waiting_max: int = 200,
        load_timeout_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if min(bytes_max, users_max, memories_max, rows_max, loads_max) < 1:
            raise ValueError("bytes_max, users_max, memories_max, rows_max and loads_max must be at least 1")
        super().__init__(store)
        self._spawn = spawn
        self._rows_max = rows_max
        self._staleness_s = staleness_s
        self._loads_waiting_max = loads_waiting_max
        self._load_timeout_s = load_timeout_s
        self._clock = clock
        self._kept = Regulars[Kept](Room(bytes_max, memories_max, users_max))
        self._ahead: TTLCache[str, Kept, float] = TTLCache(
            max(bytes_max, rows_max * AHEAD_ROW_BYTES), AHEAD_S, timer=clock, getsizeof=lambda kept: kept.bytes
        )
        self._loading: dict[str, _Load] = {}
        self._slots = asyncio.Semaphore(loads_max)
        self._offload = offload
        self.unsaid = Unsaid(clock)
        self._fresh = Freshness(staleness_s, told_staleness_s)

    @property
    def taken(self) -> Room:
        """What is kept now takes so many bytes, estimated; of so many memories and users."""
        return self._kept.taken

    # --- the index ---------------------------------------------------------------------------------------------------

    def warm(self, user: str) -> None:
        """The user has come: begin to load what a search will need, if it is not here."""
        self._kept.visit(user, self._clock())
        if self.at_hand(user) is None and (load := self._load(user)) is not None:
            load.is_ahead, load.is_spare = True, False

    def at_hand(self, user: str) -> MemoryIndex | None:
        """The user's index where it is here already."""
        kept = self._kept.get(user)
        if kept is None or kept.index is None:
            return None
        now = self._clock()
        if not self._fresh.is_current(user, kept, now):
            return None
        if self._fresh.is_ageing(kept, now):
            self._load(user)
        return kept.index

    async def index(self, user: str, *, wait_s: float, again: bool = False) -> MemoryIndex | None:
        """The user's index; None when it cannot be had within ``wait_s`` (its load goes on). ``again``: this request
        will ask for it once more. Raises StoreError."""
        ready = self.at_hand(user) or self._read_ahead(user, again=again)
        if ready is not None:
            return ready
        load = self._load(user)
        if load is None:
            return None
        load.is_ahead, load.is_spare = again, False
        await asyncio.wait({load.task}, timeout=wait_s)  # neither late nor cancelled does this end the load
        if not load.task.done() or load.task.cancelled():
            return None
        loaded = load.task.result()
        if isinstance(loaded, StoreError):
            raise loaded
        return loaded

    async def preload(self, user: str) -> Preloaded:
        """Load a user who may come soon, as a regular, when nobody waits for another load; not in anybody's place."""
        while self._loading:
            await asyncio.wait([load.task for load in self._loading.values()])
        if user in self._kept:
            return Preloaded.LOADED
        load = self._load(user)
        if load is None:
            return Preloaded.FAILED
        load.is_spare = True
        await asyncio.wait({load.task})
        if load.task.cancelled() or not isinstance(load.task.result(), MemoryIndex):
            return Preloaded.FAILED
        return Preloaded.LOADED if user in self._kept else Preloaded.NO_ROOM

    def found(self, user: str, index: MemoryIndex, hits: Sequence[Hit]) -> None:
        """These were found for a question that was not asked before: what is kept of that takes room as well."""
        kept = self._kept.get(user)
        if kept is not None and kept.index is index:
            self._kept.grow(user, kept.find(hits))

    def _read_ahead(self, user: str, *, again: bool) -> MemoryIndex | None:
        """What was loaded for this search before it came here, once."""
        kept = self._ahead.get(user) if again else self._ahead.pop(user, None)
        return None if kept is None or self._fresh.missed_a_late_write(user, kept, self._clock()) else kept.index

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
                    kept = await self._offload(partial(built, memories, read_at))
                    if not load.overtaken:
                        self._keep(user, kept, load)
                        return kept.index
                return None
        except StoreError as error:
            return error
        except TimeoutError:
            return StoreTimeout(f"memories were not loaded within {self._load_timeout_s} s")

    async def _read(self, user: str) -> tuple[float, dict[str, Memory]]:
        kept, now = self._kept.get(user), self._clock()
        is_sure = kept is not None and not self._fresh.is_doubted(kept) and self._fresh.is_current(user, kept, now)
        if kept is not None and kept.index is None and is_sure:
            return kept.read_at, dict(kept.memories)
        found = await self._store.list(Scope(user), limit=self._rows_max)
        return now, {memory.id: slim(memory) for memory in found}

    def _keep(self, user: str, kept: Kept, load: _Load) -> None:
        self._fresh.was_read(user, kept)
        if self._staleness_s > 0 and (not load.is_spare or self._kept.fits(kept.size)):
            self._kept.put(user, kept, kept.size, self._clock(), is_regular=load.is_spare)
        if load.is_ahead and user not in self._kept and kept.bytes <= self._ahead.maxsize:
            self._ahead[user] = kept

    def forget_user(self, user: str) -> None:
        """Read the user's memories anew: what was read before shows what must not be shown any more."""
        self._overtake(user)
        self._kept.drop(user)

    # --- other processes' writes -------------------------------------------------------------------------------------

    def trust(self, is_told: Callable[[], bool]) -> None:
        """``is_told``: whether every change that another process makes is told here, as far as is known."""
        self._fresh.is_told = is_told

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
        if kept.index is None or not self._fresh.is_current(user, kept, now):
            self._kept.drop(user)
            return False
        kept.doubted_at = min(kept.doubted_at, now)
        return self._load(user) is not None

    def all_changed_elsewhere(self) -> None:
        """Another process may have changed anybody's: each is read anew when it is asked for."""
        self._fresh.all_doubted_at = self._clock()
        self._ahead.clear()
        for load in self._loading.values():
            load.overtaken = True

    # --- the store ---------------------------------------------------------------------------------------------------

    async def put(self, scope: Scope, *memories: Memory) -> None:
        if are_passages([memory.type for memory in memories]):  # they are in no index
            try:
                await super().put(scope, *memories)
            finally:
                self.unsaid.spoken(scope.user)
            return
        await super().put(scope, *memories)
        self._overtake(scope.user)
        kept = self._kept.get(scope.user)
        if kept is not None and [memory for memory in memories if kept.write(memory)]:
            self._kept.put(scope.user, kept, kept.size, self._clock())

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        """What is removed is read anew; so is what a call that failed may have changed all the same."""
        is_put = call.operation == "put"
        try:
            yield
        except BaseException:
            if call.writes and not (is_put and call.of_passages):
                self._fresh.may_be_late(call.user, self._clock(), self._kept)
                self.forget_user(call.user)
            raise
        if call.writes and not is_put:
            self.forget_user(call.user)

    def _overtake(self, user: str) -> None:
        self._ahead.pop(user, None)
        load = self._loading.get(user)
        if load is not None:
            load.overtaken = True
